/// The arrangement of the ranks.
#pragma once

#include <prowl/comm/communicator.hpp>
#include <prowl/comm/mesh_place.hpp>

namespace prowl {

/// G replicate x R shard x T tensor ranks (hybrid sharding, and matrices split over a tensor group): ranks of one tensor group
/// are consecutive, then those of one shard group.
class Mesh {
public:
  /// Throws Error unless `replicate` * `tensor` divides the number of ranks. Collective.
  Mesh(Communicator const& world, int replicate = 1, int tensor = 1);

  Communicator const& world() const { return world_; }
  /// The R ranks that hold the parts of one copy of the model.
  Communicator const& shard() const { return shard_; }
  /// The G ranks that hold the same part.
  Communicator const& replicate() const { return replicate_; }
  /// The T ranks that hold the parts of split matrices.
  Communicator const& tensor() const { return tensor_; }
  /// This rank's.
  MeshPlace place() const {
    return {shard_.size(),     replicate_.size(), shard_.rank(),
            replicate_.rank(), tensor_.size(),    tensor_.rank()};
  }

private:
  Communicator world_, shard_, replicate_, tensor_;
};

} // namespace prowl
