#include <prowl/placement/shard.hpp>

#include <prowl/comm/mesh_place.hpp>
#include <prowl/core/index.hpp>

#include <algorithm>
#include <limits>

namespace prowl {

std::int64_t padded_rows(std::int64_t rows, int ranks) {
  require_between("ranks", ranks, 1, most_ranks);
  require_between("rows", rows, 0, std::numeric_limits<std::int64_t>::max() - most_ranks);
  return (rows + ranks - 1) / ranks;
}

Range shard_rows(std::int64_t rows, int ranks, int rank) {
  auto const each = padded_rows(rows, ranks);
  require_between("rank", rank, 0, ranks - 1);
  return {std::min(rows, rank * each), std::min(rows, (rank + 1) * each)};
}

} // namespace prowl
