#include <prowl/optim/matrix_update.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/kernels/convert.hpp>
#include <prowl/kernels/momentum.hpp>
#include <prowl/kernels/newton_schulz.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/kernels/row_norm.hpp>
#include <prowl/kernels/update.hpp>
#include <prowl/optim/split_direction.hpp>

#include <algorithm>

namespace prowl {

namespace {

bool is_tall(Parameter const& p) { return p.whole_rows() > p.whole_columns(); }

} // namespace

MatrixUpdate::MatrixUpdate(Execution const& exec, Store& store, OptimizerOptions const& options,
                           std::vector<Route> const& routes)
    : exec_(exec), store_(store), options_(options), routes_(routes), offsets_(routes.size(), 0),
      groups_(make_groups(store.layout(), options, routes)) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].rule != Rule::muon) continue;
    matrices_.push_back(i);
    if (store.layout().owns(i)) owned_.push_back(i);
    offsets_[i] = offset;
    offset += store.layout().size(i);
  }
  allocate(make_sizes(store.layout(), options, routes, groups_));
}

/// The sharded matrices by period, those that are never refreshed under 0, and the buckets of each.
std::vector<MatrixUpdate::Group> MatrixUpdate::make_groups(Layout const& layout,
                                                           OptimizerOptions const& options,
                                                           std::vector<Route> const& routes) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].rule != Rule::muon || layout.placement(i)) continue;
    if (layout.parameters()[i].split)
      throw Error(
          "parameter {}: Muon updates a matrix that is split over a tensor group where it is owned; expected "
          "dedicated placement",
          layout.parameters()[i].name);
    auto const period = routes[i].muon.direction == Direction::row_norm ? 0 : routes[i].muon.period;
    auto group = std::ranges::find(groups, period, &Group::period);
    if (group == groups.end()) group = groups.insert(groups.end(), {period, {}, {}});
    group->matrices.push_back(i);
  }
  bool const one_each = options.system == System::naive || options.system == System::sharded_row_norm;
  for (auto& group : groups)
    group.buckets = fill_buckets(layout.parameters(), group.matrices, layout.shards(),
                                 options.wire == Wire::bfloat16 ? sizeof(bfloat16) : sizeof(float),
                                 one_each ? 1 : options.bucket_bytes);
  return groups;
}

MatrixUpdate::Sizes MatrixUpdate::make_sizes(Layout const& layout, OptimizerOptions const& options,
                                             std::vector<Route> const& routes,
                                             std::vector<Group> const& groups) {
  Sizes sizes;
  std::size_t buckets = 0; // in a step that refreshes all
  for (auto const& group : groups) {
    bool const gathers = group.period > 0 || options.system == System::naive;
    if (gathers)
      for (auto const& bucket : group.buckets) {
        sizes.part = std::max(sizes.part, bucket.part);
        ++buckets;
      }
    for (auto i : group.matrices) {
      auto const& p = layout.parameters()[i];
      sizes.momenta += layout.size(i);
      sizes.scratch = std::max(sizes.scratch, layout.size(i));
      if (is_tall(p)) sizes.column_sums += p.columns();
      if (!gathers) continue;
      sizes.full = std::max(sizes.full, p.size());
      sizes.workspace = std::max(sizes.workspace, newton_schulz_workspace(p.rows(), p.columns()));
    }
  }
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].rule != Rule::muon || !layout.owns(i)) continue;
    auto const& p = layout.parameters()[i];
    sizes.momenta += p.size();
    sizes.full = std::max(sizes.full, p.size());
    if (is_tall(p)) sizes.column_sums = std::max(sizes.column_sums, p.columns());
    if (p.split) {
      sizes.workspace = std::max(sizes.workspace, split_workspace(p, layout.place().tensors));
      continue;
    }
    if (routes[i].muon.direction != Direction::row_norm)
      sizes.workspace = std::max(sizes.workspace, newton_schulz_workspace(p.rows(), p.columns()));
  }
  sizes.slots = int(std::min<std::size_t>(buckets, options.system == System::overlap ? 2 : 1));
  return sizes;
}

