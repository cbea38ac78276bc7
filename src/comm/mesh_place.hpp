/// A rank's coordinates in a mesh.
#pragma once

#include <cstdint>

namespace prowl {

inline constexpr std::int64_t most_ranks = std::int64_t{1} << 20;

/// A rank of a mesh of `replicas` x `shards` x `tensors` ranks.
struct MeshPlace {
  int shards = 1, replicas = 1;
  int shard = 0, replica = 0; ///< of this rank
  int tensors = 1, tensor = 0;
  bool operator==(MeshPlace const&) const = default;
};

/// Throws Error unless every extent is at least 1, their product at most `most_ranks`, and the rank one of
/// them.
void require_place(MeshPlace const& place);

/// The groups of ranks that a rank is in.
enum class Axis { shard, replicate, tensor, world };

/// Ranks of that group.
inline int size(MeshPlace const& place, Axis axis) {
  switch (axis) {
  case Axis::shard:
    return place.shards;
  case Axis::replicate:
    return place.replicas;
  case Axis::tensor:
    return place.tensors;
  case Axis::world:
    return place.shards * place.replicas * place.tensors;
  }
  return 1;
}

} // namespace prowl
