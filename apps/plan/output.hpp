/// The files that prowl-plan writes.
#pragma once

#include <plan/report.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace prowl::plan {

/// A file that comes with the program: beside the sources that it was built from, or where it was installed.
std::string data_file(std::string const& name);

/// Everything, for --json and for pictures. `sweep`: the plans are at several numbers of ranks.
nlohmann::json document(std::vector<RunPlan> const& plans, dit::ModelConfig const& config,
                        Setting const& setting, bool sweep);

/// Throws Error for a name that is not that of a picture.
void check_picture(std::string const& path);
/// Draws a document with plot_plan.py. Throws Error naming the file where that fails.
void draw(nlohmann::json const& document, std::string const& path);

/// The simulated steps of a period one after the other, as Chrome's trace events: the program and the links, a track each.
void write_timeline(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting,
                    std::string const& path);

/// Step and optimizer time of each way by number of ranks.
std::string sweep_table(std::vector<RunPlan> const& plans);

} // namespace prowl::plan
