#include <prowl/kernels/reductions.hpp>

#include <prowl/kernels/detail/elementwise.hpp>
#include <prowl/kernels/detail/sum_squares.hpp>

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

void scale(Execution const& exec, float factor, Vector<float> const& x) {
  auto const data = x.data();
  detail::elementwise(
      "prowl::scale", exec, x.size(), KOKKOS_LAMBDA(std::int64_t i) { data[i] *= factor; });
}

} // namespace prowl
