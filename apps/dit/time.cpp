#include <dit/time.hpp>

#include <prowl/core/math.hpp>

namespace prowl::dit {

template <class T>
void embed_time(Execution const& exec, Vector<T const> const& time, Matrix<T> const& embedding) {
  int const half = int(embedding.extent(1)) / 2;
  Kokkos::parallel_for(
      "prowl::dit::embed_time", Kokkos::RangePolicy<Execution>(exec, 0, std::int64_t(time.extent(0)) * half),
      KOKKOS_LAMBDA(std::int64_t index) {
        int const sample = int(index / half), i = int(index % half);
        // In double: an angle of up to 1000 keeps only four digits behind the point in float.
        double const angle = 1000.0 * double(time(sample)) * math::pow(10000.0, -double(i) / half);
        embedding(sample, i) = T(math::cos(angle));
        embedding(sample, half + i) = T(math::sin(angle));
      });
}

template void embed_time<float>(Execution const&, Vector<float const> const&, Matrix<float> const&);
template void embed_time<double>(Execution const&, Vector<double const> const&, Matrix<double> const&);

} // namespace prowl::dit
