/// What the model computes on each unit: matrix products, and passes through activations, from its sizes alone.
#pragma once

#include <dit/config.hpp>

#include <prowl/plan/step_time.hpp>

#include <vector>

namespace prowl::dit {

/// Of one pass over one unit.
struct Work {
  std::vector<Product> products;
  double bytes = 0;   ///< that elementwise kernels pass through, about: counted from the kernels of a block
  double kernels = 0; ///< of those
  double flop() const;
};

struct UnitWork {
  Work forward;
  Work backward; ///< with the forward of a block once more: blocks are checkpointed
};

/// By unit, for `samples` samples.
std::vector<UnitWork> unit_work(ModelConfig const& config, std::int64_t samples);

/// The same in seconds.
std::vector<UnitTime> unit_times(std::vector<UnitWork> const& work, Machine const& machine);

} // namespace prowl::dit
