#include <prowl/kernels/reductions.hpp>

#include <prowl/kernels/detail/elementwise.hpp>
#include <prowl/kernels/detail/sum_squares.hpp>

#include <cmath>
#include <limits>

namespace prowl {

double sum_squares(Execution const& exec, Vector<float const> const& x) {
  auto const data = x.data();
  auto const size = std::int64_t(x.size());
  double sum = 0;
  Kokkos::parallel_reduce(
      "prowl::sum_squares",
      Kokkos::RangePolicy<Execution>(exec, 0, (size + detail::sum_run - 1) / detail::sum_run),
      KOKKOS_LAMBDA(std::int64_t run, double& partial) {
        auto const begin = run * detail::sum_run;
        partial += detail::sum_squares(data + begin,
                                       size - begin < detail::sum_run ? size - begin : detail::sum_run);
      },
      sum);
  return sum;
}

void scale(Execution const& exec, double factor, Vector<float> const& x) {
  auto const data = x.data();
  if (std::abs(factor) < std::numeric_limits<float>::min()) {
    detail::elementwise(
        "prowl::scale", exec, x.size(),
        KOKKOS_LAMBDA(std::int64_t i) { data[i] = float(factor * double(data[i])); });
    return;
  }
  float const rounded = float(factor);
  detail::elementwise(
      "prowl::scale", exec, x.size(), KOKKOS_LAMBDA(std::int64_t i) { data[i] *= rounded; });
}

} // namespace prowl
