#include <dit/final.hpp>

#include <dit/linear.hpp>

namespace prowl::dit {

template <class T>
void final_layer(Execution const& exec, Parameters<T> const& p, FinalIndex const& index, Workspace<T>& w) {
  auto& s = w.img_space;
  silu<T>(exec, w.y, w.condition);
  linear<T>(exec, w.condition, p.weight(index.shift), s.modulation[attn_shift]);
  linear<T>(exec, w.condition, p.weight(index.scale), s.modulation[attn_scale]);
  modulate<T>(exec, s.tokens, w.img.back(), s.modulation[attn_shift], s.modulation[attn_scale], s.normalised,
              s.statistics);
  linear<T>(exec, s.normalised, p.weight(index.linear), p.weight(index.linear_bias), w.prediction);
}

template <class T>
void final_layer_backward(Execution const& exec, Parameters<T> const& p, FinalIndex const& index,
                          Workspace<T>& w) {
  auto& s = w.img_space;
  linear_weight_gradient<T>(exec, s.normalised, w.prediction, p.gradient(index.linear));
  sum_rows<T>(exec, w.prediction, p.gradient(index.linear_bias));
  auto const& dnormalised = s.attn_branch;
  linear_input_gradient<T>(exec, p.weight(index.linear), w.prediction, dnormalised);
  Kokkos::deep_copy(exec, s.dx, T(0));
  modulate_backward<T>(exec, s.tokens, w.img.back(), s.modulation[attn_scale], s.statistics, dnormalised,
                       s.dx, s.dmodulation[attn_shift], s.dmodulation[attn_scale]);
  linear_weight_gradient<T>(exec, w.condition, s.dmodulation[attn_shift], p.gradient(index.shift));
  linear_weight_gradient<T>(exec, w.condition, s.dmodulation[attn_scale], p.gradient(index.scale));
  linear_input_gradient<T>(exec, p.weight(index.shift), s.dmodulation[attn_shift], w.dy);
  linear_input_gradient<T>(exec, p.weight(index.scale), s.dmodulation[attn_scale], w.dy, T(1));
  silu_backward<T>(exec, w.y, w.dy, w.dy);
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void final_layer<T>(Execution const&, Parameters<T> const&, FinalIndex const&, Workspace<T>&);    \
  template void final_layer_backward<T>(Execution const&, Parameters<T> const&, FinalIndex const&,           \
                                        Workspace<T>&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
