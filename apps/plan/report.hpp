/// What is planned, as tables and as JSON.
#pragma once

#include <plan/methods.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace prowl::plan {

/// The deck's own way in full: parameters, memory by kind, collectives, buckets, owners, time, critical path.
std::string describe_deck(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting);

/// A line for each way to run.
std::string comparison(std::vector<RunPlan> const& plans);

/// "Periodic against Muon": optimizer and step time, volume; of sharded execution with overlap.
std::string gains(std::vector<RunPlan> const& plans);

nlohmann::json to_json(RunPlan const& plan);
/// Totals of a model's parameters; "muon": of the matrices of its blocks.
nlohmann::json counts_json(dit::ModelConfig const& config);

} // namespace prowl::plan
