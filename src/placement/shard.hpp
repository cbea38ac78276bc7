/// Dimension-0 sharding, as FSDP2 lays it out: ceil(m / p) rows a rank, later ranks fewer, possibly none.
#pragma once

#include <cstdint>

namespace prowl {

/// Half-open.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// The rows that each rank has room for. Throws Error for less than one rank or negative rows.
std::int64_t padded_rows(std::int64_t rows, int ranks);

/// The rows that `rank` holds. Throws Error likewise, and for a rank that is not there.
Range shard_rows(std::int64_t rows, int ranks, int rank);

} // namespace prowl
