/// Between a stream's rows of tokens, (samples * tokens) x d, and the joint heads of attention,
/// (samples * heads) x joint tokens x 64, in which a stream's tokens start at an offset.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

struct HeadShape {
  int samples, heads;
  int tokens; ///< of this stream, in a sample
  int joint;  ///< of both streams, in a sample
  int offset; ///< of this stream's first token in the joint sequence
};

/// Copies rows to their places among the joint heads.
template <class T>
void to_heads(Execution const& exec, HeadShape shape, Matrix<T const> const& rows, Batch<T> const& heads);
/// Copies them back.
template <class T>
void from_heads(Execution const& exec, HeadShape shape, Batch<T const> const& heads, Matrix<T> const& rows);

/// As to_heads, each head normalised (RMSNorm with the weight of 64), then, where `rope` is not empty,
/// rotated.
template <class T>
void norm_to_heads(Execution const& exec, HeadShape shape, Matrix<T const> const& rows,
                   Matrix<T const> const& weight, Matrix<T const> const& rope, Batch<T> const& heads);

/// The least rows of the scratch that norm_to_heads_backward needs for its partial sums, of 64 columns.
std::int64_t head_norm_partials(HeadShape shape);

/// The gradient of norm_to_heads: `rows` holds its input and becomes the input's gradient; dweight is
/// overwritten.
template <class T>
void norm_to_heads_backward(Execution const& exec, HeadShape shape, Batch<T const> const& dheads,
                            Matrix<T const> const& weight, Matrix<T const> const& rope, Matrix<T> const& rows,
                            Matrix<T> const& partials, Matrix<T> const& dweight);

} // namespace prowl::dit
