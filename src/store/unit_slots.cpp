#include <prowl/store/unit_slots.hpp>

#include <prowl/core/index.hpp>

#include <algorithm>
#include <limits>

namespace prowl {

UnitSlots::UnitSlots(std::size_t units, int prefetch, Residency residency, bool gathers)
    : units_(units), prefetch_(std::size_t(prefetch)), residency_(residency) {
  require_between("units made whole ahead", prefetch, 0, std::numeric_limits<int>::max());
  if (gathers) slots_.resize(residency == Residency::z2 ? units : std::min(units, prefetch_ + 1));
}

std::size_t UnitSlots::find(std::size_t unit) const {
  auto const slot = std::ranges::find(slots_, unit, &Slot::unit);
  return slot == slots_.end() ? none : std::size_t(slot - slots_.begin());
}

/// A slot for `unit`: its own, or the one that was used longest ago of those without a unit in [first, last].
UnitSlots::Claim UnitSlots::claim(std::size_t unit, std::size_t first, std::size_t last) {
  auto slot = find(unit);
  bool const fetch = slot == none;
  if (fetch && residency_ == Residency::z2) slot = unit;
  if (slot == none)
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      bool const wanted = slots_[s].unit != none && slots_[s].unit >= first && slots_[s].unit <= last;
      if (!wanted && (slot == none || slots_[s].last_use < slots_[slot].last_use)) slot = s;
    }
  slots_[slot] = {unit, ++clock_};
  return {unit, slot, fetch};
}

std::size_t UnitSlots::unit(std::size_t slot) const {
  require_index("slot", slot, slots_.size());
  return slots_[slot].unit;
}

void UnitSlots::release(std::size_t slot) {
  require_index("slot", slot, slots_.size());
  slots_[slot].unit = none;
}

std::vector<UnitSlots::Claim> UnitSlots::claim(std::size_t unit, Pass pass) {
  require_index("unit", unit, units_);
  std::vector<Claim> claims;
  if (slots_.empty()) return claims;
  bool const forward = pass == Pass::forward;
  auto const first = forward ? unit : unit - std::min(unit, prefetch_),
             last = forward ? std::min(unit + prefetch_, units_ - 1) : unit;
  for (std::size_t d = 0; d <= last - first; ++d)
    claims.push_back(claim(forward ? unit + d : unit - d, first, last));
  return claims;
}

} // namespace prowl
