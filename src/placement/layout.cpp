#include <prowl/placement/layout.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>

#include <algorithm>
#include <set>

namespace prowl {

namespace {

void check_split(Parameter const& p, MeshPlace const& place) {
  if (!p.split) return;
  auto const [dimension, extent] = *p.split;
  if (!p.is_matrix() || dimension < 0 || dimension > 1)
    throw Error("parameter {}: split along dimension {}, expected a matrix and 0 or 1", p.name, dimension);
  auto const ranks = std::int64_t(place.tensors);
  if (shard_rows(extent, place.tensors, place.tensors - 1).size() < 1)
    throw Error("parameter {}: {} {} over a tensor group of {} ranks, expected at least one on each", p.name,
                extent, dimension == 0 ? "rows" : "columns", ranks);
}

} // namespace

Layout::Layout(std::vector<Parameter> parameters, MeshPlace place, std::vector<Placement> placements)
    : parameters_(std::move(parameters)), place_(place), placements_(std::move(placements)),
      weight_offsets_(parameters_.size()), gradient_offsets_(parameters_.size()),
      whole_offsets_(parameters_.size()) {
  require_place(place_);
  if (placements_.empty()) placements_.resize(parameters_.size());
  if (placements_.size() != parameters_.size())
    throw Error("{} placements for {} parameters", placements_.size(), parameters_.size());
  add_units();
  place_shards();
  for (auto& unit : units_) place_owned(unit);
}

void Layout::add_units() {
  std::set<std::string> names, closed_units;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto const& p = parameters_[i];
    if (p.name.empty()) throw Error("parameter number {}: has no name", i);
    if (!names.insert(p.name).second) throw Error("parameter {}: registered twice", p.name);
    require_shape(p);
    check_split(p, place_);
    auto const& owner = placements_[i];
    if (owner && (owner->shard < 0 || owner->shard >= place_.shards || owner->replica < 0 ||
                  owner->replica >= place_.replicas))
      throw Error("parameter {}: its owner (shard {}, replica {}) is not in the mesh of {} x {} ranks",
                  p.name, owner->shard, owner->replica, place_.replicas, place_.shards);
    if (units_.empty() || units_.back().name != p.unit) {
      if (!closed_units.insert(p.unit).second)
        throw Error("parameter {}: its unit '{}' was left by another parameter; register a unit's parameters "
                    "together",
                    p.name, p.unit);
      units_.push_back({p.unit, i, i, {}, 0, 0, {}, {}, {}, {}, 0});
    }
    units_.back().last = i + 1;
    unit_of_.push_back(units_.size() - 1);
  }
}

void Layout::place_shards() {
  for (auto& unit : units_) {
    unit.shards.offset = sharded_size_;
    for (auto i = unit.first; i < unit.last; ++i) {
      if (placements_[i]) continue;
      weight_offsets_[i] = gradient_offsets_[i] = sharded_size_;
      sharded_size_ += padded_rows(parameters_[i].rows(), place_.shards) * parameters_[i].columns();
    }
    unit.shards.size = sharded_size_ - unit.shards.offset;
  }
  weights_size_ = gradients_size_ = sharded_size_;
}

void Layout::place_owned(Unit& unit) {
  unit.owned_weights.offset = weights_size_;
  unit.owned_gradients.offset = gradients_size_;
  std::vector<std::size_t> owned; // by owner
  for (auto i = unit.first; i < unit.last; ++i)
    if (placements_[i]) owned.push_back(i);
  std::ranges::stable_sort(owned, {},
                           [&](auto i) { return std::pair(placements_[i]->shard, placements_[i]->replica); });
  for (auto i : owned) {
    auto const [shard, replica] = *placements_[i];
    auto const size = parameters_[i].size();
    if (unit.packs.empty() || unit.packs.back().shard != shard)
      unit.packs.push_back({shard, {unit.size, 0}, std::vector<Block>(std::size_t(place_.replicas))});
    auto& pack = unit.packs.back();
    whole_offsets_[i] = unit.size;
    if (shard == place_.shard) weight_offsets_[i] = unit.owned_weights.offset + pack.whole.size;
    auto& part = pack.replica[std::size_t(replica)];
    if (part.size == 0) part.offset = pack.whole.size;
    if (owns(i)) gradient_offsets_[i] = unit.owned_gradients.offset + part.size;
    part.size += size;
    pack.whole.size += size;
    unit.size += size;
  }
  auto const mine = std::ranges::find(unit.packs, place_.shard, &Pack::shard);
  if (mine != unit.packs.end()) {
    unit.own_index = std::size_t(mine - unit.packs.begin());
    unit.own = mine->whole;
    unit.owned_weights.size = mine->whole.size;
    unit.owned_gradients.size = mine->replica[std::size_t(place_.replica)].size;
  }
  weights_size_ += unit.owned_weights.size;
  gradients_size_ += unit.owned_gradients.size;
  unit.owned = unit.size;
  for (auto i = unit.first; i < unit.last; ++i) {
    if (placements_[i]) continue;
    whole_offsets_[i] = unit.size;
    unit.size += parameters_[i].size();
  }
}

std::size_t Layout::checked(std::size_t parameter) const {
  require_index("parameter", parameter, parameters_.size());
  return parameter;
}

Layout::Unit const& Layout::unit(std::size_t unit) const {
  require_index("unit", unit, units_.size());
  return units_[unit];
}

Range Layout::weight_rows(std::size_t parameter) const {
  auto const& owner = placement(parameter);
  auto const rows = parameters_[parameter].rows();
  if (!owner) return shard_rows(rows, place_.shards, place_.shard);
  return {0, owner->shard == place_.shard ? rows : 0};
}

Range Layout::rows(std::size_t parameter) const {
  auto const rows = this->parameter(parameter).rows();
  if (!placements_[parameter]) return shard_rows(rows, place_.shards, place_.shard);
  return {0, owns(parameter) ? rows : 0};
}

} // namespace prowl
