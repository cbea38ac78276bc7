#include <prowl/comm/mesh.hpp>

#include <prowl/core/error.hpp>

namespace prowl {

namespace {

int shard_size(Communicator const& world, int replicate) {
  if (replicate < 1 || world.size() % replicate != 0)
    throw Error("parallel.replicate = {}: expected a divisor of the number of ranks, {}", replicate,
                world.size());
  return world.size() / replicate;
}

} // namespace

Mesh::Mesh(Communicator const& world, int replicate)
    : world_(world), shard_(world.split(world.rank() / shard_size(world, replicate), world.rank())),
      replicate_(world.split(world.rank() % shard_size(world, replicate), world.rank())) {}

} // namespace prowl
