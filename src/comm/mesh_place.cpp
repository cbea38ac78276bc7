#include <prowl/comm/mesh_place.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>

namespace prowl {

void require_place(MeshPlace const& place) {
  require_between("shards of a mesh", place.shards, 1, most_ranks);
  require_between("replicas of a mesh", place.replicas, 1, most_ranks);
  require_between("tensor ranks of a mesh", place.tensors, 1, most_ranks);
  if (std::int64_t(place.shards) * place.replicas > most_ranks / place.tensors)
    throw Error("a mesh of {} replicas x {} shards x {} tensor ranks, expected at most {} ranks",
                place.replicas, place.shards, place.tensors, most_ranks);
  require_between("shard of a rank", place.shard, 0, place.shards - 1);
  require_between("replica of a rank", place.replica, 0, place.replicas - 1);
  require_between("tensor rank of a rank", place.tensor, 0, place.tensors - 1);
}

} // namespace prowl
