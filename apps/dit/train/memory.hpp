/// What a run will hold in memory, from descriptions alone.
#pragma once

#include <dit/config.hpp>
#include <dit/options/options.hpp>

#include <prowl/optim/options.hpp>
#include <prowl/placement/layout.hpp>

#include <cstdint>

namespace prowl::dit {

/// Bytes on one rank.
struct MemoryPlan {
  std::int64_t process = 0;   ///< this program with its libraries, before any array: measured
  std::int64_t shards = 0;    ///< weights and gradients: shards, and owned matrices
  std::int64_t gathered = 0;  ///< units in flight
  std::int64_t optimizer = 0; ///< state and buckets
  std::int64_t activations = 0;
  std::int64_t batches = 0;    ///< of the model, and ahead of it in the loader
  std::int64_t transport = 0;  ///< inside MPI, for the reductions under way
  std::int64_t checkpoint = 0; ///< what is read back at once, to verify it
  std::int64_t total() const {
    return process + shards + gathered + optimizer + activations + batches + transport + checkpoint;
  }
};

/// `ranks` is that of the whole run, `layout` that of the rank in question.
MemoryPlan plan_memory(TrainOptions const& options, ModelConfig const& config, Layout const& layout,
                       prowl::OptimizerOptions const& optimizer, int ranks);

/// Most samples that a rank computes on at once.
std::int64_t local_capacity(TrainOptions const& options, int ranks);

/// Resident bytes of this process now, and at most so far.
std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();

} // namespace prowl::dit
