#include <prowl/optim/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace prowl {

double Schedule::factor(std::int64_t t) const {
  if (t < warmup) return double(t + 1) / double(warmup);
  if (!cosine) return 1;
  double const part = std::min(1.0, double(t - warmup) / double(std::max<std::int64_t>(1, steps - warmup)));
  return final_fraction + (1 - final_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * part));
}

} // namespace prowl
