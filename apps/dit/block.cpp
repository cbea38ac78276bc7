#include <dit/block.hpp>

#include <dit/attention.hpp>
#include <dit/heads.hpp>
#include <dit/linear.hpp>

namespace prowl::dit {

namespace {

/// A stream of a block at work. The last block's text stream is not whole: it only feeds attention.
template <class T>
struct Stream {
  Parameters<T> const& p;
  StreamIndex const& index;
  StreamSpace<T>& space;
  Matrix<T> x; ///< the block's input
  bool whole;

  auto weight(std::size_t StreamIndex::*which) const { return p.weight(index.*which); }
  auto gradient(std::size_t StreamIndex::*which) const { return p.gradient(index.*which); }
  int modulation_count() const { return whole ? int(modulations) : int(attn_gate); }
  MlpWeights<T> mlp_weights() const {
    return {p.weight(index.gate_up), p.weight(index.gate_up_bias), p.weight(index.down),
            p.weight(index.down_bias)};
  }
  MlpGradients<T> mlp_gradients() const {
    return {p.gradient(index.gate_up), p.gradient(index.gate_up_bias), p.gradient(index.down),
            p.gradient(index.down_bias)};
  }
};

template <class T>
struct Streams {
  Stream<T> txt, img;
};

template <class T>
Streams<T> streams(Parameters<T> const& p, BlockIndex const& index, int l, Workspace<T>& w) {
  bool const last = std::size_t(l) + 1 == w.txt.size();
  return {{p, index.txt, w.txt_space, w.txt[l], !last}, {p, index.img, w.img_space, w.img[l], true}};
}

template <class T>
HeadShape head_shape(Workspace<T> const& w, StreamSpace<T> const& space) {
  return {w.samples, w.heads, space.tokens, w.joint, space.offset};
}

/// u = SiLU(cond(y)) and the modulations from it.
template <class T>
void condition(Execution const& exec, Parameters<T> const& p, BlockIndex const& index, Streams<T> const& both,
               Workspace<T>& w) {
  linear<T>(exec, w.y, p.weight(index.cond), p.weight(index.cond_bias), w.cond);
  silu<T>(exec, w.cond, w.condition);
  for (auto const* s : {&both.img, &both.txt})
    for (int m = 0; m < s->modulation_count(); ++m)
      linear<T>(exec, w.condition, p.weight(s->index.modulation[m]), s->space.modulation[m]);
}

template <class T>
void condition_backward(Execution const& exec, Parameters<T> const& p, BlockIndex const& index,
                        Streams<T> const& both, Workspace<T>& w) {
  T beta = 0;
  for (auto const* s : {&both.img, &both.txt})
    for (int m = 0; m < s->modulation_count(); ++m) {
      auto const& dm = s->space.dmodulation[m];
      linear_weight_gradient<T>(exec, w.condition, dm, p.gradient(s->index.modulation[m]));
      linear_input_gradient<T>(exec, p.weight(s->index.modulation[m]), dm, w.dcondition, beta);
      beta = 1;
    }
  silu_backward<T>(exec, w.cond, w.dcondition, w.dcondition);
  linear_weight_gradient<T>(exec, w.y, w.dcondition, p.gradient(index.cond));
  sum_rows<T>(exec, w.dcondition, p.gradient(index.cond_bias));
  linear_input_gradient<T>(exec, p.weight(index.cond), w.dcondition, w.dy, T(1));
}

/// The stream's q, k and v, to the joint heads.
template <class T>
void project(Execution const& exec, Stream<T> const& s, Workspace<T>& w) {
  auto& space = s.space;
  auto const shape = head_shape(w, space);
  modulate<T>(exec, space.tokens, s.x, space.modulation[attn_shift], space.modulation[attn_scale],
              space.normalised, space.statistics);
  linear<T>(exec, space.normalised, s.weight(&StreamIndex::q), space.q);
  linear<T>(exec, space.normalised, s.weight(&StreamIndex::k), space.k);
  linear<T>(exec, space.normalised, s.weight(&StreamIndex::v), space.v);
  norm_to_heads<T>(exec, shape, space.q, s.weight(&StreamIndex::q_norm), space.rope, w.q);
  norm_to_heads<T>(exec, shape, space.k, s.weight(&StreamIndex::k_norm), space.rope, w.k);
  to_heads<T>(exec, shape, space.v, w.v);
}

/// From the joint heads' gradients to those of q, k and v and of the block's input.
template <class T>
void project_backward(Execution const& exec, Stream<T> const& s, Workspace<T>& w) {
  auto& space = s.space;
  auto const shape = head_shape(w, space);
  norm_to_heads_backward<T>(exec, shape, w.attended, s.weight(&StreamIndex::q_norm), space.rope, space.q,
                            w.norm_partials, s.gradient(&StreamIndex::q_norm));
  norm_to_heads_backward<T>(exec, shape, w.k, s.weight(&StreamIndex::k_norm), space.rope, space.k,
                            w.norm_partials, s.gradient(&StreamIndex::k_norm));
  from_heads<T>(exec, shape, w.v, space.v);
  linear_weight_gradient<T>(exec, space.normalised, space.q, s.gradient(&StreamIndex::q));
  linear_weight_gradient<T>(exec, space.normalised, space.k, s.gradient(&StreamIndex::k));
  linear_weight_gradient<T>(exec, space.normalised, space.v, s.gradient(&StreamIndex::v));
  auto const& dnormalised = space.attn_branch;
  linear_input_gradient<T>(exec, s.weight(&StreamIndex::q), space.q, dnormalised);
  linear_input_gradient<T>(exec, s.weight(&StreamIndex::k), space.k, dnormalised, T(1));
  linear_input_gradient<T>(exec, s.weight(&StreamIndex::v), space.v, dnormalised, T(1));
  modulate_backward<T>(exec, space.tokens, s.x, space.modulation[attn_scale], space.statistics, dnormalised,
                       space.dx, space.dmodulation[attn_shift], space.dmodulation[attn_scale]);
}

/// x + gate * o(attended).
template <class T>
void attention_output(Execution const& exec, Stream<T> const& s, Workspace<T>& w) {
  auto& space = s.space;
  from_heads<T>(exec, head_shape(w, space), w.attended, space.attended);
  linear<T>(exec, space.attended, s.weight(&StreamIndex::o), space.attn_branch);
  gated_residual<T>(exec, space.tokens, s.x, space.modulation[attn_gate], space.attn_branch, space.middle);
}

template <class T>
void attention_output_backward(Execution const& exec, Stream<T> const& s, Workspace<T>& w) {
  auto& space = s.space;
  gated_residual_backward<T>(exec, space.tokens, space.modulation[attn_gate], space.dx, space.attn_branch,
                             space.dmodulation[attn_gate]);
  linear_weight_gradient<T>(exec, space.attended, space.attn_branch, s.gradient(&StreamIndex::o));
  linear_input_gradient<T>(exec, s.weight(&StreamIndex::o), space.attn_branch, space.attended);
  to_heads<T>(exec, head_shape(w, space), space.attended, w.attended);
}

/// The MLP's branch of the stream, not yet added.
template <class T>
void mlp_branch(Execution const& exec, Stream<T> const& s) {
  auto& space = s.space;
  modulate<T>(exec, space.tokens, space.middle, space.modulation[mlp_shift], space.modulation[mlp_scale],
              space.mlp_normalised, space.mlp_statistics);
  mlp<T>(exec, s.mlp_weights(), space.mlp_normalised, space.mlp, space.mlp_branch);
}

/// Computes the branch again, then its gradients.
template <class T>
void mlp_branch_backward(Execution const& exec, Stream<T> const& s) {
  auto& space = s.space;
  mlp_branch(exec, s);
  gated_residual_backward<T>(exec, space.tokens, space.modulation[mlp_gate], space.dx, space.mlp_branch,
                             space.dmodulation[mlp_gate]);
  mlp_backward<T>(exec, s.mlp_weights(), space.mlp_normalised, space.mlp, space.mlp_branch,
                  s.mlp_gradients());
  modulate_backward<T>(exec, space.tokens, space.middle, space.modulation[mlp_scale], space.mlp_statistics,
                       space.mlp_branch, space.dx, space.dmodulation[mlp_shift],
                       space.dmodulation[mlp_scale]);
}

/// Up to the streams between attention and MLP.
template <class T>
void attention_half(Execution const& exec, Parameters<T> const& p, BlockIndex const& index,
                    Streams<T> const& both, Workspace<T>& w) {
  condition(exec, p, index, both, w);
  project(exec, both.txt, w);
  project(exec, both.img, w);
  attention<T>(exec, w.heads, w.q, w.k, w.v, w.scores, w.attended);
  if (both.txt.whole) attention_output(exec, both.txt, w);
  attention_output(exec, both.img, w);
}

} // namespace

template <class T>
void block(Execution const& exec, Parameters<T> const& p, BlockIndex const& index, int l, Workspace<T>& w) {
  auto const both = streams(p, index, l, w);
  attention_half(exec, p, index, both, w);
  auto const add = [&](Stream<T> const& s, Matrix<T> const& out) {
    mlp_branch(exec, s);
    gated_residual<T>(exec, s.space.tokens, s.space.middle, s.space.modulation[mlp_gate], s.space.mlp_branch,
                      out);
  };
  if (both.txt.whole) add(both.txt, w.txt[l + 1]);
  add(both.img, w.img[l + 1]);
}

template <class T>
void block_backward(Execution const& exec, Parameters<T> const& p, BlockIndex const& index, int l,
                    Workspace<T>& w) {
  auto const both = streams(p, index, l, w);
  attention_half(exec, p, index, both, w);
  mlp_branch_backward(exec, both.img);
  attention_output_backward(exec, both.img, w);
  if (both.txt.whole) {
    mlp_branch_backward(exec, both.txt);
    attention_output_backward(exec, both.txt, w);
  } else {
    auto const& space = both.txt.space;
    Kokkos::deep_copy(exec, space.dx, T(0));
    Kokkos::deep_copy(exec, space.attended, T(0));
    to_heads<T>(exec, head_shape(w, space), space.attended, w.attended);
  }
  attention_backward<T>(exec, w.heads, w.q, w.k, w.v, w.scores, w.dscores, w.attended);
  project_backward(exec, both.img, w);
  project_backward(exec, both.txt, w);
  condition_backward(exec, p, index, both, w);
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void block<T>(Execution const&, Parameters<T> const&, BlockIndex const&, int, Workspace<T>&);     \
  template void block_backward<T>(Execution const&, Parameters<T> const&, BlockIndex const&, int,            \
                                  Workspace<T>&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