void MatrixUpdate::allocate(Sizes const& sizes) {
  momenta_ = Vector<float>("momenta", sizes.momenta);
  scratch_ = uninitialised<Vector<float>>("direction", sizes.scratch);
  full_ = uninitialised<Vector<float>>("whole matrix", sizes.full);
  workspace_ = uninitialised<Vector<float>>("Newton-Schulz workspace", sizes.workspace);
  column_sums_ = uninitialised<Vector<float>>("column sums", sizes.column_sums);
  auto const gathered = sizes.part * store_.layout().shards();
  for (int s = 0; s < sizes.slots; ++s) {
    auto& slot = slots_[s];
    if (options_.wire == Wire::bfloat16) {
      slot.sent_bf16 = Vector<bfloat16>("sent bucket", sizes.part);
      slot.received_bf16 = uninitialised<Vector<bfloat16>>("gathered bucket", gathered);
    } else {
      slot.sent = Vector<float>("sent bucket", sizes.part);
      slot.received = uninitialised<Vector<float>>("gathered bucket", gathered);
    }
  }
}

std::int64_t MatrixUpdate::bytes(Layout const& layout, OptimizerOptions const& options,
                                 std::vector<Route> const& routes) {
  auto const s = make_sizes(layout, options, routes, make_groups(layout, options, routes));
  std::int64_t const element = options.wire == Wire::bfloat16 ? sizeof(bfloat16) : sizeof(float);
  return (s.momenta + s.scratch + s.full + s.workspace + s.column_sums) * std::int64_t(sizeof(float)) +
         s.slots * s.part * (layout.shards() + 1) * element;
}

std::int64_t MatrixUpdate::bytes() const {
  std::size_t elements =
                  momenta_.size() + scratch_.size() + full_.size() + workspace_.size() + column_sums_.size(),
              halves = 0;
  for (auto const& slot : slots_) {
    elements += slot.sent.size() + slot.received.size();
    halves += slot.sent_bf16.size() + slot.received_bf16.size();
  }
  return std::int64_t(elements * sizeof(float) + halves * sizeof(bfloat16));
}

Matrix<float> MatrixUpdate::momentum(std::size_t parameter) const {
  auto const& layout = store_.layout();
  return as_matrix(slice(momenta_, offsets_[parameter], layout.size(parameter)),
                   layout.rows(parameter).size(), layout.parameters()[parameter].columns());
}

std::vector<Bucket> const& MatrixUpdate::buckets(std::int64_t period) const {
  return std::ranges::find(groups_, period, &Group::period)->buckets;
}

bool MatrixUpdate::refreshes(std::size_t parameter, std::int64_t t) const {
  auto const& o = routes_[parameter].muon;
  return o.direction != Direction::row_norm && t % o.period == 0;
}

float MatrixUpdate::row_norm_scale(std::size_t parameter) const {
  auto const& o = routes_[parameter].muon;
  return o.direction == Direction::row_norm ? 1.0f : float(o.gamma);
}

void MatrixUpdate::update_momenta() {
  trace::Span const span("momentum");
  auto const& layout = store_.layout();
  for (auto i : matrices_)
    prowl::momentum(exec_, float(routes_[i].muon.momentum), as_vector(store_.updated_gradient(i)),
                    slice(momenta_, offsets_[i], layout.size(i)));
}

void MatrixUpdate::fed(std::size_t parameter, Vector<float> const& to) const {
  auto const& layout = store_.layout();
  auto const size = layout.size(parameter);
  auto const m = slice(momenta_, offsets_[parameter], size);
  if (routes_[parameter].muon.nesterov)
    nesterov(exec_, float(routes_[parameter].muon.momentum), as_vector(store_.updated_gradient(parameter)), m,
             to);
  else
    Kokkos::deep_copy(exec_, to, m);
}

