#include <prowl/kernels/shards.hpp>

#include <prowl/core/error.hpp>

namespace prowl {

namespace {

/// Elements of a shard that a work item moves: on the host a plain loop, which compilers vectorise; on a device one.
constexpr std::int64_t block = host_accessible ? 4096 : 1;

/// visit(element of the whole, element of the shards), and pad(element of the shards).
template <class Visit, class Pad>
struct Shards {
  ShardedRows shape;
  std::int64_t shard, blocks; ///< elements of one, and its work items
  Visit visit;
  Pad pad;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    auto const rank = item / blocks, begin = item % blocks * block;
    auto const end = begin + block < shard ? begin + block : shard;
    auto const first = rank * shard, there = rank * shape.part + shape.offset;
    auto const size = shape.rows * shape.columns;
    auto const filled = end < size - first ? end : size - first;
    Visit const local = visit;
    for (std::int64_t k = begin; k < filled; ++k) local(first + k, there + k);
    for (std::int64_t k = filled > begin ? filled : begin; k < end; ++k) pad(there + k);
  }
};

template <class Visit, class Pad>
void for_each_element(char const* name, Execution const& exec, ShardedRows const& shape, std::size_t whole,
                      std::size_t shards, Visit const& visit, Pad const& pad) {
  if (shape.rows < 0 || shape.columns < 0 || shape.ranks < 1 || shape.part < 0 || shape.offset < 0)
    throw Error(
        "{}: a {} x {} matrix in {} parts of {}, at {}: expected no negative number and a part at least",
        name, shape.rows, shape.columns, shape.ranks, shape.part, shape.offset);
  auto const shard = (shape.rows + shape.ranks - 1) / shape.ranks * shape.columns;
  if (std::int64_t(whole) != shape.rows * shape.columns || shape.offset + shard > shape.part ||
      std::int64_t(shards) < (shape.ranks - 1) * shape.part + shape.offset + shard)
    throw Error("{}: {} elements of a whole {} x {} matrix, {} of its shards in {} parts of {}, at {}", name,
                whole, shape.rows, shape.columns, shards, shape.ranks, shape.part, shape.offset);
  if (shard == 0) return;
  auto const blocks = (shard + block - 1) / block;
  Kokkos::parallel_for(name, Kokkos::RangePolicy<Execution>(exec, 0, shape.ranks * blocks),
                       Shards<Visit, Pad>{shape, shard, blocks, visit, pad});
}

KOKKOS_INLINE_FUNCTION float as_float(float value) { return value; }
KOKKOS_INLINE_FUNCTION float as_float(bfloat16 value) { return value.to_float(); }

template <class T>
void join(Execution const& exec, ShardedRows const& shape, Vector<T const> const& shards,
          Vector<float> const& whole) {
  auto const from = shards.data();
  auto const to = whole.data();
  for_each_element(
      "prowl::join_shards", exec, shape, whole.size(), shards.size(),
      KOKKOS_LAMBDA(std::int64_t w, std::int64_t s) { to[w] = as_float(from[s]); },
      KOKKOS_LAMBDA(std::int64_t){});
}

} // namespace

void join_shards(Execution const& exec, ShardedRows const& shape, Vector<float const> const& shards,
                 Vector<float> const& whole) {
  join<float>(exec, shape, shards, whole);
}

void join_shards(Execution const& exec, ShardedRows const& shape, Vector<bfloat16 const> const& shards,
                 Vector<float> const& whole) {
  join<bfloat16>(exec, shape, shards, whole);
}

void split_shards(Execution const& exec, ShardedRows const& shape, Vector<float const> const& whole,
                  Vector<float> const& shards) {
  auto const from = whole.data();
  auto const to = shards.data();
  for_each_element(
      "prowl::split_shards", exec, shape, whole.size(), shards.size(),
      KOKKOS_LAMBDA(std::int64_t w, std::int64_t s) { to[s] = from[w]; },
      KOKKOS_LAMBDA(std::int64_t s) { to[s] = 0; });
}

} // namespace prowl
