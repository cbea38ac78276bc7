// The gradients of a Store: from whole units to where they are updated.
#include <prowl/store/store.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/kernels/update.hpp>

#include <algorithm>

namespace prowl {

void Store::begin_backward(std::size_t unit) {
  require_idle(unit, "begin_backward");
  if (!accumulating_) clear_gradients();
  accumulating_ = true;
  materialise(unit, Pass::backward);
  unit_gradient_.unit = unit;
}

void Store::end_backward(std::size_t unit) {
  auto& g = unit_gradient_;
  auto const& u = layout_.unit(unit);
  if (g.unit != unit) throw Error("unit {}: end_backward without begin_backward", u.name);
  g.unit = none;
  if (backwards_[unit] == options_.micro_batches)
    throw Error("unit {}: more than {} backwards in a step, which is the store's number of micro-batches",
                u.name, options_.micro_batches);
  bool const last = ++backwards_[unit] == options_.micro_batches;
  if (options_.reduction == Reduction::mean)
    scale(exec_,
          1.0f /
              float(std::int64_t(mesh_.shard().size()) * mesh_.replicate().size() * options_.micro_batches),
          slice(g.full, 0, u.size));
  if (u.owned > 0) defer(unit, last);
  if (options_.residency == Residency::z3) drop(unit);
  settle(); // has had the time of this unit's backward: one unit's reductions at a time are enough
  g.reducing = unit;
  g.owned = u.owned > 0 && last;
  if (gathers())
    reduce(unit);
  else
    settle();
}

/// Adds up the owned matrices' gradients of the micro-batches, in the whole unit at the last one.
void Store::defer(std::size_t unit, bool last) {
  if (options_.micro_batches == 1) return;
  auto const& u = layout_.units()[unit];
  auto const now = slice(unit_gradient_.full, 0, u.owned),
             sum = slice(deferred_, deferred_offset(unit), u.owned);
  if (last)
    add(exec_, sum, now);
  else if (backwards_[unit] == 1)
    Kokkos::deep_copy(exec_, sum, now);
  else
    add(exec_, now, sum);
}

std::int64_t Store::deferred_offset(std::size_t unit) const {
  std::int64_t offset = 0;
  for (std::size_t u = 0; u < unit; ++u) offset += layout_.units()[u].owned;
  return offset;
}

/// Packs the gradients of a unit, and starts to sum them over the shard group.
void Store::reduce(std::size_t unit) {
  auto& g = unit_gradient_;
  auto const& u = layout_.units()[unit];
  auto const& group = mesh_.shard();
  auto const& reduced = g.reduced[g.turn].values;
  if (u.shards.size > 0) {
    auto const packed = slice(g.packed, u.owned, u.shards.size * group.size());
    for (auto i = u.first; i < u.last; ++i)
      if (!layout_.placement(i))
        split_shards(exec_, sharded_rows(i),
                     slice(g.full, layout_.whole_offset(i), layout_.parameters()[i].size()), packed);
    g.requests.push_back(
        group.reduce_scatter(exec_, packed, slice(reduced, 0, u.shards.size), Purpose::backward));
  }
  if (!g.owned) return;
  Kokkos::deep_copy(exec_, slice(g.packed, 0, u.owned), slice(g.full, 0, u.owned));
  for (auto const& pack : u.packs) {
    auto const to =
        pack.shard == group.rank() ? slice(reduced, u.shards.size, pack.whole.size) : Vector<float>();
    g.requests.push_back(group.reduce(exec_, slice(g.packed, pack.whole.offset, pack.whole.size), to,
                                      pack.shard, Purpose::backward));
  }
}

/// Brings the gradients of the unit that is being reduced onto their shards and, over the replicas, to their owners.
void Store::settle() {
  auto& g = unit_gradient_;
  if (g.reducing == none) return;
  {
    trace::Span const span("wait for gradients");
    wait_all(g.requests);
  }
  auto const unit = g.reducing;
  auto const& u = layout_.units()[unit];
  g.reducing = none;
  auto const& from = gathers() ? g.reduced[g.turn].values : g.full;
  auto const shards_at = gathers() ? 0 : u.owned, owned_at = gathers() ? u.shards.size : 0;
  accumulate(unit, slice(from, shards_at, u.shards.size));
  if (g.owned) hand_over(unit, slice(from, owned_at, u.owned_weights.size));
}

/// `values`: the pack of this rank's shard index, summed over the shard group.
void Store::hand_over(std::size_t unit, Vector<float> const& values) {
  auto& g = unit_gradient_;
  auto const& u = layout_.units()[unit];
  auto const& group = mesh_.replicate();
  auto const mine = slice(gradients_, u.owned_gradients.offset, u.owned_gradients.size);
  if (group.size() == 1) {
    Kokkos::deep_copy(exec_, mine, values);
    return;
  }
  auto const* const pack = u.own_pack();
  if (!pack) return;
  auto& reduced = g.reduced[g.turn];
  if (!gathers()) {
    wait_all(reduced.requests);
    Kokkos::deep_copy(exec_, slice(reduced.values, 0, values.size()), values);
  }
  auto const stable = gathers() ? values : slice(reduced.values, 0, std::int64_t(values.size()));
  g.turn = 1 - g.turn;
  wait_all(g.reduced[g.turn].requests); // the unit before: its values are overwritten next
  for (int replica = 0; replica < group.size(); ++replica) {
    auto const& part = pack->replica[std::size_t(replica)];
    if (part.size > 0)
      reduced.requests.push_back(group.reduce(exec_, slice(stable, part.offset, part.size),
                                              replica == group.rank() ? mine : Vector<float>(), replica,
                                              Purpose::backward));
  }
}

void Store::accumulate(std::size_t unit, Vector<float> const& summed) {
  auto const& u = layout_.units()[unit];
  auto const to = slice(gradients_, u.shards.offset, u.shards.size);
  if (started_[unit])
    add(exec_, summed, to);
  else
    Kokkos::deep_copy(exec_, to, summed);
  started_[unit] = true;
}

void Store::clear_gradients() {
  settle();
  for (auto& reduced : unit_gradient_.reduced) wait_all(reduced.requests);
  started_.assign(started_.size(), false);
  backwards_.assign(backwards_.size(), 0);
  unit_gradient_.unit = none;
  accumulating_ = complete_ = false;
}

void Store::require_micro_batches() const {
  auto const expected = options_.micro_batches;
  for (std::size_t unit = 0; unit < backwards_.size(); ++unit)
    if (backwards_[unit] > 0 && backwards_[unit] < expected)
      throw Error("unit {}: {} backward{} in a step, expected {}, the store's number of micro-batches",
                  layout_.units()[unit].name, backwards_[unit], backwards_[unit] == 1 ? "" : "s", expected);
}

void Store::finish_gradients() {
  if (unit_gradient_.unit != none)
    throw Error("unit {}: its backward has not ended, expected end_backward before the gradients are used",
                layout_.units()[unit_gradient_.unit].name);
  if (!accumulating_) return;
  require_micro_batches();
  settle();
  for (auto& reduced : unit_gradient_.reduced) wait_all(reduced.requests);
  for (std::size_t unit = 0; unit < backwards_.size(); ++unit) {
    if (backwards_[unit] > 0) continue; // else it took no part in this step
    auto const& u = layout_.units()[unit];
    Kokkos::deep_copy(exec_, slice(gradients_, u.shards.offset, u.shards.size), 0.0f);
    Kokkos::deep_copy(exec_, slice(gradients_, u.owned_gradients.offset, u.owned_gradients.size), 0.0f);
  }
  auto const shards = slice(gradients_, 0, layout_.sharded_size());
  if (mesh_.replicate().size() > 1 && shards.size() > 0)
    mesh_.replicate().all_reduce(exec_, shards, Purpose::backward).wait();
  accumulating_ = false;
  complete_ = true;
}

void Store::take_gradients() {
  if (in_forward_ != none)
    throw Error("unit {}: its forward has not ended, expected end_forward before a step",
                layout_.units()[in_forward_].name);
  finish_gradients();
  if (!complete_)
    throw Error("a step without gradients: expected {} of each unit that takes part since the step before",
                options_.micro_batches == 1 ? "a backward"
                                            : fmt::format("{} backwards", options_.micro_batches));
  complete_ = false;
}

void Store::gradients_changed() {
  if (accumulating_)
    throw Error("gradients_changed after {}, expected finish_gradients or clear_gradients before",
                unit_gradient_.unit == none ? "a backward" : "begin_backward");
  complete_ = true;
}

Matrix<float> Store::gradient(std::size_t parameter) const {
  auto const& p = layout_.parameter(parameter);
  if (unit_gradient_.unit != layout_.unit_of(parameter))
    throw Error("parameter {}: its unit {} is not in its backward", p.name, p.unit);
  return as_matrix(slice(unit_gradient_.full, layout_.whole_offset(parameter), p.size()), p.rows(),
                   p.columns());
}

} // namespace prowl
