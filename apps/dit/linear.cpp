#include <dit/linear.hpp>

#include <dit/detail/rows.hpp>

#include <prowl/core/math.hpp>
#include <prowl/linalg/blas.hpp>

namespace prowl::dit {

template <class T>
void linear(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w, Matrix<T> const& y,
            T beta) {
  gemm<T>(exec, Op::none, Op::transpose, T(1), x, w, beta, y);
}

template <class T>
void linear(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w,
            Matrix<T const> const& bias, Matrix<T> const& y) {
  auto const b = bias.data();
  auto const out = y.data();
  int const columns = int(y.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::bias", detail::rows(exec, std::int64_t(y.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        auto const row = out + std::int64_t(team.league_rank()) * columns;
        detail::each(team, columns, [&](int j) { row[j] = b[j]; });
      });
  linear<T>(exec, x, w, y, T(1));
}

template <class T>
void linear_weight_gradient(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& dy,
                            Matrix<T> const& dw) {
  gemm<T>(exec, Op::transpose, Op::none, T(1), dy, x, T(0), dw);
}

template <class T>
void linear_input_gradient(Execution const& exec, Matrix<T const> const& w, Matrix<T const> const& dy,
                           Matrix<T> const& dx, T beta) {
  gemm<T>(exec, Op::none, Op::none, T(1), dy, w, beta, dx);
}

template <class T>
void sum_rows(Execution const& exec, Matrix<T const> const& x, Matrix<T> const& out) {
  auto const in = x.data();
  auto const sums = out.data();
  int const count = int(x.extent(0)), columns = int(x.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::sum_rows", detail::rows(exec, detail::strips(columns)),
      KOKKOS_LAMBDA(detail::Team const& team) {
        int const begin = team.league_rank() * detail::strip;
        int const n = columns - begin < detail::strip ? columns - begin : detail::strip;
        detail::sum_columns<T>(
            team, n, count, [&](int r, int j) { return in[std::int64_t(r) * columns + begin + j]; },
            [&](int j, T sum) { sums[begin + j] = sum; });
      });
}

template <class T>
void silu(Execution const& exec, Matrix<T const> const& x, Matrix<T> const& y) {
  auto const in = x.data();
  auto const out = y.data();
  Kokkos::parallel_for(
      "prowl::dit::silu", Kokkos::RangePolicy<Execution>(exec, 0, std::int64_t(x.size())),
      KOKKOS_LAMBDA(std::int64_t i) { out[i] = in[i] / (T(1) + math::exp(-in[i])); });
}

template <class T>
void silu_backward(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& dy,
                   Matrix<T> const& dx) {
  auto const in = x.data();
  auto const upstream = dy.data();
  auto const out = dx.data();
  Kokkos::parallel_for(
      "prowl::dit::silu_backward", Kokkos::RangePolicy<Execution>(exec, 0, std::int64_t(x.size())),
      KOKKOS_LAMBDA(std::int64_t i) {
        T const s = T(1) / (T(1) + math::exp(-in[i]));
        out[i] = upstream[i] * s * (T(1) + in[i] * (T(1) - s));
      });
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void linear<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,                  \
                          Matrix<T> const&, T);                                                              \
  template void linear<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,                  \
                          Matrix<T const> const&, Matrix<T> const&);                                         \
  template void linear_weight_gradient<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,  \
                                          Matrix<T> const&);                                                 \
  template void linear_input_gradient<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,   \
                                         Matrix<T> const&, T);                                               \
  template void sum_rows<T>(Execution const&, Matrix<T const> const&, Matrix<T> const&);                     \
  template void silu<T>(Execution const&, Matrix<T const> const&, Matrix<T> const&);                         \
  template void silu_backward<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,           \
                                 Matrix<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
