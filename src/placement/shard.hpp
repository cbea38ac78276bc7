/// Dimension-0 sharding, as FSDP2 lays it out: ceil(m / p) rows a rank, later ranks fewer, possibly none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace prowl {

/// Half-open.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// The rows that each rank has room for.
inline std::int64_t padded_rows(std::int64_t rows, int ranks) { return (rows + ranks - 1) / ranks; }

/// The rows that `rank` holds.
inline Range shard_rows(std::int64_t rows, int ranks, int rank) {
  auto const each = padded_rows(rows, ranks);
  return {std::min(rows, rank * each), std::min(rows, (rank + 1) * each)};
}

} // namespace prowl
