/// Which matrices are gathered together.
#pragma once

#include <prowl/placement/parameter.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace prowl {

/// Matrices whose shards one all-gather moves.
struct Bucket {
  struct Entry {
    std::size_t parameter; ///< index in the model's registration order
    std::int64_t offset;   ///< of its rows within one rank's part, elements
  };
  std::vector<Entry> entries;
  std::int64_t part = 0; ///< elements of one rank's part; the gathered bucket has ranks * part
};

/// Fills buckets greedily in the given order: a matrix opens a new bucket when it would push the gathered,
/// padded bytes over `cap` (arXiv:2608.20818, section 3.3). `element_bytes` is that of an element on the
/// wire. A matrix larger than the cap has a bucket to itself. Throws Error for an index, a number of
/// ranks or a size that is none.
std::vector<Bucket> fill_buckets(std::span<Parameter const> parameters, std::span<std::size_t const> order,
                                 int ranks, std::int64_t element_bytes, std::int64_t cap);

} // namespace prowl
