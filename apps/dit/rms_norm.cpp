#include <dit/rms_norm.hpp>

#include <dit/detail/rows.hpp>

#include <prowl/core/math.hpp>

namespace prowl::dit {

template <class T>
void rms_norm(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w,
              Matrix<T const> const& scalar, Matrix<T> const& y, Vector<T> const& inverse_rms) {
  auto const in = x.data(), weight = w.data(), s = scalar.data();
  auto const out = y.data(), inverse = inverse_rms.data();
  int const columns = int(x.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::rms_norm", detail::rows(exec, std::int64_t(x.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        auto const row = in + std::int64_t(team.league_rank()) * columns;
        auto const to = out + std::int64_t(team.league_rank()) * columns;
        T const squares = detail::sum<T>(team, columns, [&](int j) { return row[j] * row[j]; });
        T const r = T(1) / math::sqrt(squares / T(columns) + T(norm_eps));
        T const factor = r * s[0];
        detail::each(team, columns, [&](int j) { to[j] = row[j] * factor * weight[j]; });
        if (team.team_rank() == 0) inverse[team.league_rank()] = r;
      });
}

template <class T>
void rms_norm_backward(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w,
                       Matrix<T const> const& scalar, Vector<T> const& inverse_rms, Matrix<T const> const& dy,
                       Matrix<T> const& dw, Matrix<T> const& dscalar) {
  auto const in = x.data(), weight = w.data(), s = scalar.data(), upstream = dy.data();
  auto const inverse = inverse_rms.data(), dweight = dw.data(), ds = dscalar.data();
  int const count = int(x.extent(0)), columns = int(x.extent(1));
  // First dw = sum of dy x / rms, without the scalar; then the scalar's gradient is w . dw.
  Kokkos::parallel_for(
      "prowl::dit::rms_norm_weight", detail::rows(exec, detail::strips(columns)),
      KOKKOS_LAMBDA(detail::Team const& team) {
        int const begin = team.league_rank() * detail::strip;
        int const n = columns - begin < detail::strip ? columns - begin : detail::strip;
        detail::sum_columns<T>(
            team, n, count,
            [&](int r, int j) {
              auto const at = std::int64_t(r) * columns + begin + j;
              return upstream[at] * in[at] * inverse[r];
            },
            [&](int j, T sum) { dweight[begin + j] = sum; });
      });
  Kokkos::parallel_for(
      "prowl::dit::rms_norm_scalar", detail::rows(exec, 1), KOKKOS_LAMBDA(detail::Team const& team) {
        T const total = detail::sum<T>(team, columns, [&](int j) { return weight[j] * dweight[j]; });
        team.team_barrier();
        detail::each(team, columns, [&](int j) { dweight[j] *= s[0]; });
        if (team.team_rank() == 0) ds[0] = total;
      });
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void rms_norm<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,                \
                            Matrix<T const> const&, Matrix<T> const&, Vector<T> const&);                     \
  template void rms_norm_backward<T>(Execution const&, Matrix<T const> const&, Matrix<T const> const&,       \
                                     Matrix<T const> const&, Vector<T> const&, Matrix<T const> const&,       \
                                     Matrix<T> const&, Matrix<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