Vector<float> MatrixUpdate::fed(std::size_t parameter) const {
  auto const size = store_.layout().size(parameter);
  if (!routes_[parameter].muon.nesterov) return slice(momenta_, offsets_[parameter], size);
  auto const u = slice(scratch_, 0, size);
  fed(parameter, u);
  return u;
}

void MatrixUpdate::apply(std::size_t parameter, Vector<float> const& direction, double rate_factor) const {
  auto const& layout = store_.layout();
  auto const& p = layout.parameters()[parameter];
  auto const& o = routes_[parameter].muon;
  double const rate = o.rate * rate_factor;
  decayed_update(exec_, float(rate), float(o.decay),
                 float(rate_scale(o.adjust_rate, p.whole_rows(), p.whole_columns())), direction,
                 as_vector(store_.updated_weights(parameter)));
}

void MatrixUpdate::launch(Bucket const& bucket, Slot& slot) {
  trace::Span const span("launch bucket");
  auto const& layout = store_.layout();
  auto const gathered = bucket.part * layout.shards();
  for (auto const& entry : bucket.entries) {
    auto const size = layout.size(entry.parameter);
    if (options_.wire == Wire::bfloat16) {
      to_bfloat16(exec_, fed(entry.parameter), slice(slot.sent_bf16, entry.offset, size));
    } else {
      fed(entry.parameter, slice(slot.sent, entry.offset, size));
    }
  }
  auto const& shard = store_.mesh().shard();
  slot.request = options_.wire == Wire::bfloat16
                     ? shard.all_gather(exec_, slice(slot.sent_bf16, 0, bucket.part),
                                        slice(slot.received_bf16, 0, gathered), Purpose::optimizer)
                     : shard.all_gather(exec_, slice(slot.sent, 0, bucket.part),
                                        slice(slot.received, 0, gathered), Purpose::optimizer);
}

/// The whole matrix of an entry, from the parts of all ranks.
void MatrixUpdate::rebuild(Bucket const& bucket, Bucket::Entry const& entry, Slot const& slot) const {
  auto const& layout = store_.layout();
  auto const& p = layout.parameters()[entry.parameter];
  for (int rank = 0; rank < layout.shards(); ++rank) {
    auto const rows = shard_rows(p.rows(), layout.shards(), rank);
    if (rows.size() == 0) break;
    auto const from = rank * bucket.part + entry.offset, size = rows.size() * p.columns();
    auto const to = slice(full_, rows.begin * p.columns(), size);
    if (options_.wire == Wire::bfloat16)
      to_float(exec_, slice(slot.received_bf16, from, size), to);
    else
      Kokkos::deep_copy(exec_, to, slice(slot.received, from, size));
  }
}

/// With overlap one bucket ahead: wait for bucket l, launch l + 1, then compute on l.
void MatrixUpdate::gather_and_update(std::vector<Bucket const*> const& buckets, std::int64_t t,
                                     double rate_factor) {
  bool const ahead = options_.system == System::overlap;
  for (std::size_t l = 0; l < buckets.size(); ++l) {
    auto& slot = slots_[ahead ? l % 2 : 0];
    if (!slot.request.pending()) launch(*buckets[l], slot);
    {
      trace::Span const span("wait for bucket");
      slot.request.wait();
    }
    if (ahead && l + 1 < buckets.size()) launch(*buckets[l + 1], slots_[(l + 1) % 2]);
    for (auto const& entry : buckets[l]->entries) {
      rebuild(*buckets[l], entry, slot);
      update_from_whole(entry.parameter, t, rate_factor);
    }
  }
}

