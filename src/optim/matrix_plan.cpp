#include <prowl/optim/matrix_plan.hpp>

#include <prowl/core/bfloat16.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>
#include <prowl/kernels/newton_schulz.hpp>
#include <prowl/optim/split_direction.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace prowl {

namespace {

using Kind = MatrixOperation::Kind;

constexpr std::int64_t float_bytes = sizeof(float);

} // namespace

MatrixPlan::MatrixPlan(Layout const& layout, OptimizerOptions const& options,
                       std::vector<Route> const& routes)
    : layout_(&layout), options_(options), routes_(routes) {
  if (routes.size() != layout.parameters().size())
    throw Error("{} routes for {} parameters", routes.size(), layout.parameters().size());
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].rule != Rule::muon) continue;
    matrices_.push_back(i);
    if (layout.owns(i)) owned_.push_back(i);
    if (!layout.placement(i)) add_group(i);
  }
  bool const one_each = options.system == System::naive || options.system == System::sharded_row_norm;
  for (auto& group : groups_)
    group.buckets = fill_buckets(layout.parameters(), group.matrices, layout.shards(), wire_bytes(),
                                 one_each ? 1 : options.bucket_bytes);
  add_sizes();
}

void MatrixPlan::add_group(std::size_t parameter) {
  if (layout_->parameters()[parameter].split)
    throw Error(
        "parameter {}: Muon updates a matrix that is split over a tensor group where it is owned; expected "
        "dedicated placement",
        layout_->parameters()[parameter].name);
  auto const& o = routes_[parameter].muon;
  auto const period = o.direction == Direction::row_norm ? 0 : o.period;
  auto group = std::ranges::find(groups_, period, &Group::period);
  if (group == groups_.end()) group = groups_.insert(groups_.end(), {period, {}, {}});
  group->matrices.push_back(parameter);
}

std::int64_t MatrixPlan::wire_bytes() const {
  return options_.wire == Wire::bfloat16 ? sizeof(bfloat16) : sizeof(float);
}

void MatrixPlan::add_sizes() {
  std::size_t buckets = 0; // in a step that refreshes all
  for (auto const& group : groups_) {
    bool const gathered = gathers(group, 0);
    if (gathered)
      for (auto const& bucket : group.buckets) {
        sizes_.part = std::max(sizes_.part, bucket.part);
        ++buckets;
      }
    for (auto i : group.matrices) {
      auto const& p = layout_->parameters()[i];
      sizes_.momenta += layout_->size(i);
      sizes_.scratch = std::max(sizes_.scratch, layout_->size(i));
      if (is_tall(p)) sizes_.column_sums += p.columns();
      if (!gathered) continue;
      sizes_.full = std::max(sizes_.full, p.size());
      sizes_.workspace = std::max(sizes_.workspace, newton_schulz_workspace(p.rows(), p.columns()));
    }
  }
  for (auto i : owned_) {
    auto const& p = layout_->parameters()[i];
    sizes_.momenta += p.size();
    sizes_.full = std::max(sizes_.full, p.size());
    if (is_tall(p)) sizes_.column_sums = std::max(sizes_.column_sums, p.columns());
    if (p.split)
      sizes_.workspace = std::max(sizes_.workspace, split_workspace(p, layout_->place().tensors));
    else if (routes_[i].muon.direction != Direction::row_norm)
      sizes_.workspace = std::max(sizes_.workspace, newton_schulz_workspace(p.rows(), p.columns()));
  }
  sizes_.slots = std::min<std::size_t>(buckets, options_.system == System::overlap ? 2 : 1);
  // Alternating: with one period each bucket has its slot, with several that depends on the step.
  bool const one_period = std::ranges::count_if(groups_, [&](auto const& g) { return gathers(g, 0); }) == 1;
  for (auto const& group : groups_) {
    if (!gathers(group, 0)) continue;
    for (std::size_t l = 0; l < group.buckets.size(); ++l)
      for (std::size_t slot = 0; slot < sizes_.slots; ++slot)
        if (!one_period || l % sizes_.slots == slot)
          sizes_.slot_parts[slot] = std::max(sizes_.slot_parts[slot], group.buckets[l].part);
  }
}

std::int64_t MatrixPlan::momentum_bytes() const { return sizes_.momenta * float_bytes; }

std::int64_t MatrixPlan::bucket_bytes() const {
  return (sizes_.slot_parts[0] + sizes_.slot_parts[1]) * (layout_->shards() + 1) * wire_bytes();
}

std::int64_t MatrixPlan::workspace_bytes() const {
  return (sizes_.scratch + sizes_.full + sizes_.workspace + sizes_.column_sums) * float_bytes;
}

bool MatrixPlan::gathers(Group const& group, std::int64_t t) const {
  return options_.system == System::naive || (group.period > 0 && t % group.period == 0);
}

bool MatrixPlan::refreshes(std::size_t parameter, std::int64_t t) const {
  auto const& o = routes_[parameter].muon;
  return o.direction != Direction::row_norm && t % o.period == 0;
}

/// Of the matrices that are refreshed, each once.
std::vector<std::int64_t> MatrixPlan::periods() const {
  std::set<std::int64_t> periods;
  for (auto i : matrices_)
    if (routes_[i].muon.direction != Direction::row_norm) periods.insert(routes_[i].muon.period);
  return {periods.begin(), periods.end()};
}

std::int64_t MatrixPlan::period() const {
  std::int64_t all = 1;
  for (auto period : periods()) {
    auto const factor = period / std::gcd(all, period);
    if (factor > longest_period / all)
      throw Error(
          "periods K of {}: their steps repeat after more than {}, expected at most that many to plan",
          fmt::join(periods(), ", "), longest_period);
    all *= factor;
  }
  return all;
}

