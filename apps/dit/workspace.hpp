/// The memory of a forward and a backward pass: everything but the parameters.
#pragma once

#include <dit/config.hpp>
#include <dit/layout.hpp>
#include <dit/loss.hpp>
#include <dit/mlp.hpp>
#include <dit/modulate.hpp>

#include <prowl/core/types.hpp>

#include <cstdint>
#include <vector>

namespace prowl::dit {

/// Hands out parts of one allocation; without one, only counts.
class Arena {
public:
  explicit Arena(char* base) : base_(base) {}

  template <class T>
  T* take(std::int64_t elements) {
    auto const at = used_;
    used_ += (elements * std::int64_t(sizeof(T)) + alignment - 1) / alignment * alignment;
    return base_ ? reinterpret_cast<T*>(base_ + at) : nullptr;
  }
  template <class T>
  Matrix<T> matrix(std::int64_t rows, std::int64_t columns) {
    return Matrix<T>(take<T>(rows * columns), rows, columns);
  }
  std::int64_t used() const { return used_; }

private:
  static constexpr std::int64_t alignment = 64;
  char* base_;
  std::int64_t used_ = 0;
};

/// What a block keeps of one stream, of N = samples * tokens rows.
template <class T>
struct StreamSpace {
  int tokens;           ///< of a sample
  int offset;           ///< of the first in the joint sequence
  Matrix<T> rope;       ///< empty for text
  Matrix<T> normalised; ///< LN(x) (1 + scale) + shift, the input of attention
  RowStatistics<T> statistics;
  Matrix<T> q, k, v;     ///< before the norms of heads
  Matrix<T> attended;    ///< the input of o
  Matrix<T> attn_branch; ///< the output of o
  Matrix<T> middle;      ///< the stream between attention and MLP
  Matrix<T> modulation[modulations], dmodulation[modulations];
  Matrix<T> dx; ///< the gradient of the stream
  // Both streams use the same memory for these.
  Matrix<T> mlp_normalised, mlp_branch;
  RowStatistics<T> mlp_statistics;
  MlpSpace<T> mlp;
};

template <class T>
struct EmbedSpace {
  Matrix<T> patches;                     ///< of x_t
  Matrix<T> time, time_first, time_silu; ///< the embedding, after the first linear, after SiLU
  Matrix<T> dtime;
  std::vector<Matrix<T>> text_normalised, dtext_normalised; ///< of each encoder, in the same memory
  std::vector<Matrix<T>> text_rows;                         ///< after its linear, in the same memory
  Vector<T> text_inverse_rms;
};

template <class T>
struct Workspace {
  /// For `samples` samples. Less samples fit wherever more do.
  Workspace(Arena& arena, ModelConfig const& config, int samples);

  int samples, heads, joint;
  PatchShape patch;
  Matrix<T> rope;
  std::vector<Matrix<T>> img, txt; ///< the streams before each block, and the image's after the last
  StreamSpace<T> img_space, txt_space;
  Batch<T> q, k, v, attended; ///< joint heads: (samples * heads) x joint x 64
  Batch<T> scores, dscores;   ///< of one sample: heads x joint x joint
  Matrix<T> norm_partials;
  Matrix<T> y, dy;                       ///< the condition vector
  Matrix<T> cond, condition, dcondition; ///< of a block: before SiLU, after it, its gradient
  EmbedSpace<T> embed;
  Matrix<T> prediction; ///< patches of the velocity, then their gradient
  Vector<double> loss_partials;

private:
  void take_stream(Arena& arena, ModelConfig const& config, StreamSpace<T>& space);
  void take_mlp(Arena& arena, ModelConfig const& config);
  void take_embed(Arena& arena, ModelConfig const& config);
};

/// Bytes that a model of `samples` samples holds beside its parameters.
template <class T>
std::int64_t activation_bytes(ModelConfig const& config, int samples);

} // namespace prowl::dit
