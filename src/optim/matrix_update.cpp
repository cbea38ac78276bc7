#include <prowl/optim/matrix_update.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/kernels/convert.hpp>
#include <prowl/kernels/momentum.hpp>
#include <prowl/kernels/newton_schulz.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/kernels/row_norm.hpp>
#include <prowl/kernels/shards.hpp>
#include <prowl/kernels/update.hpp>
#include <prowl/optim/split_direction.hpp>

#include <algorithm>
#include <cmath>

namespace prowl {

MatrixUpdate::MatrixUpdate(Execution const& exec, Store& store, OptimizerOptions const& options,
                           std::vector<Route> const& routes)
    : exec_(exec), store_(store), options_(options), routes_(routes), plan_(store.layout(), options, routes),
      offsets_(routes.size(), 0), bounds_(routes.size(), 0) {
  std::int64_t offset = 0;
  for (auto i : plan_.matrices()) {
    offsets_[i] = offset;
    offset += store.layout().size(i);
  }
  allocate();
}

void MatrixUpdate::allocate() {
  auto const& sizes = plan_.sizes();
  momenta_ = Vector<float>("momenta", sizes.momenta);
  scratch_ = uninitialised<Vector<float>>("direction", sizes.scratch);
  full_ = uninitialised<Vector<float>>("whole matrix", sizes.full);
  workspace_ = uninitialised<Vector<float>>("Newton-Schulz workspace", sizes.workspace);
  column_sums_ = uninitialised<Vector<float>>("column sums", sizes.column_sums);
  for (std::size_t s = 0; s < sizes.slots; ++s) {
    auto& slot = slots_[s];
    auto const part = sizes.slot_parts[s], gathered = part * store_.layout().shards();
    if (options_.wire == Wire::bfloat16) {
      slot.sent_bf16 = Vector<bfloat16>("sent bucket", part);
      slot.received_bf16 = uninitialised<Vector<bfloat16>>("gathered bucket", gathered);
    } else {
      slot.sent = Vector<float>("sent bucket", part);
      slot.received = uninitialised<Vector<float>>("gathered bucket", gathered);
    }
  }
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

float MatrixUpdate::gamma(std::size_t parameter) const { return float(routes_[parameter].muon.gamma); }

void MatrixUpdate::follow(std::vector<double> const& gradient_norms) {
  for (auto i : plan_.matrices()) {
    double const mu = routes_[i].muon.momentum;
    if (store_.layout().parameters()[i].split) bounds_[i] = mu * bounds_[i] + (1 - mu) * gradient_norms[i];
  }
}

void MatrixUpdate::measure_momenta() {
  for (auto i : plan_.matrices())
    if (store_.layout().parameters()[i].split) bounds_[i] = sum_squares(exec_, as_vector(momentum(i)));
  store_.mesh().world().sum(bounds_);
  for (auto& bound : bounds_) bound = std::sqrt(bound);
}

/// A power of two that leaves squares of a split matrix's elements floats; 1 unless it is very large. NS5
/// ignores scale.
double MatrixUpdate::gram_scale(std::size_t parameter) const {
  return bounds_[parameter] < 0x1p50 ? 1 : std::exp2(-std::ilogb(bounds_[parameter]));
}

void MatrixUpdate::update_momentum(std::size_t parameter) const {
  prowl::momentum(exec_, float(routes_[parameter].muon.momentum),
                  as_vector(store_.updated_gradient(parameter)),
                  slice(momenta_, offsets_[parameter], store_.layout().size(parameter)));
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

void MatrixUpdate::gather(Bucket const& bucket, Slot& slot) {
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

/// The whole matrix, from the parts of all ranks.
void MatrixUpdate::rebuild(MatrixOperation const& operation) const {
  auto const& layout = store_.layout();
  auto const& p = layout.parameters()[operation.parameter];
  auto const& slot = slots_[operation.slot];
  ShardedRows const rows{p.rows(), p.columns(), layout.shards(), operation.bucket->part, operation.offset};
  if (options_.wire == Wire::bfloat16)
    join_shards(exec_, rows, slot.received_bf16, slice(full_, 0, p.size()));
  else
    join_shards(exec_, rows, slot.received, slice(full_, 0, p.size()));
}

/// With the whole matrix that its direction comes from in the scratch array for whole matrices, updates the rows held here.
void MatrixUpdate::update_from_whole(std::size_t parameter, bool refreshes, double rate_factor) const {
  auto const& layout = store_.layout();
  auto const& p = layout.parameters()[parameter];
  auto const whole = slice(full_, 0, p.size());
  auto const x = as_matrix(whole, p.rows(), p.columns());
  auto const mine = slice(whole, layout.rows(parameter).begin * p.columns(), layout.size(parameter));
  auto const& group = store_.mesh().tensor();
  if (refreshes) {
    trace::Span const span("NS5");
    if (auto const factor = gram_scale(parameter); p.split && factor != 1) scale(exec_, factor, whole);
    if (p.split)
      split_newton_schulz(exec_, group, p, x, workspace_);
    else
      newton_schulz(exec_, x, workspace_);
    exec_.fence(); // so that the span in the trace is the computation's
    if (routes_[parameter].muon.direction == Direction::scalar_controlled)
      scale(exec_, gamma(parameter), mine);
  } else if (p.split) {
    split_row_norm(exec_, group, p, gamma(parameter), x, workspace_);
  } else if (is_tall(p)) {
    auto const sums = slice(column_sums_, 0, p.columns());
    column_sum_squares(exec_, x, sums);
    column_norm_finish(exec_, gamma(parameter), sums, x);
  } else {
    row_norm(exec_, gamma(parameter), x);
  }
  apply(parameter, mine, rate_factor);
}

void MatrixUpdate::sum_columns(MatrixOperation const& operation) const {
  auto const& layout = store_.layout();
  auto const i = operation.parameter;
  auto const columns = layout.parameters()[i].columns();
  column_sum_squares(exec_, as_matrix(fed(i), layout.rows(i).size(), columns),
                     slice(column_sums_, operation.offset, columns));
}

/// RowNorm of the rows held here, and their update.
void MatrixUpdate::normalise(MatrixOperation const& operation, double rate_factor) const {
  auto const& layout = store_.layout();
  auto const i = operation.parameter;
  auto const columns = layout.parameters()[i].columns();
  auto const d = slice(scratch_, 0, layout.size(i));
  auto const x = as_matrix(d, layout.rows(i).size(), columns);
  fed(i, d);
  if (operation.kind == MatrixOperation::Kind::normalise_columns)
    column_norm_finish(exec_, gamma(i), slice(column_sums_, operation.offset, columns), x);
  else
    row_norm(exec_, gamma(i), x);
  apply(i, d, rate_factor);
}

void MatrixUpdate::carry_out(MatrixOperation const& operation, double rate_factor) {
  using Kind = MatrixOperation::Kind;
  auto const i = operation.parameter;
  switch (operation.kind) {
  case Kind::momentum:
    update_momentum(i);
    break;
  case Kind::sum_columns:
    sum_columns(operation);
    break;
  case Kind::reduce_columns:
    column_request_ = store_.mesh().shard().all_reduce_squares(
        exec_, slice(column_sums_, 0, operation.elements), Purpose::optimizer);
    break;
  case Kind::gather:
    gather(*operation.bucket, slots_[operation.slot]);
    break;
  case Kind::normalise_rows:
  case Kind::normalise_columns:
    normalise(operation, rate_factor);
    break;
  case Kind::await_columns:
    column_request_.wait();
    break;
  case Kind::await_gather:
    slots_[operation.slot].request.wait();
    break;
  case Kind::update_gathered:
    rebuild(operation);
    update_from_whole(i, operation.refreshes, rate_factor);
    break;
  case Kind::update_owned:
    fed(i, slice(full_, 0, store_.layout().size(i)));
    update_from_whole(i, operation.refreshes, rate_factor);
    break;
  case Kind::meanwhile:
    break;
  }
}

void MatrixUpdate::step(std::int64_t t, double rate_factor, std::function<void()> const& meanwhile) {
  for (auto const& operation : plan_.step(t)) {
    trace::Span const span(name(operation.kind));
    if (operation.kind == MatrixOperation::Kind::meanwhile)
      meanwhile();
    else
      carry_out(operation, rate_factor);
  }
}

} // namespace prowl
