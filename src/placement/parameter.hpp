/// The description of one trainable array; holds no data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prowl {

/// A matrix of which each rank of a tensor group has a part, cut as shard_rows cuts.
struct TensorSplit {
  int dimension;       ///< 0: by rows; 1: by columns
  std::int64_t extent; ///< of the whole matrix in that dimension
};

/// Elements of one parameter, so that bytes of all ranks' parts are 64-bit numbers.
inline constexpr std::int64_t largest_parameter = std::int64_t{1} << 36;

/// Shapes are row-major; `rows` is dimension 0, along which sharding cuts. A vector of n elements is n x 1.
struct Parameter {
  std::string name;                      ///< as in checkpoints, e.g. "blocks.3.img.attn.q.weight"
  std::vector<std::int64_t> shape;       ///< one or two dimensions: {out} or {out, in}
  std::string unit;                      ///< what is materialised together, e.g. "blocks.3"
  std::optional<TensorSplit> split = {}; ///< then `shape` is that of this rank's part

  bool is_matrix() const { return shape.size() == 2; }
  std::int64_t rows() const { return shape[0]; }
  std::int64_t columns() const { return is_matrix() ? shape[1] : 1; }
  std::int64_t size() const { return rows() * columns(); }
  /// Of the whole matrix.
  std::int64_t whole_rows() const { return split && split->dimension == 0 ? split->extent : rows(); }
  std::int64_t whole_columns() const { return split && split->dimension == 1 ? split->extent : columns(); }
};

/// Throws Error naming the parameter unless its shape has one or two dimensions of at least 1, and at most
/// `largest_parameter` elements.
void require_shape(Parameter const& parameter);

/// Of the whole matrix: then the rows of the oriented matrix are its columns.
inline bool is_tall(Parameter const& p) { return p.whole_rows() > p.whole_columns(); }

} // namespace prowl