/// With the whole matrix that its direction comes from in the scratch array for whole matrices, updates the rows held here.
void MatrixUpdate::update_from_whole(std::size_t parameter, std::int64_t t, double rate_factor) {
  auto const& layout = store_.layout();
  auto const& p = layout.parameters()[parameter];
  auto const whole = slice(full_, 0, p.size());
  auto const x = as_matrix(whole, p.rows(), p.columns());
  auto const mine = slice(whole, layout.rows(parameter).begin * p.columns(), layout.size(parameter));
  auto const& group = store_.mesh().tensor();
  if (refreshes(parameter, t)) {
    trace::Span const span("NS5");
    if (p.split)
      split_newton_schulz(exec_, group, p, x, workspace_);
    else
      newton_schulz(exec_, x, workspace_);
    exec_.fence(); // so that the span in the trace is the computation's
    if (routes_[parameter].muon.direction == Direction::scalar_controlled)
      scale(exec_, float(routes_[parameter].muon.gamma), mine);
  } else if (p.split) {
    split_row_norm(exec_, group, p, row_norm_scale(parameter), x, workspace_);
  } else if (is_tall(p)) {
    auto const sums = slice(column_sums_, 0, p.columns());
    column_sum_squares(exec_, x, sums);
    column_norm_finish(exec_, row_norm_scale(parameter), sums, x);
  } else {
    row_norm(exec_, row_norm_scale(parameter), x);
  }
  apply(parameter, mine, rate_factor);
}

/// Starts the sum of the tall matrices' column norms over the ranks.
void MatrixUpdate::begin_row_norm(std::vector<std::size_t> const& parameters) {
  trace::Span const span("column sums");
  auto const& layout = store_.layout();
  std::int64_t offset = 0;
  for (auto i : parameters) {
    auto const& p = layout.parameters()[i];
    if (!is_tall(p)) continue;
    column_sum_squares(exec_, as_matrix(fed(i), layout.rows(i).size(), p.columns()),
                       slice(column_sums_, offset, p.columns()));
    offset += p.columns();
  }
  if (offset > 0)
    column_request_ =
        store_.mesh().shard().all_reduce(exec_, slice(column_sums_, 0, offset), Purpose::optimizer);
}

/// Finishes the other matrices first, then, with the sums, the tall ones.
void MatrixUpdate::finish_row_norm(std::vector<std::size_t> const& parameters, double rate_factor) {
  auto const& layout = store_.layout();
  std::int64_t offset = 0;
  for (bool const tall : {false, true}) {
    if (tall) {
      trace::Span const span("wait for column sums");
      column_request_.wait();
    }
    trace::Span const span("RowNorm");
    for (auto i : parameters) {
      auto const& p = layout.parameters()[i];
      if (is_tall(p) != tall) continue;
      auto const d = slice(scratch_, 0, layout.size(i));
      auto const x = as_matrix(d, layout.rows(i).size(), p.columns());
      fed(i, d);
      if (tall)
        column_norm_finish(exec_, row_norm_scale(i), slice(column_sums_, offset, p.columns()), x);
      else
        row_norm(exec_, row_norm_scale(i), x);
      if (tall) offset += p.columns();
      apply(i, d, rate_factor);
    }
  }
}

void MatrixUpdate::step(std::int64_t t, double rate_factor, std::function<void()> const& meanwhile) {
  update_momenta();
  std::vector<Bucket const*> buckets;
  std::vector<std::size_t> local;
  for (auto const& group : groups_) {
    bool const gather = options_.system == System::naive || (group.period > 0 && t % group.period == 0);
    if (gather)
      for (auto const& bucket : group.buckets) buckets.push_back(&bucket);
    else
      local.insert(local.end(), group.matrices.begin(), group.matrices.end());
  }
  begin_row_norm(local);
  if (!buckets.empty() && options_.system == System::overlap) launch(*buckets[0], slots_[0]);
  meanwhile();
  finish_row_norm(local, rate_factor);
  gather_and_update(buckets, t, rate_factor);
  for (auto i : owned_) { // whole here: no collective
    fed(i, slice(full_, 0, store_.layout().size(i)));
    update_from_whole(i, t, rate_factor);
  }
}

} // namespace prowl
