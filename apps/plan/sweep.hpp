/// Plans over ranges of a number of ranks, or of options of the deck.
#pragma once

#include <plan/methods.hpp>

#include <string>
#include <vector>

namespace prowl::plan {

/// "8..4096" by doubling (`by_one`: "1..8" by one), "16,64,256", or "16|64|256", each from 1 to `most`. Throws Error naming
/// `option`.
std::vector<std::int64_t> parse_numbers(std::string const& option, std::string const& text, bool by_one,
                                        std::int64_t most);
/// Of `choices`. Throws Error naming `option`.
std::vector<std::string> parse_choices(std::string const& option, std::string const& text,
                                       std::vector<std::string> const& choices);

/// The deck with `per_rank` images of a rank and micro-batch, so that the batch grows with the ranks; 0: with its own batch.
dit::TrainOptions with_ranks(dit::TrainOptions deck, std::int64_t ranks, std::int64_t per_rank);

/// The practical methods at each number of ranks. Throws Error where the hardware has no room for one.
std::vector<RunPlan> sweep_ranks(dit::TrainOptions const& deck, dit::ModelConfig const& config,
                                 std::vector<std::int64_t> const& ranks, std::int64_t per_rank,
                                 Setting const& setting);

/// Values to try; an empty list: the deck's own.
struct WhatIf {
  std::vector<std::int64_t> periods, bucket_mib;
  std::vector<std::string> wires, placements;
  bool any() const {
    return !periods.empty() || !bucket_mib.empty() || !wires.empty() || !placements.empty();
  }
};
/// The deck with every combination of them.
std::vector<RunPlan> what_if(dit::TrainOptions const& deck, dit::ModelConfig const& config,
                             MeshShape const& mesh, WhatIf const& values, Setting const& setting);

/// A header and a line for each plan.
std::string csv(std::vector<RunPlan> const& plans);

} // namespace prowl::plan
