#include <dit/modulate.hpp>

#include <dit/detail/rows.hpp>
#include <dit/rms_norm.hpp>

#include <prowl/core/math.hpp>

namespace prowl::dit {

template <class T>
void modulate(Execution const& exec, int tokens, Matrix<T const> const& x, Matrix<T const> const& shift,
              Matrix<T const> const& scale, Matrix<T> const& a, RowStatistics<T> const& statistics) {
  auto const in = x.data(), shifts = shift.data(), scales = scale.data();
  auto const out = a.data(), means = statistics.mean.data(), inverses = statistics.inverse_deviation.data();
  int const d = int(x.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::modulate", detail::rows(exec, std::int64_t(x.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const i = team.league_rank();
        auto const row = in + i * d;
        auto const to = out + i * d;
        auto const sh = shifts + (i / tokens) * d, sc = scales + (i / tokens) * d;
        T const mean = detail::sum<T>(team, d, [&](int j) { return row[j]; }) / T(d);
        T const variance =
            detail::sum<T>(team, d, [&](int j) { return (row[j] - mean) * (row[j] - mean); }) / T(d);
        T const inverse = T(1) / math::sqrt(variance + T(norm_eps));
        detail::each(team, d, [&](int j) { to[j] = (row[j] - mean) * inverse * (T(1) + sc[j]) + sh[j]; });
        if (team.team_rank() == 0) {
          means[i] = mean;
          inverses[i] = inverse;
        }
      });
}

namespace {

template <class T>
void modulate_input_gradient(Execution const& exec, int tokens, Matrix<T const> const& x,
                             Matrix<T const> const& scale, RowStatistics<T> const& statistics,
                             Matrix<T const> const& da, Matrix<T> const& dx) {
  auto const in = x.data(), scales = scale.data(), upstream = da.data();
  auto const means = statistics.mean.data(), inverses = statistics.inverse_deviation.data(), out = dx.data();
  int const d = int(x.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::modulate_input_gradient", detail::rows(exec, std::int64_t(x.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const i = team.league_rank();
        auto const row = in + i * d, up = upstream + i * d, sc = scales + (i / tokens) * d;
        auto const to = out + i * d;
        T const mean = means[i], inverse = inverses[i];
        T const g = detail::sum<T>(team, d, [&](int j) { return up[j] * (T(1) + sc[j]); }) / T(d);
        T const gx =
            detail::sum<T>(team, d,
                           [&](int j) { return up[j] * (T(1) + sc[j]) * ((row[j] - mean) * inverse); }) /
            T(d);
        detail::each(team, d, [&](int j) {
          to[j] += inverse * (up[j] * (T(1) + sc[j]) - g - (row[j] - mean) * inverse * gx);
        });
      });
}

} // namespace

template <class T>
void modulate_backward(Execution const& exec, int tokens, Matrix<T const> const& x,
                       Matrix<T const> const& scale, RowStatistics<T> const& statistics,
                       Matrix<T const> const& da, Matrix<T> const& dx, Matrix<T> const& dshift,
                       Matrix<T> const& dscale) {
  modulate_input_gradient<T>(exec, tokens, x, scale, statistics, da, dx);
  auto const in = x.data(), upstream = da.data();
  auto const means = statistics.mean.data(), inverses = statistics.inverse_deviation.data();
  auto const dsh = dshift.data(), dsc = dscale.data();
  int const d = int(x.extent(1)), strips = int(detail::strips(d));
  Kokkos::parallel_for(
      "prowl::dit::modulate_weight_gradient", detail::rows(exec, std::int64_t(scale.extent(0)) * strips),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank() / strips;
        int const begin = (team.league_rank() % strips) * detail::strip;
        int const n = d - begin < detail::strip ? d - begin : detail::strip;
        auto const first = sample * tokens;
        auto const x0 = in + first * d + begin, up = upstream + first * d + begin;
        detail::sum_columns<T>(
            team, n, tokens, [&](int r, int j) { return up[std::int64_t(r) * d + j]; },
            [&](int j, T sum) { dsh[sample * d + begin + j] = sum; });
        detail::sum_columns<T>(
            team, n, tokens,
            [&](int r, int j) {
              auto const at = std::int64_t(r) * d + j;
              return up[at] * (x0[at] - means[first + r]) * inverses[first + r];
            },
            [&](int j, T sum) { dsc[sample * d + begin + j] = sum; });
      });
}

template <class T>
void gated_residual(Execution const& exec, int tokens, Matrix<T const> const& x, Matrix<T const> const& gate,
                    Matrix<T const> const& branch, Matrix<T> const& out) {
  auto const in = x.data(), gates = gate.data(), b = branch.data();
  auto const to = out.data();
  int const d = int(x.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::gated_residual", detail::rows(exec, std::int64_t(x.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const i = team.league_rank(), at = i * d;
        auto const g = gates + (i / tokens) * d;
        detail::each(team, d, [&](int j) { to[at + j] = in[at + j] + g[j] * b[at + j]; });
      });
}

template <class T>
void gated_residual_backward(Execution const& exec, int tokens, Matrix<T const> const& gate,
                             Matrix<T const> const& dout, Matrix<T> const& branch, Matrix<T> const& dgate) {
  auto const gates = gate.data(), upstream = dout.data();
  auto const b = branch.data(), dg = dgate.data();
  int const d = int(gate.extent(1)), strips = int(detail::strips(d));
  Kokkos::parallel_for(
      "prowl::dit::gated_residual_backward", detail::rows(exec, std::int64_t(gate.extent(0)) * strips),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank() / strips;
        int const begin = (team.league_rank() % strips) * detail::strip;
        int const n = d - begin < detail::strip ? d - begin : detail::strip;
        auto const first = sample * tokens * d + begin;
        auto const g = gates + sample * d + begin;
        detail::sum_columns<T>(
            team, n, tokens,
            [&](int r, int j) {
              auto const at = first + std::int64_t(r) * d + j;
              T const product = upstream[at] * b[at];
              b[at] = upstream[at] * g[j];
              return product;
            },
            [&](int j, T sum) { dg[sample * d + begin + j] = sum; });
      });
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void modulate<T>(Execution const&, int, Matrix<T const> const&, Matrix<T const> const&,           \
                            Matrix<T const> const&, Matrix<T> const&, RowStatistics<T> const&);              \
  template void modulate_backward<T>(Execution const&, int, Matrix<T const> const&, Matrix<T const> const&,  \
                                     RowStatistics<T> const&, Matrix<T const> const&, Matrix<T> const&,      \
                                     Matrix<T> const&, Matrix<T> const&);                                    \
  template void gated_residual<T>(Execution const&, int, Matrix<T const> const&, Matrix<T const> const&,     \
                                  Matrix<T const> const&, Matrix<T> const&);                                 \
  template void gated_residual_backward<T>(Execution const&, int, Matrix<T const> const&,                    \
                                           Matrix<T const> const&, Matrix<T> const&, Matrix<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
