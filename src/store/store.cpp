#include <prowl/store/store.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/kernels/update.hpp>

#include <algorithm>

namespace prowl {

namespace {

struct Sizes {
  std::int64_t full = 0, part = 0;
};

Sizes largest_unit(ShardLayout const& layout) {
  Sizes largest;
  for (auto const& unit : layout.units()) {
    largest.full = std::max(largest.full, unit.full_size);
    largest.part = std::max(largest.part, unit.size);
  }
  return largest;
}

} // namespace

Store::Store(Execution const& exec, Mesh const& mesh, std::vector<Parameter> parameters, int prefetch)
    : exec_(exec), mesh_(mesh), layout_(std::move(parameters), mesh.shard().size(), mesh.shard().rank()),
      prefetch_(prefetch), weights_("weights", layout_.size()), gradients_("gradients", layout_.size()),
      gradient_started_(layout_.units().size(), false) {
  if (prefetch < 0) throw Error("parallel.prefetch = {}: expected 0 or more", prefetch);
  for (std::size_t u = 0; u < layout_.units().size(); ++u) {
    std::int64_t offset = 0;
    for (auto i = layout_.units()[u].first; i < layout_.units()[u].last; ++i) {
      full_offsets_.push_back(offset);
      unit_of_.push_back(u);
      offset += layout_.parameters()[i].size();
    }
  }
  auto const largest = largest_unit(layout_);
  if (gathers()) {
    weight_slots_.resize(std::size_t(prefetch) + 1);
    for (auto& slot : weight_slots_) {
      slot.gathered = uninitialised<Vector<float>>("gathered", largest.part * layout_.ranks());
      slot.full = uninitialised<Vector<float>>("whole weights", largest.full);
    }
  }
  unit_gradient_.full = uninitialised<Vector<float>>("whole gradients", largest.full);
  if (gathers()) {
    unit_gradient_.packed = uninitialised<Vector<float>>("packed gradients", largest.part * layout_.ranks());
    unit_gradient_.reduced = uninitialised<Vector<float>>("reduced gradients", largest.part);
  }
}

std::int64_t Store::bytes(ShardLayout const& layout, int prefetch) {
  auto const largest = largest_unit(layout);
  auto const packed = largest.part * layout.ranks();
  std::int64_t elements = 2 * layout.size() + largest.full;
  if (layout.ranks() > 1) elements += (prefetch + 1) * (packed + largest.full) + packed + largest.part;
  return elements * std::int64_t(sizeof(float));
}

std::int64_t Store::bytes() const {
  auto const& g = unit_gradient_;
  std::size_t elements =
      weights_.size() + gradients_.size() + g.full.size() + g.packed.size() + g.reduced.size();
  for (auto const& slot : weight_slots_) elements += slot.gathered.size() + slot.full.size();
  return std::int64_t(elements * sizeof(float));
}

Matrix<float> Store::shard(Vector<float> const& flat, std::size_t parameter) const {
  return as_matrix(slice(flat, layout_.offset(parameter), layout_.local_size(parameter)),
                   layout_.rows(parameter).size(), layout_.parameters()[parameter].columns());
}

void Store::weights_changed() {
  for (auto& slot : weight_slots_) {
    slot.request.wait();
    slot.unit = none;
    slot.whole = false;
  }
}

void Store::for_each_piece(std::size_t unit,
                           std::function<void(std::int64_t, std::int64_t, std::int64_t)> const& visit) const {
  auto const& u = layout_.units()[unit];
  for (auto i = u.first; i < u.last; ++i) {
    auto const& p = layout_.parameters()[i];
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      auto const rows = shard_rows(p.rows(), layout_.ranks(), rank);
      if (rows.size() > 0)
        visit(rank * u.size + layout_.offset(i) - u.offset, full_offsets_[i] + rows.begin * p.columns(),
              rows.size() * p.columns());
    }
  }
}

Store::WeightSlot* Store::find(std::size_t unit) {
  auto const slot = std::ranges::find(weight_slots_, unit, &WeightSlot::unit);
  return slot == weight_slots_.end() ? nullptr : &*slot;
}

/// The slot in which `unit` is, or is on its way; never takes the slot of `keep`.
Store::WeightSlot& Store::gather(std::size_t unit, Purpose purpose, std::size_t keep) {
  WeightSlot* slot = find(unit);
  if (!slot) {
    for (auto& candidate : weight_slots_)
      if (candidate.unit == none || candidate.unit != keep)
        if (!slot || candidate.last_use < slot->last_use) slot = &candidate;
    slot->request.wait();
    slot->unit = unit;
    slot->whole = false;
    auto const& u = layout_.units()[unit];
    slot->request = mesh_.shard().all_gather(exec_, slice(weights_, u.offset, u.size),
                                             slice(slot->gathered, 0, u.size * layout_.ranks()), purpose);
  }
  slot->last_use = ++clock_;
  return *slot;
}

