/// The parameters of an MMDiT: names, shapes, order, units and initial values.
#pragma once

#include <dit/config.hpp>

#include <prowl/placement/parameter.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prowl::dit {

/// The parameters in registration order: units "embed", "blocks.0", ..., "final", the order of a forward
/// pass.
std::vector<Parameter> parameters(ModelConfig const& config);

struct Counts {
  std::int64_t trainable;
  std::int64_t total; ///< with the buffers: 16 rotary frequencies a block
  std::int64_t muon;  ///< in the matrices of the blocks
};
Counts counts(ModelConfig const& config);

/// True for the matrices of the blocks, the targets of Muon.
bool is_muon_target(Parameter const& parameter);

enum class Initial {
  zero,
  one,
  normal, ///< of standard deviation `initial_deviation`
};
inline constexpr double initial_deviation = 0.02;
/// Ones for norms and text scalars; zeros for biases, gates and the last linear; normal for the other
/// matrices.
Initial initial_value(Parameter const& parameter);

/// Indices into parameters().
struct EncoderIndex {
  std::size_t norm, scalar, linear;
};
struct EmbedIndex {
  std::size_t img_in, img_in_bias;
  std::vector<EncoderIndex> text;
  std::size_t pooled_in, time_first, time_second;
};
enum Modulation { attn_shift, attn_scale, attn_gate, mlp_shift, mlp_scale, mlp_gate, modulations };
/// Of the last block's text stream only the modulations attn_shift and attn_scale, q, k, v and the norms
/// exist.
struct StreamIndex {
  std::size_t modulation[modulations];
  std::size_t q, k, v, o, q_norm, k_norm;
  std::size_t gate_up, gate_up_bias, down, down_bias;
};
struct BlockIndex {
  StreamIndex img, txt;
  std::size_t cond, cond_bias;
};
struct FinalIndex {
  std::size_t shift, scale, linear, linear_bias;
};

struct ModelIndex {
  std::vector<Parameter> parameters;
  EmbedIndex embed;
  std::vector<BlockIndex> blocks;
  FinalIndex final;
};
ModelIndex model_index(ModelConfig const& config);

} // namespace prowl::dit
