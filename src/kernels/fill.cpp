#include <prowl/kernels/fill.hpp>

#include <prowl/kernels/detail/elementwise.hpp>

namespace prowl {

void fill_normal(Execution const& exec, Random const& random, std::uint64_t first_index,
                 float standard_deviation, Vector<float> const& x) {
  auto const data = x.data();
  detail::elementwise(
      "prowl::fill_normal", exec, x.size(), KOKKOS_LAMBDA(std::int64_t i) {
        data[i] = float(standard_deviation * random.normal(first_index + std::uint64_t(i)));
      });
}

} // namespace prowl
