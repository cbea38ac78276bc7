/// What a run will hold in memory, from descriptions alone.
#pragma once

#include <dit/config.hpp>
#include <dit/options/options.hpp>

#include <prowl/placement/layout.hpp>

#include <cstdint>
#include <vector>

namespace prowl::dit {

/// Bytes on one rank.
struct MemoryPlan {
  std::int64_t process = 0; ///< this program with its libraries, before any array: measured
  std::int64_t weights = 0; ///< shards, and owned matrices
  std::int64_t gradients = 0;
  std::int64_t momenta = 0;
  std::int64_t moments = 0;   ///< of AdamW
  std::int64_t gathered = 0;  ///< units in flight, and their gradients
  std::int64_t buckets = 0;   ///< of momenta in flight
  std::int64_t workspace = 0; ///< of the optimizer: whole matrices and Newton-Schulz
  std::int64_t activations = 0;
  std::int64_t batches = 0;    ///< of the model
  std::int64_t loader = 0;     ///< ahead of them, on the host
  std::int64_t transport = 0;  ///< inside MPI, for the reductions under way
  std::int64_t checkpoint = 0; ///< what is read back at once, to verify it
  std::int64_t dump = 0;       ///< of train.dump_step: its arrays on the host, before and after
  std::int64_t untouched = 0; ///< of `gathered`: allocated but never written, which on a host takes no memory
  std::int64_t total() const;

  struct Part {
    char const* name;
    std::int64_t bytes;
  };
  std::vector<Part> parts() const;
};

/// Of the layout's rank.
MemoryPlan plan_memory(TrainOptions const& options, ModelConfig const& config, Layout const& layout);

/// Of the rank of the mesh that holds most; of owners on many ranks those with the largest matrices are looked at.
MemoryPlan largest_memory(TrainOptions const& options, ModelConfig const& config, MeshPlace const& mesh);

/// Most samples that a rank computes on at once. Throws Error where they are more than a model can have.
std::int64_t local_capacity(TrainOptions const& options, ModelConfig const& config, int ranks);

} // namespace prowl::dit
