/// Between a whole matrix and the shards of it that a collective moves.
#pragma once

#include <prowl/core/bfloat16.hpp>
#include <prowl/core/types.hpp>

namespace prowl {

/// How the shards of a rows x columns matrix lie in an array of `ranks` parts of `part` elements each: rank r's rows, padded to
/// ceil(rows / ranks), begin at r * part + offset.
struct ShardedRows {
  std::int64_t rows, columns;
  int ranks;
  std::int64_t part, offset;
};

/// whole (rows * columns) <- the shards, without their padding. Throws Error where the sizes do not fit.
void join_shards(Execution const& exec, ShardedRows const& shape, Vector<float const> const& shards,
                 Vector<float> const& whole);
void join_shards(Execution const& exec, ShardedRows const& shape, Vector<bfloat16 const> const& shards,
                 Vector<float> const& whole);

/// The shards <- whole; their padding <- 0; other elements are left alone.
void split_shards(Execution const& exec, ShardedRows const& shape, Vector<float const> const& whole,
                  Vector<float> const& shards);

} // namespace prowl
