#include <dit/rope.hpp>

#include <prowl/core/math.hpp>

namespace prowl::dit {

template <class T>
void rope_table(Execution const& exec, int grid, Matrix<T> const& table) {
  Kokkos::parallel_for(
      "prowl::dit::rope_table", Kokkos::RangePolicy<Execution>(exec, 0, std::int64_t(grid) * grid),
      KOKKOS_LAMBDA(std::int64_t patch) {
        for (int pair = 0; pair < 2 * rope_frequencies; ++pair) {
          // In double: computed once, and an angle of many turns loses its digits in float.
          double const position = double(pair < rope_frequencies ? patch / grid : patch % grid);
          double const exponent = double(pair % rope_frequencies) / rope_frequencies;
          double const angle = position * math::pow(10000.0, -exponent);
          table(patch, 2 * pair) = T(math::cos(angle));
          table(patch, 2 * pair + 1) = T(math::sin(angle));
        }
      });
}

template void rope_table<float>(Execution const&, int, Matrix<float> const&);
template void rope_table<double>(Execution const&, int, Matrix<double> const&);

} // namespace prowl::dit