std::int64_t MatrixPlan::same_step(std::int64_t t) const {
  require_between("step", t, 0, std::numeric_limits<std::int64_t>::max());
  auto const list = periods();
  auto const alike = [&](std::int64_t s) {
    return std::ranges::all_of(list, [&](auto period) { return (s % period == 0) == (t % period == 0); });
  };
  std::int64_t s = 0;
  while (!alike(s)) ++s;
  return s;
}

std::vector<MatrixPlan::Distinct> MatrixPlan::distinct_steps() const {
  std::map<std::int64_t, std::int64_t> counts;
  auto const steps = period();
  for (std::int64_t t = 0; t < steps; ++t) ++counts[same_step(t)];
  std::vector<Distinct> distinct;
  for (auto const& [t, count] : counts) distinct.push_back({t, count});
  return distinct;
}

void MatrixPlan::add_row_norm(std::vector<std::size_t> const& local, bool tall,
                              std::vector<MatrixOperation>& step) const {
  std::int64_t offset = 0;
  for (auto i : local) {
    auto const& p = layout_->parameters()[i];
    if (is_tall(p) != tall) continue;
    step.push_back(
        {.kind = tall ? Kind::normalise_columns : Kind::normalise_rows, .parameter = i, .offset = offset});
    if (tall) offset += p.columns();
  }
}

/// With overlap one bucket ahead: wait for bucket l, launch l + 1, then compute on l. The first is under way by then.
void MatrixPlan::add_gathered(std::vector<Bucket const*> const& buckets, std::int64_t t,
                              std::vector<MatrixOperation>& step) const {
  bool const ahead = options_.system == System::overlap;
  for (std::size_t l = 0; l < buckets.size(); ++l) {
    auto const slot = ahead ? l % 2 : 0;
    if (!ahead) step.push_back({.kind = Kind::gather, .bucket = buckets[l], .slot = slot});
    step.push_back({.kind = Kind::await_gather, .bucket = buckets[l], .slot = slot});
    if (ahead && l + 1 < buckets.size())
      step.push_back({.kind = Kind::gather, .bucket = buckets[l + 1], .slot = (l + 1) % 2});
    for (auto const& entry : buckets[l]->entries)
      step.push_back({.kind = Kind::update_gathered,
                      .parameter = entry.parameter,
                      .offset = entry.offset,
                      .bucket = buckets[l],
                      .slot = slot,
                      .refreshes = refreshes(entry.parameter, t)});
  }
}

std::vector<MatrixOperation> MatrixPlan::step(std::int64_t t) const {
  require_between("step", t, 0, std::numeric_limits<std::int64_t>::max());
  std::vector<MatrixOperation> step;
  for (auto i : matrices_)
    if (layout_->size(i) > 0) step.push_back({.kind = Kind::momentum, .parameter = i});
  std::vector<Bucket const*> buckets;
  std::vector<std::size_t> local;
  for (auto const& group : groups_) {
    if (gathers(group, t))
      for (auto const& bucket : group.buckets) buckets.push_back(&bucket);
    else
      local.insert(local.end(), group.matrices.begin(), group.matrices.end());
  }
  std::int64_t columns = 0;
  for (auto i : local) {
    auto const& p = layout_->parameters()[i];
    if (!is_tall(p)) continue;
    step.push_back({.kind = Kind::sum_columns, .parameter = i, .offset = columns});
    columns += p.columns();
  }
  if (columns > 0) step.push_back({.kind = Kind::reduce_columns, .elements = columns});
  if (!buckets.empty() && options_.system == System::overlap)
    step.push_back({.kind = Kind::gather, .bucket = buckets[0]});
  step.push_back({.kind = Kind::meanwhile});
  add_row_norm(local, false, step);
  if (columns > 0) step.push_back({.kind = Kind::await_columns});
  add_row_norm(local, true, step);
  add_gathered(buckets, t, step);
  for (auto i : owned_) // whole here
    step.push_back({.kind = Kind::update_owned, .parameter = i, .refreshes = refreshes(i, t)});
  return step;
}

Ledger MatrixPlan::traffic(std::int64_t t) const {
  Ledger ledger;
  auto const shards = layout_->shards(), tensors = layout_->place().tensors;
  for (auto const& operation : step(t)) {
    if (operation.kind == Kind::gather)
      ledger.record(Collective::all_gather, Purpose::optimizer, shards,
                    operation.bucket->part * shards * wire_bytes());
    if (operation.kind == Kind::reduce_columns)
      ledger.record(Collective::all_reduce, Purpose::optimizer, shards, operation.elements * float_bytes);
    if (operation.kind == Kind::update_owned)
      if (auto const& p = layout_->parameters()[operation.parameter]; p.split)
        for (auto const& c : split_collectives(p, tensors, operation.refreshes))
          ledger.record(c.kind, Purpose::optimizer, tensors, c.elements * float_bytes);
  }
  return ledger;
}

char const* name(MatrixOperation::Kind kind) {
  switch (kind) {
  case Kind::momentum:
    return "momentum";
  case Kind::sum_columns:
    return "column sums";
  case Kind::reduce_columns:
    return "launch column sums";
  case Kind::gather:
    return "launch bucket";
  case Kind::meanwhile:
    return "AdamW";
  case Kind::normalise_rows:
  case Kind::normalise_columns:
    return "RowNorm";
  case Kind::await_columns:
    return "wait for column sums";
  case Kind::await_gather:
    return "wait for bucket";
  case Kind::update_gathered:
  case Kind::update_owned:
    return "update";
  }
  return "";
}

} // namespace prowl
