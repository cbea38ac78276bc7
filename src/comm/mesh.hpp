/// The arrangement of the ranks.
#pragma once

#include <prowl/comm/communicator.hpp>

namespace prowl {

/// G replicate x R shard ranks (hybrid sharding): ranks of one shard group are consecutive. A tensor axis is
/// reserved.
class Mesh {
public:
  /// Throws Error unless `replicate` divides the number of ranks.
  Mesh(Communicator const& world, int replicate = 1);

  Communicator const& world() const { return world_; }
  /// The R ranks that hold the parts of one copy of the model.
  Communicator const& shard() const { return shard_; }
  /// The G ranks that hold the same part.
  Communicator const& replicate() const { return replicate_; }

private:
  Communicator world_, shard_, replicate_;
};

} // namespace prowl
