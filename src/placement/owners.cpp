#include <prowl/placement/owners.hpp>

#include <prowl/comm/mesh_place.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace prowl {

namespace {

/// Matrices that go to one slot together.
struct Pack {
  std::string unit;
  std::vector<std::size_t> matrices;
  std::int64_t size = 0;
  double cost = 0;
};

std::vector<Pack> make_packs(std::span<OwnedMatrix const> matrices, std::int64_t pack_below) {
  std::vector<Pack> packs;
  bool open = false; // the last one takes more
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    auto const& m = matrices[i];
    bool const small = m.size < pack_below;
    if (!open || !small || packs.back().unit != m.unit) packs.push_back({m.unit, {}, 0, 0});
    auto& pack = packs.back();
    pack.matrices.push_back(i);
    pack.size += m.size;
    pack.cost += m.cost;
    open = small && pack.size < pack_below;
  }
  return packs;
}

/// The slot of each pack.
std::vector<int> balance(std::vector<Pack> const& packs, int slots) {
  std::vector<std::size_t> order(packs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return packs[a].cost > packs[b].cost; });
  std::vector<double> loads(std::size_t(slots), 0.0);
  std::map<std::string, std::vector<int>> counts; // by unit and slot
  std::vector<int> result(packs.size());
  for (auto p : order) {
    auto& count = counts.try_emplace(packs[p].unit, slots, 0).first->second;
    auto const fewest = std::ranges::min(count);
    std::size_t best = count.size();
    for (std::size_t s = 0; s < count.size(); ++s)
      if (count[s] == fewest && (best == count.size() || loads[s] < loads[best])) best = s;
    ++count[best];
    loads[best] += packs[p].cost;
    result[p] = int(best);
  }
  return result;
}

} // namespace

double Owners::imbalance() const {
  double const total = std::accumulate(loads.begin(), loads.end(), 0.0);
  return total > 0 ? std::ranges::max(loads) * double(loads.size()) / total : 1;
}

Owners assign_owners(std::span<OwnedMatrix const> matrices, int slots, Assignment how,
                     std::int64_t pack_below) {
  require_between("slots for owners", slots, 1, most_ranks);
  for (auto const& m : matrices) {
    require_between("elements of an owned matrix", m.size, 0, largest_parameter);
    if (!(m.cost >= 0 && std::isfinite(m.cost)))
      throw Error("parameter number {}: its update costs {}, expected a finite number of 0 or more",
                  m.parameter, m.cost);
  }
  auto const packs = make_packs(matrices, pack_below);
  std::vector<int> slot_of(packs.size(), 0);
  if (how == Assignment::balanced)
    slot_of = balance(packs, slots);
  else if (how == Assignment::round_robin)
    for (std::size_t p = 0; p < packs.size(); ++p) slot_of[p] = int(p % std::size_t(slots));
  Owners owners{std::vector<int>(matrices.size()), std::vector<double>(std::size_t(slots), 0.0)};
  for (std::size_t p = 0; p < packs.size(); ++p)
    for (auto m : packs[p].matrices) {
      owners.slots[m] = slot_of[p];
      owners.loads[std::size_t(slot_of[p])] += matrices[m].cost;
    }
  return owners;
}

} // namespace prowl
