#include <prowl/optim/schedule.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace prowl {

double Schedule::factor(std::int64_t t) const {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  require_between("schedule: steps", steps, 1, most);
  require_between("schedule: steps of the warm-up", warmup, 0, most);
  require_between("schedule: step", t, 0, most);
  if (!(final_fraction >= 0 && std::isfinite(final_fraction)))
    throw Error("schedule: final fraction {}, expected a finite number of 0 or more", final_fraction);
  if (t < warmup) return double(t + 1) / double(warmup);
  if (!cosine) return 1;
  double const part = std::min(1.0, double(t - warmup) / double(std::max<std::int64_t>(1, steps - warmup)));
  return final_fraction + (1 - final_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * part));
}

} // namespace prowl