void Store::rebuild(WeightSlot& slot) {
  for_each_piece(slot.unit, [&](std::int64_t packed, std::int64_t full, std::int64_t size) {
    Kokkos::deep_copy(exec_, slice(slot.full, full, size), slice(slot.gathered, packed, size));
  });
  slot.whole = true;
}

/// Makes `unit` whole, and starts to gather `next` where there is one.
void Store::materialise(std::size_t unit, Purpose purpose, std::size_t next) {
  if (!gathers()) return;
  auto& slot = gather(unit, purpose, none);
  {
    trace::Span const span("wait for weights");
    slot.request.wait();
  }
  if (!slot.whole) rebuild(slot);
  if (prefetch_ > 0 && next < layout_.units().size()) (void)gather(next, purpose, unit);
}

void Store::begin_forward(std::size_t unit) { materialise(unit, Purpose::forward, unit + 1); }

void Store::end_forward(std::size_t) {} // its slot is taken by the next gather that needs one

void Store::begin_backward(std::size_t unit) {
  materialise(unit, Purpose::backward, unit - 1); // of unit 0: none
  unit_gradient_.unit = unit;
}

void Store::end_backward(std::size_t unit) {
  auto& g = unit_gradient_;
  if (g.unit != unit) throw Error("unit {}: end_backward without begin_backward", layout_.units()[unit].name);
  g.unit = none;
  auto const& u = layout_.units()[unit];
  if (!gathers()) {
    accumulate(unit, g.full);
    return;
  }
  settle(); // has had the time of this unit's backward: one reduction at a time is enough
  pack(unit);
  g.request = mesh_.shard().reduce_scatter(exec_, slice(g.packed, 0, u.size * layout_.ranks()),
                                           slice(g.reduced, 0, u.size), Purpose::backward);
  g.reducing = unit;
}

void Store::pack(std::size_t unit) {
  auto const& g = unit_gradient_;
  auto const& u = layout_.units()[unit];
  Kokkos::deep_copy(exec_, slice(g.packed, 0, u.size * layout_.ranks()), 0.0f);
  for_each_piece(unit, [&](std::int64_t packed, std::int64_t full, std::int64_t size) {
    Kokkos::deep_copy(exec_, slice(g.packed, packed, size), slice(g.full, full, size));
  });
}

/// Brings the gradients of the unit that is being reduced onto their shards.
void Store::settle() {
  auto& g = unit_gradient_;
  if (g.reducing == none) return;
  {
    trace::Span const span("wait for gradients");
    g.request.wait();
  }
  accumulate(g.reducing, g.reduced);
  g.reducing = none;
}

void Store::accumulate(std::size_t unit, Vector<float> const& summed) {
  auto const& u = layout_.units()[unit];
  auto const to = slice(gradients_, u.offset, u.size);
  auto const from = slice(summed, 0, u.size);
  if (gradient_started_[unit])
    add(exec_, from, to);
  else
    Kokkos::deep_copy(exec_, to, from);
  gradient_started_[unit] = true;
}

void Store::clear_gradients() {
  settle();
  gradient_started_.assign(gradient_started_.size(), false);
}

void Store::finish_gradients() {
  settle();
  if (mesh_.replicate().size() > 1) mesh_.replicate().all_reduce(exec_, gradients_, Purpose::backward).wait();
}

Matrix<float const> Store::weight(std::size_t parameter) const {
  auto const& p = layout_.parameters()[parameter];
  auto const unit = unit_of_[parameter];
  if (!gathers())
    return as_matrix<float const>(slice(weights_, layout_.offset(parameter), p.size()), p.rows(),
                                  p.columns());
  auto const slot = std::ranges::find(weight_slots_, unit, &WeightSlot::unit);
  if (slot == weight_slots_.end() || !slot->whole)
    throw Error("parameter {}: its unit {} is not materialised", p.name, p.unit);
  return as_matrix<float const>(slice(slot->full, full_offsets_[parameter], p.size()), p.rows(), p.columns());
}

Matrix<float> Store::gradient(std::size_t parameter) const {
  auto const& p = layout_.parameters()[parameter];
  if (unit_gradient_.unit != unit_of_[parameter])
    throw Error("parameter {}: its unit {} is not in its backward", p.name, p.unit);
  return as_matrix(slice(unit_gradient_.full, full_offsets_[parameter], p.size()), p.rows(), p.columns());
}

} // namespace prowl
