#include <prowl/comm/mesh.hpp>

#include <prowl/core/error.hpp>

namespace prowl {

namespace {

int shard_size(Communicator const& world, int replicate, int tensor) {
  auto const copies = std::int64_t(replicate) * tensor;
  if (replicate < 1 || tensor < 1 || world.size() % copies != 0)
    throw Error("a mesh of {} replicas{}: expected a divisor of the number of ranks, {} (parallel.replicate)",
                replicate, tensor == 1 ? "" : fmt::format(" x {} tensor ranks", tensor), world.size());
  return world.size() / int(copies);
}

/// The ranks that agree in all coordinates but one, which has `stride` and `extent`.
Communicator axis(Communicator const& world, int stride, int extent) {
  int const rank = world.rank(), without = rank / (stride * extent) * stride + rank % stride;
  return world.split(without, rank);
}

} // namespace

Mesh::Mesh(Communicator const& world, int replicate, int tensor)
    : world_(world), shard_(axis(world, tensor, shard_size(world, replicate, tensor))),
      replicate_(axis(world, world.size() / replicate, replicate)), tensor_(axis(world, 1, tensor)) {}

} // namespace prowl
