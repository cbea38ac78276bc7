/// A rank's coordinates in a mesh.
#pragma once

namespace prowl {

/// A rank of a mesh of `replicas` x `shards` x `tensors` ranks.
struct MeshPlace {
  int shards = 1, replicas = 1;
  int shard = 0, replica = 0; ///< of this rank
  int tensors = 1, tensor = 0;
  bool operator==(MeshPlace const&) const = default;
};

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
