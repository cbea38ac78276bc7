/// The time of a step on one rank: the operations of its store and its optimizer, as they are carried out, each with its time on
/// a machine, simulated.
#pragma once

#include <prowl/optim/optimizer.hpp>
#include <prowl/plan/machine.hpp>
#include <prowl/plan/simulation.hpp>
#include <prowl/store/store_plan.hpp>

#include <cstdint>
#include <vector>

namespace prowl {

/// What a model computes on a unit, seconds.
struct UnitTime {
  double forward, backward;
};

/// What one rank does: `layout` is its own.
struct RankPlan {
  Layout const& layout;
  OptimizerOptions optimizer;
  StoreOptions store;
};

/// An optimizer's step, from its first kernel to its last, with all gradients there. Without publications.
Program optimizer_program(RankPlan const& plan, Machine const& machine, std::int64_t t);

/// A whole step. `units`: one for each of the layout's. Publications of the step before, where they are asynchronous, are under
/// way when it begins.
Program step_program(RankPlan const& plan, Machine const& machine, std::vector<UnitTime> const& units,
                     std::int64_t t);

/// Means over the steps of a period.
struct StepTime {
  double seconds = 0;           ///< of the step
  double optimizer_seconds = 0; ///< of the optimizer alone, with what it waits for
  double computing_seconds = 0; ///< of the model alone
  double refresh_seconds = 0,
         other_seconds = 0; ///< of the optimizer at step 0 of a period, and at the others on average
  std::array<double, all_purposes.size()> communication{}, exposed{};
  std::vector<std::pair<std::string, double>> critical_path; ///< by name, longest first
  double exposed_seconds() const;
};
StepTime step_time(RankPlan const& plan, Machine const& machine, std::vector<UnitTime> const& units);

/// Seconds of an optimizer's step, averaged over a period.
double optimizer_seconds(RankPlan const& plan, Machine const& machine);

} // namespace prowl
