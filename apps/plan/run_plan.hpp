/// What one way of running a deck will hold, communicate and take.
#pragma once

#include <dit/config.hpp>
#include <dit/options/options.hpp>
#include <dit/train/memory.hpp>

#include <prowl/plan/step_time.hpp>

#include <optional>
#include <string>
#include <vector>

namespace prowl::plan {

/// Replicas x shards.
struct MeshShape {
  int replicas = 1, shards = 1;
  int ranks() const { return replicas * shards; }
};
std::string text(MeshShape const& mesh);
/// "0.123 ms", "45.67 ms", "1234 ms", "12.3 s".
std::string duration(double seconds);
/// "0.123", "45.67", "1234".
std::string milliseconds(double seconds);

/// What runs are planned on.
struct Setting {
  Hardware hardware;
  std::string type = "float32"; ///< of the operands of matrix products
};

/// Means of a step over a period, of collectives of the optimizer alone where not said otherwise.
struct Volume {
  double all_gathers = 0, all_reduces = 0, broadcasts = 0;
  double optimizer_bytes = 0; ///< gathers, sums, and new matrices to other replicas
  double other_bytes = 0;     ///< weights and gradients
};

struct RunPlan {
  std::string name; ///< of the way to run
  dit::TrainOptions options;
  MeshShape mesh;
  dit::MemoryPlan memory;    ///< of the rank that holds most
  double capacity = 0;       ///< bytes of memory a rank
  std::vector<Ledger> steps; ///< of a period: the collectives of the first rank
  std::int64_t muon = 0;     ///< elements that Muon updates
  Volume volume;
  double model_flop = 0, optimizer_flop = 0;    ///< of the rank in question, a step; NS5's
  std::int64_t buckets = 0, largest_bucket = 0; ///< in a refresh; bytes
  std::int64_t owned = 0;                       ///< matrices with an owner
  std::vector<double> loads;                    ///< of owners
  double imbalance = 1;
  StepTime time; ///< of the rank whose update takes longest
  /// K, or none where nothing is refreshed.
  std::optional<std::int64_t> period() const;
  bool fits() const { return double(memory.total()) <= capacity; }
  /// With a tenth of the memory to spare, which plans may be off by.
  bool fits_well() const { return double(memory.total()) <= 0.9 * capacity; }
};

/// What stands behind a number of a way that does not fit, or hardly does; and what says so.
char mark(RunPlan const& plan);
constexpr char const* mark_legend = "! does not fit, ~ with less than a tenth of the memory to spare";

/// Throws Error for a mesh that the hardware has not room for.
RunPlan plan_run(std::string name, dit::TrainOptions options, dit::ModelConfig const& config,
                 MeshShape const& mesh, Setting const& setting);

/// The first step of a period, or the first that refreshes nothing, as the rank whose update takes longest has it.
Timeline timeline(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting,
                  std::int64_t t);

} // namespace prowl::plan
