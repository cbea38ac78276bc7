/// The learning rate over a run.
#pragma once

#include <cstdint>

namespace prowl {

/// Linear warm-up, then a cosine from 1 to `final_fraction`, as fractions of each group's base rate.
struct Schedule {
  std::int64_t steps = 1;  ///< of the whole run
  std::int64_t warmup = 0; ///< steps of the linear warm-up
  bool cosine = true;      ///< false: constant after the warm-up
  double final_fraction = 0;

  /// Of step t, counted from 0. Throws Error for a negative step, and for members that are no schedule.
  double factor(std::int64_t t) const;
};

} // namespace prowl
