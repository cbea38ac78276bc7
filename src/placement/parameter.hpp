/// The description of one trainable array; holds no data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prowl {

/// Shapes are row-major; `rows` is dimension 0, along which sharding cuts. A vector of n elements is n x 1.
struct Parameter {
  std::string name;                ///< as in checkpoints, e.g. "blocks.3.img.attn.q.weight"
  std::vector<std::int64_t> shape; ///< one or two dimensions: {out} or {out, in}
  std::string unit;                ///< what is materialised together, e.g. "blocks.3"

  bool is_matrix() const { return shape.size() == 2; }
  std::int64_t rows() const { return shape[0]; }
  std::int64_t columns() const { return is_matrix() ? shape[1] : 1; }
  std::int64_t size() const { return rows() * columns(); }
};

} // namespace prowl
