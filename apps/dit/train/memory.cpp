#include <dit/train/memory.hpp>

#include <dit/train/batch.hpp>
#include <dit/train/setup.hpp>
#include <dit/workspace.hpp>

#include <prowl/io/array_file.hpp>
#include <prowl/io/loader.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/store/store.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace prowl::dit {

namespace {

std::int64_t host_batch_bytes(ModelConfig const& config, std::int64_t samples) {
  std::int64_t elements = std::int64_t(config.channels) * config.pixels() + config.pooled_width;
  for (auto const& e : config.encoders) elements += std::int64_t(e.tokens) * e.width;
  return samples * elements * std::int64_t(sizeof(float));
}

/// Open MPI's non-blocking reduce-scatter works in two more arrays as long as the one that is sent, its all-reduce and its
/// reduce in one where a rank passes on what it gets from others; one unit is reduced at a time. What passes between ranks of a node goes through at most 512 fragments of
/// 32 KiB a rank (its parameters btl_vader_free_list_max and btl_vader_max_send_size).
std::int64_t transport_bytes(Layout const& layout) {
  constexpr std::int64_t all_fragments = std::int64_t{16} << 20;
  bool const gathers = layout.shards() > 1, replicas = layout.place().replicas > 1;
  std::int64_t const reduced = replicas ? layout.sharded_size() : 0;
  std::int64_t scattered = 0, sent = reduced;
  for (auto const& unit : layout.units()) {
    auto const packed = gathers ? unit.shards.size * layout.shards() : 0;
    auto const combined = layout.shards() > 2 ? unit.owned : unit.owned_weights.size;
    scattered = std::max(scattered, 2 * packed + combined);
    sent = std::max(sent, packed + unit.owned);
  }
  auto const bytes = [](std::int64_t elements) { return elements * std::int64_t(sizeof(float)); };
  return bytes(std::max(scattered, reduced)) + std::min(all_fragments, bytes(sent));
}

} // namespace

std::int64_t local_capacity(TrainOptions const& options, int ranks) {
  auto const micro_batch = options.train.batch / options.train.accumulate;
  // Two samples are drawn as one captioned and one uncaptioned.
  return std::max<std::int64_t>(2, local_range(micro_batch, 0, ranks).count);
}

MemoryPlan plan_memory(TrainOptions const& options, ModelConfig const& config, Layout const& layout,
                       prowl::OptimizerOptions const& optimizer, int ranks) {
  auto const capacity = local_capacity(options, ranks);
  auto const one_batch = DeviceBatch::bytes(config, capacity);
  MemoryPlan plan;
  plan.process = resident_bytes();
  plan.shards = (layout.weights_size() + layout.gradients_size()) * std::int64_t(sizeof(float));
  plan.gathered = Store::bytes(layout, store_options(options)) - plan.shards;
  plan.optimizer = Optimizer::bytes(layout, optimizer);
  plan.activations = activation_bytes<float>(config, int(capacity));
  plan.batches = one_batch + 3 * host_batch_bytes(config, capacity); // the loader's two, and validation's
  plan.transport = transport_bytes(layout);
  for (std::size_t i = 0; i < layout.parameters().size(); ++i)
    plan.checkpoint = std::max(plan.checkpoint, layout.size(i) * std::int64_t(sizeof(float)));
  plan.checkpoint = std::min(plan.checkpoint, array_file_piece_bytes);
  return plan;
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

} // namespace prowl::dit
