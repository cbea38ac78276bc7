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

} // namespace prowl
