#include <dit/train/memory.hpp>

#include <dit/layout.hpp>
#include <dit/train/batch.hpp>
#include <dit/train/setup.hpp>
#include <dit/workspace.hpp>

#include <prowl/core/checked.hpp>
#include <prowl/core/process_memory.hpp>
#include <prowl/io/array_file.hpp>
#include <prowl/io/loader.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/store/store_plan.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace prowl::dit {

namespace {

std::int64_t host_batch_bytes(ModelConfig const& config, std::int64_t samples) {
  std::int64_t elements = std::int64_t(config.channels) * config.pixels() + config.pooled_width;
  for (auto const& e : config.encoders) elements += std::int64_t(e.tokens) * e.width;
  return checked_product({samples, elements, sizeof(float)}, "bytes of a batch on a rank");
}

/// Open MPI's non-blocking reduce-scatter works in two more arrays as long as the one that is sent, of which two ranks
/// use one; its reduce in one where a rank
/// passes on what it gets from others, so among three ranks or more, and its all-reduce likewise; one unit is reduced at a time.
/// What passes between ranks of a node goes through at most 512 fragments of 32 KiB a rank (its parameters
/// btl_vader_free_list_max and btl_vader_max_send_size).
std::int64_t transport_bytes(Layout const& layout) {
  // Of two ranks no more than a quarter of them was seen in use.
  std::int64_t const all_fragments = std::int64_t{size(layout.place(), Axis::world) > 2 ? 16 : 4} << 20;
  bool const gathers = layout.shards() > 1, replicas = layout.place().replicas > 1;
  if (!gathers && !replicas) return 0;
  std::int64_t const reduced = replicas ? layout.sharded_size() : 0;
  std::int64_t scattered = 0, sent = reduced;
  for (auto const& unit : layout.units()) {
    auto const packed = gathers ? unit.shards.size * layout.shards() : 0;
    auto const combined = layout.shards() > 2 ? unit.owned : 0;
    auto const handed_over = layout.place().replicas > 2 ? unit.owned_weights.size : 0;
    scattered = std::max(scattered, (layout.shards() > 2 ? 2 : 1) * packed + combined + handed_over);
    sent = std::max(sent, packed + unit.owned);
  }
  auto const bytes = [](std::int64_t elements) { return elements * std::int64_t(sizeof(float)); };
  return bytes(std::max(scattered, reduced)) + std::min(all_fragments, bytes(sent));
}

} // namespace

std::int64_t local_capacity(TrainOptions const& options, ModelConfig const& config, int ranks) {
  auto const micro_batch = options.train.batch / options.train.accumulate;
  // Two samples are drawn as one captioned and one uncaptioned.
  auto const samples = std::max<std::int64_t>(2, local_range(micro_batch, 0, ranks).count);
  if (samples > most_samples(config))
    throw Error(
        "train.batch: {} images in {} micro-batches on {} ranks, expected at most {} images of {} tokens "
        "at once on a rank: give more train.accumulate or ranks",
        options.train.batch, options.train.accumulate, ranks, most_samples(config), config.tokens());
  return samples;
}

MemoryPlan plan_memory(TrainOptions const& options, ModelConfig const& config, Layout const& layout) {
  int const ranks = size(layout.place(), Axis::world);
  auto const store = store_sizes(layout, store_options(options));
  auto const optimizer = optimizer_memory(layout, optimizer_options(options.optimizer));
  auto const capacity = local_capacity(options, config, ranks);
  MemoryPlan plan;
  plan.process = resident_bytes();
  plan.weights = store.weights * std::int64_t(sizeof(float));
  plan.gradients = store.gradients * std::int64_t(sizeof(float));
  plan.gathered = store.transient_bytes();
  plan.untouched = untouched_bytes(layout, store_options(options));
  plan.momenta = optimizer.momenta;
  plan.moments = optimizer.moments;
  plan.buckets = optimizer.buckets;
  plan.workspace = optimizer.workspace;
  plan.activations = activation_bytes<float>(config, int(capacity));
  plan.batches = DeviceBatch::bytes(config, capacity);
  plan.loader = 3 * host_batch_bytes(config, capacity); // two, and validation's
  if (options.train.dump_step >= 0)
    plan.dump =
        plan.gradients + 2 * (plan.weights + plan.momenta + plan.moments) +
        checked_product({options.train.accumulate, 2, plan.batches}, "bytes that train.dump_step keeps");
  plan.transport = transport_bytes(layout);
  for (std::size_t i = 0; i < layout.parameters().size(); ++i)
    plan.checkpoint = std::max(plan.checkpoint, layout.size(i) * std::int64_t(sizeof(float)));
  constexpr std::int64_t of_a_dataset = 1024; // in HDF5's cache: up to three for a parameter
  plan.checkpoint = std::min(plan.checkpoint, array_file_piece_bytes) +
                    3 * std::int64_t(layout.parameters().size()) * of_a_dataset;
  return plan;
}

std::vector<MemoryPlan::Part> MemoryPlan::parts() const {
  return {{"weights", weights},
          {"gradients", gradients},
          {"momenta", momenta},
          {"AdamW moments", moments},
          {"units", gathered},
          {"buckets", buckets},
          {"workspace", workspace},
          {"activations", activations},
          {"batches", batches},
          {"transport", transport},
          {"checkpoint", checkpoint},
          {"loader", loader},
          {"dump", dump},
          {"process", process}};
}

std::int64_t MemoryPlan::total() const {
  std::int64_t sum = 0;
  for (auto const& part : parts()) sum += part.bytes;
  return sum;
}

MemoryPlan largest_memory(TrainOptions const& options, ModelConfig const& config, MeshPlace const& mesh) {
  constexpr std::size_t most_ranks = 16;
  auto const list = parameters(config);
  auto const owners = ownership(options, list, mesh);
  std::vector<std::int64_t> kept(std::size_t(mesh.shards)); // elements of owned weights, by shard index
  std::vector<std::int64_t> owned(std::size_t(mesh.shards * mesh.replicas));
  for (std::size_t i = 0; i < owners.placements.size(); ++i)
    if (auto const& owner = owners.placements[i]) {
      kept[std::size_t(owner->shard)] += list[i].size();
      owned[std::size_t(owner->shard + mesh.shards * owner->replica)] += list[i].size();
    }
  std::vector<std::size_t> slots(owned.size());
  std::iota(slots.begin(), slots.end(), std::size_t{0});
  std::ranges::stable_sort(slots, std::greater{}, [&](auto s) { // gradients and momenta of the second
    return kept[s % std::size_t(mesh.shards)] + 2 * owned[s];
  });
  slots.resize(
      owners.placements.empty() ? 1 : std::min(slots.size(), most_ranks)); // sharded: the first holds most
  MemoryPlan largest;
  auto const process = resident_bytes(); // before these plans
  for (auto slot : slots) {
    auto place = mesh;
    place.shard = int(slot) % mesh.shards;
    place.replica = int(slot) / mesh.shards;
    auto plan = plan_memory(options, config, Layout(list, place, owners.placements));
    plan.process = process;
    if (plan.total() > largest.total()) largest = plan;
  }
  return largest;
}

} // namespace prowl::dit
