#include <dit/train/state.hpp>

#include <dit/layout.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/checkpoint.hpp>
#include <prowl/kernels/fill.hpp>

#include <fmt/format.h>

namespace prowl::dit {

namespace {

/// Reads whole arrays into this rank's shards, and brings them to the device.
void read_shards(ArrayFileReader const& file, std::vector<HostShard> const& shards,
                 std::vector<Matrix<float>> const& targets) {
  std::vector<ArrayTarget> wanted;
  for (auto const& s : shards) wanted.push_back({s.name, s.shape, s.rows.begin, s.rows.end, s.copy.data()});
  file.read(wanted);
  for (std::size_t i = 0; i < shards.size(); ++i) Kokkos::deep_copy(targets[i], shards[i].copy);
}

std::vector<ArrayShape> shapes(std::vector<HostShard> const& shards) {
  std::vector<ArrayShape> result;
  for (auto const& s : shards) result.push_back({s.name, s.shape, ElementType::float32});
  return result;
}

} // namespace

void initialise_weights(Execution const& exec, Store& store, std::int64_t seed) {
  auto const& layout = store.layout();
  for (std::size_t i = 0; i < layout.parameters().size(); ++i) {
    auto const& p = layout.parameters()[i];
    auto const shard = as_vector(store.shard(store.weights(), i));
    auto const first = std::uint64_t(layout.rows(i).begin * p.columns());
    switch (initial_value(p)) {
    case Initial::zero:
      Kokkos::deep_copy(exec, shard, 0.0f);
      break;
    case Initial::one:
      Kokkos::deep_copy(exec, shard, 1.0f);
      break;
    case Initial::normal:
      prowl::fill_normal(exec, Random(std::uint64_t(seed), i), first, float(initial_deviation), shard);
      break;
    }
  }
  exec.fence(); // the weights may be gathered next by calls that do not know `exec`
  store.weights_changed();
}

HostShard host_shard(Store const& store, std::string const& kind, std::size_t parameter,
                     Matrix<float> const& shard) {
  auto const& p = store.layout().parameters()[parameter];
  HostShard result{kind + "/" + p.name, p.shape, store.layout().rows(parameter), {}};
  result.copy = Kokkos::create_mirror_view_and_copy(HostMemory(), shard);
  return result;
}

ArrayRows rows_to_write(Store const& store, HostShard const& shard) {
  bool const first_group = store.mesh().replicate().rank() == 0;
  return {shard.name, shard.shape, shard.rows.begin, first_group ? shard.rows.end : shard.rows.begin,
          static_cast<float const*>(shard.copy.data())};
}

std::vector<HostShard> host_weights(Store const& store) {
  std::vector<HostShard> shards;
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i)
    shards.push_back(host_shard(store, "weights", i, store.shard(store.weights(), i)));
  return shards;
}

std::vector<HostShard> host_state(Store const& store, Optimizer const& optimizer) {
  std::vector<HostShard> shards;
  for (auto const& s : optimizer.state()) shards.push_back(host_shard(store, s.kind, s.parameter, s.shard));
  return shards;
}

std::string save(Store const& store, Optimizer const& optimizer, Position const& position,
                 std::string const& model, std::string const& deck, std::string const& folder, int keep) {
  ArrayFileContents contents;
  contents.attributes = {
      {"model", model}, {"skipped", position.skipped}, {"sample", position.sample}, {"seed", position.seed}};
  contents.texts = {{"deck", deck}};
  auto shards = host_weights(store), state = host_state(store, optimizer);
  shards.insert(shards.end(), state.begin(), state.end());
  for (auto const& s : shards) contents.arrays.push_back(rows_to_write(store, s));
  return write_checkpoint(store.mesh().world().mpi(), folder, position.step, contents, keep);
}

void load_weights(Store& store, ArrayFileReader const& file) {
  auto const shards = host_weights(store);
  std::vector<Matrix<float>> targets;
  for (std::size_t i = 0; i < shards.size(); ++i) targets.push_back(store.shard(store.weights(), i));
  file.require_arrays(shapes(shards), "weights/");
  read_shards(file, shards, targets);
  store.weights_changed();
}

Position load(Store& store, Optimizer& optimizer, std::string const& path) {
  ArrayFileReader const file(store.mesh().world().mpi(), path);
  auto const weights = host_weights(store), state = host_state(store, optimizer);
  auto expected = shapes(weights), more = shapes(state);
  expected.insert(expected.end(), more.begin(), more.end());
  file.require_arrays(expected);
  std::vector<Matrix<float>> targets;
  for (auto const& s : optimizer.state()) targets.push_back(s.shard);
  read_shards(file, state, targets);
  load_weights(store, file);
  Position const position{file.integer("step"), file.integer("skipped"), file.integer("sample"),
                          file.integer("seed")};
  optimizer.restore_counters(position.step, position.skipped);
  return position;
}

} // namespace prowl::dit
