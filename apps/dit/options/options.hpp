/// Every option of prowl-train. Meanings, units and ranges are declared in options.cpp; `prowl-train
/// --list-options` prints them.
#pragma once

#include <prowl/io/deck.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prowl::dit {

struct RunOptions {
  std::string folder = "runs/train";
  std::int64_t seed = 0;
  std::int64_t steps = 1000;
  std::string resume = "auto";
  bool accept_changes = false;
  double time_limit = 0;
};

struct DataOptions {
  std::string path;
};

/// Either a preset or hidden and layers. The data set gives channels, size and text encoders; the last five
/// serve where there is no data set, and a preset brings its own.
struct ModelOptions {
  std::string preset;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t patch = 2;
  std::int64_t channels = 16;
  std::int64_t size = 64;
  std::vector<std::int64_t> encoder_widths;
  std::vector<std::int64_t> encoder_tokens;
  std::int64_t pooled_width = 2048;
};

struct TrainingOptions {
  std::int64_t batch = 64;
  std::int64_t accumulate = 1;
  std::int64_t validate_every = 100;
  std::int64_t validation_batches = 4;
  std::int64_t checkpoint_every = 500;
  std::int64_t keep = 2;
  std::int64_t dump_step = -1;
  std::int64_t log_every = 1;
  double caption_drop = 0.1;
};

/// What a group overrides for the parameters that match it; unset: the optimizer's own.
struct GroupOptions {
  std::string pattern;
  std::optional<std::string> route;
  std::optional<double> rate;
  std::optional<double> decay;
  std::optional<double> momentum;
  std::optional<bool> nesterov;
  std::optional<std::int64_t> period;
  std::optional<double> gamma;
  std::optional<std::string> adjust_lr;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> epsilon;
};

/// `method` names a branch of the paper's ablation (table 3a); period and gamma are used where the branch has
/// them.
struct OptimizerOptions {
  std::string method = "periodic";
  std::int64_t period = 3;
  double gamma = 0.15;
  double momentum = 0.95;
  bool nesterov = false;
  std::string adjust_lr = "original";
  double rate = 5e-3;
  double decay = 0.01;
  double baseline_rate = 3e-4;
  double adamw_rate = 1e-4;
  double adamw_decay = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  std::int64_t warmup = 100;
  std::string schedule = "cosine";
  double final_rate_fraction = 0;
  double clip = 0;
  std::string on_nonfinite = "fail";
  std::string system = "overlap";
  std::int64_t bucket_mib = 256;
  std::string wire = "fp32";
  std::vector<GroupOptions> groups;
};

struct ParallelOptions {
  std::string placement = "sharded";
  std::string owners = "balanced";
  std::int64_t replicate = 1;
  std::string replicate_broadcast = "async";
  std::string residency = "z3";
  std::int64_t prefetch = 1;
};

struct SampleOptions {
  std::vector<std::string> prompts;
  std::int64_t steps = 50;
  double guidance = 5;
  std::int64_t every = 0;
};

struct TrainOptions {
  RunOptions run;
  DataOptions data;
  ModelOptions model;
  TrainingOptions train;
  OptimizerOptions optimizer;
  ParallelOptions parallel;
  SampleOptions sample;
};

/// Declares every key; `options` outlives the deck.
void declare(Deck& deck, TrainOptions& options);

/// What no single key can tell: throws the deck's Error where values contradict each other. Call after all
/// were read.
void check(Deck const& deck, TrainOptions const& options);

} // namespace prowl::dit
