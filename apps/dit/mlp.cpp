#include <dit/mlp.hpp>

#include <dit/detail/rows.hpp>
#include <dit/linear.hpp>

#include <prowl/core/math.hpp>

namespace prowl::dit {

namespace {

template <class T>
void swiglu(Execution const& exec, Matrix<T const> const& gate_up, Matrix<T> const& hidden) {
  auto const in = gate_up.data();
  auto const out = hidden.data();
  int const n = int(hidden.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::swiglu", detail::rows(exec, std::int64_t(hidden.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        auto const gate = in + std::int64_t(team.league_rank()) * 2 * n, up = gate + n;
        auto const to = out + std::int64_t(team.league_rank()) * n;
        detail::each(team, n, [&](int j) { to[j] = gate[j] / (T(1) + math::exp(-gate[j])) * up[j]; });
      });
}

/// gate_up becomes its own gradient.
template <class T>
void swiglu_backward(Execution const& exec, Matrix<T> const& gate_up, Matrix<T const> const& dhidden) {
  auto const inout = gate_up.data();
  auto const upstream = dhidden.data();
  int const n = int(dhidden.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::swiglu_backward", detail::rows(exec, std::int64_t(dhidden.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        auto const gate = inout + std::int64_t(team.league_rank()) * 2 * n, up = gate + n;
        auto const dh = upstream + std::int64_t(team.league_rank()) * n;
        detail::each(team, n, [&](int j) {
          T const g = gate[j], s = T(1) / (T(1) + math::exp(-g));
          gate[j] = dh[j] * up[j] * s * (T(1) + g * (T(1) - s));
          up[j] = dh[j] * g * s;
        });
      });
}

} // namespace

template <class T>
void mlp(Execution const& exec, MlpWeights<T> const& w, Matrix<T const> const& x, MlpSpace<T> const& space,
         Matrix<T> const& y) {
  linear<T>(exec, x, w.gate_up, w.gate_up_bias, space.gate_up);
  swiglu<T>(exec, space.gate_up, space.hidden);
  linear<T>(exec, space.hidden, w.down, w.down_bias, y);
}

template <class T>
void mlp_backward(Execution const& exec, MlpWeights<T> const& w, Matrix<T const> const& x,
                  MlpSpace<T> const& space, Matrix<T> const& dy, MlpGradients<T> const& gradients) {
  linear_weight_gradient<T>(exec, space.hidden, dy, gradients.down);
  sum_rows<T>(exec, dy, gradients.down_bias);
  linear_input_gradient<T>(exec, w.down, dy, space.hidden);
  swiglu_backward<T>(exec, space.gate_up, space.hidden);
  linear_weight_gradient<T>(exec, x, space.gate_up, gradients.gate_up);
  sum_rows<T>(exec, space.gate_up, gradients.gate_up_bias);
  linear_input_gradient<T>(exec, w.gate_up, space.gate_up, dy);
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void mlp<T>(Execution const&, MlpWeights<T> const&, Matrix<T const> const&, MlpSpace<T> const&,   \
                       Matrix<T> const&);                                                                    \
  template void mlp_backward<T>(Execution const&, MlpWeights<T> const&, Matrix<T const> const&,              \
                                MlpSpace<T> const&, Matrix<T> const&, MlpGradients<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
