#include <dit/train/memory.hpp>

#include <dit/train/batch.hpp>
#include <dit/workspace.hpp>

#include <prowl/io/loader.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/store/store.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace prowl::dit {

std::int64_t local_capacity(TrainOptions const& options, int ranks) {
  auto const micro_batch = options.train.batch / options.train.accumulate;
  // Two samples are drawn as one captioned and one uncaptioned.
  return std::max<std::int64_t>(2, local_range(micro_batch, 0, ranks).count);
}

MemoryPlan plan_memory(TrainOptions const& options, ModelConfig const& config, ShardLayout const& layout,
                       prowl::OptimizerOptions const& optimizer, int ranks) {
  auto const capacity = local_capacity(options, ranks);
  auto const one_batch = DeviceBatch::bytes(config, capacity);
  MemoryPlan plan;
  plan.process = resident_bytes();
  plan.shards = 2 * layout.size() * std::int64_t(sizeof(float));
  plan.gathered = Store::bytes(layout, int(options.parallel.prefetch)) - plan.shards;
  plan.optimizer = Optimizer::bytes(layout, optimizer);
  plan.activations = activation_bytes<float>(config, int(capacity));
  plan.batches = 3 * one_batch; // on the device, and two in the loader
  if (layout.ranks() > 1)
    for (auto const& unit : layout.units())
      plan.transport = std::max(plan.transport, 2 * unit.size * layout.ranks() * std::int64_t(sizeof(float)));
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
