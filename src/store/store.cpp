#include <prowl/store/store.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/store/registration.hpp>

#include <algorithm>
#include <exception>
#include <numeric>

namespace prowl {

Store::Sizes Store::make_sizes(Layout const& layout, StoreOptions const& options) {
  Sizes sizes;
  bool const gathers = layout.shards() > 1, replicas = layout.place().replicas > 1;
  bool const each_its_own = options.residency == Residency::z2;
  if (gathers) {
    auto const units = layout.units().size();
    auto const slots = each_its_own ? units : std::min(units, std::size_t(options.prefetch) + 1);
    sizes.gathered.resize(slots);
    sizes.whole.resize(slots);
  }
  std::int64_t owned = 0;
  for (std::size_t u = 0; u < layout.units().size(); ++u) {
    auto const& unit = layout.units()[u];
    auto const gathered = unit.shards.size * layout.shards();
    for (std::size_t s = 0; s < sizes.whole.size(); ++s) {
      if (each_its_own && s != u) continue;
      sizes.gathered[s] = std::max(sizes.gathered[s], gathered);
      sizes.whole[s] = std::max(sizes.whole[s], unit.size - unit.owned_weights.size);
    }
    sizes.gradient = std::max(sizes.gradient, unit.size);
    if (gathers) sizes.packed = std::max(sizes.packed, unit.owned + gathered);
    if (gathers || replicas)
      sizes.reduced = std::max(sizes.reduced, (gathers ? unit.shards.size : 0) + unit.owned_weights.size);
    owned += unit.owned;
  }
  if (replicas && owned > 0) sizes.reductions = 2;
  if (options.micro_batches > 1) sizes.deferred = owned;
  return sizes;
}

Store::Store(Execution const& exec, Mesh const& mesh, std::vector<Parameter> parameters,
             StoreOptions const& options)
    : Store(exec, mesh, Layout(std::move(parameters), mesh.place()), options) {}

Store::Store(Execution const& exec, Mesh const& mesh, Layout layout, StoreOptions const& options)
    : exec_(exec), mesh_(mesh), layout_(std::move(layout)), options_(options),
      weights_("weights", layout_.weights_size()), gradients_("gradients", layout_.gradients_size()),
      started_(layout_.units().size(), false), backwards_(layout_.units().size(), 0),
      publications_(layout_.units().size()) {
  if (options.prefetch < 0) throw Error("parallel.prefetch = {}: expected 0 or more", options.prefetch);
  if (options.micro_batches < 1)
    throw Error("{} micro-batches a step, expected at least 1", options.micro_batches);
  if (layout_.place() != mesh.place())
    throw Error("the layout is that of another mesh, or of another rank of it");
  require_same_registration(mesh.world(), layout_);
  auto const sizes = make_sizes(layout_, options);
  slots_.resize(sizes.whole.size());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].gathered = uninitialised<Vector<float>>("gathered", sizes.gathered[s]);
    slots_[s].full = uninitialised<Vector<float>>("whole weights", sizes.whole[s]);
  }
  unit_gradient_.full = uninitialised<Vector<float>>("whole gradients", sizes.gradient);
  unit_gradient_.packed = uninitialised<Vector<float>>("packed gradients", sizes.packed);
  for (int r = 0; r < sizes.reductions; ++r)
    unit_gradient_.reduced[r].values = uninitialised<Vector<float>>("reduced gradients", sizes.reduced);
  deferred_ = uninitialised<Vector<float>>("deferred gradients", sizes.deferred);
}

Store::~Store() {
  try {
    finish_publication();                       // every rank has started it
    if (std::uncaught_exceptions() > 0) return; // of the rest, other ranks may know nothing
    weights_changed();
    clear_gradients();
  } catch (Error const&) { // the communication failed: there is nobody left to tell
  }
}

std::int64_t Store::bytes(Layout const& layout, StoreOptions const& options) {
  auto const s = make_sizes(layout, options);
  std::int64_t const elements = layout.weights_size() + layout.gradients_size() +
                                std::reduce(s.gathered.begin(), s.gathered.end()) +
                                std::reduce(s.whole.begin(), s.whole.end()) + s.gradient + s.packed +
                                s.reductions * s.reduced + s.deferred;
  return elements * std::int64_t(sizeof(float));
}

std::int64_t Store::bytes() const {
  auto const& g = unit_gradient_;
  std::size_t elements = weights_.size() + gradients_.size() + g.full.size() + g.packed.size() +
                         g.reduced[0].values.size() + g.reduced[1].values.size() + deferred_.size();
  for (auto const& slot : slots_) elements += slot.gathered.size() + slot.full.size();
  return std::int64_t(elements * sizeof(float));
}

Matrix<float> Store::kept_weights(std::size_t parameter) const {
  auto const rows = layout_.weight_rows(parameter).size(),
             columns = layout_.parameters()[parameter].columns();
  return as_matrix(slice(weights_, layout_.weight_offset(parameter), rows * columns), rows, columns);
}

Matrix<float> Store::updated_weights(std::size_t parameter) const {
  auto const rows = layout_.rows(parameter).size(), columns = layout_.parameters()[parameter].columns();
  return as_matrix(slice(weights_, layout_.weight_offset(parameter), rows * columns), rows, columns);
}

Matrix<float> Store::updated_gradient(std::size_t parameter) const {
  auto const rows = layout_.rows(parameter).size(), columns = layout_.parameters()[parameter].columns();
  return as_matrix(slice(gradients_, layout_.gradient_offset(parameter), rows * columns), rows, columns);
}

void Store::assign(std::size_t parameter, Matrix<float const> const& whole) {
  auto const& p = layout_.parameters()[parameter];
  finish_publication();
  if (std::int64_t(whole.extent(0)) != p.rows() || std::int64_t(whole.extent(1)) != p.columns())
    throw Error("parameter {}: assigned from {} x {}, expected {} x {}", p.name, whole.extent(0),
                whole.extent(1), p.rows(), p.columns());
  auto const rows = layout_.weight_rows(parameter);
  Kokkos::deep_copy(exec_, kept_weights(parameter),
                    Kokkos::subview(whole, Kokkos::pair(rows.begin, rows.end), Kokkos::ALL));
  exec_.fence(); // the next to read them may not know exec
  weights_changed();
}

void Store::release(WeightSlot& slot) {
  wait_all(slot.requests);
  slot.unit = none;
  slot.whole = false;
}

void Store::weights_changed() {
  for (auto& slot : slots_) release(slot);
}

void Store::for_each_piece(std::size_t unit,
                           std::function<void(std::int64_t, std::int64_t, std::int64_t)> const& visit) const {
  auto const& u = layout_.units()[unit];
  for (auto i = u.first; i < u.last; ++i) {
    if (layout_.placement(i)) continue;
    auto const& p = layout_.parameters()[i];
    for (int rank = 0; rank < layout_.shards(); ++rank) {
      auto const rows = shard_rows(p.rows(), layout_.shards(), rank);
      if (rows.size() > 0)
        visit(rank * u.shards.size + layout_.weight_offset(i) - u.shards.offset,
              layout_.whole_offset(i) + rows.begin * p.columns(), rows.size() * p.columns());
    }
  }
}

Store::WeightSlot* Store::find(std::size_t unit) {
  auto const slot = std::ranges::find(slots_, unit, &WeightSlot::unit);
  return slot == slots_.end() ? nullptr : &*slot;
}

/// Where in a slot that lies which begins at `whole_offset` of the whole unit: matrices that are kept here have no place in it.
std::int64_t Store::slot_offset(std::size_t unit, std::int64_t whole_offset) const {
  auto const& own = layout_.units()[unit].own;
  return whole_offset >= own.offset + own.size ? whole_offset - own.size : whole_offset;
}

/// A slot for `unit`; not that of a unit in [first, last].
Store::WeightSlot& Store::take_slot(std::size_t unit, std::size_t first, std::size_t last) {
  if (options_.residency == Residency::z2) return slots_[unit];
  WeightSlot* best = nullptr;
  for (auto& slot : slots_) {
    bool const wanted = slot.unit != none && slot.unit >= first && slot.unit <= last;
    if (!wanted && (!best || slot.last_use < best->last_use)) best = &slot;
  }
  release(*best);
  return *best;
}

/// The slot in which `unit` is, or is on its way.
Store::WeightSlot& Store::fetch(std::size_t unit, Purpose purpose, std::size_t first, std::size_t last) {
  auto* slot = find(unit);
  if (!slot) {
    slot = &take_slot(unit, first, last);
    slot->unit = unit;
    wait_all(publications_[unit]);
    auto const& u = layout_.units()[unit];
    auto const& group = mesh_.shard();
    if (u.shards.size > 0)
      slot->requests.push_back(group.all_gather(exec_, slice(weights_, u.shards.offset, u.shards.size),
                                                slice(slot->gathered, 0, u.shards.size * group.size()),
                                                purpose));
    for (auto const& pack : u.packs) {
      auto const matrices = pack.shard == group.rank()
                                ? slice(weights_, u.owned_weights.offset, u.owned_weights.size)
                                : slice(slot->full, slot_offset(unit, pack.whole.offset), pack.whole.size);
      slot->requests.push_back(group.broadcast(exec_, matrices, pack.shard, purpose));
    }
  }
  slot->last_use = ++clock_;
  return *slot;
}

void Store::rebuild(WeightSlot& slot) {
  for_each_piece(slot.unit, [&](std::int64_t gathered, std::int64_t full, std::int64_t size) {
    Kokkos::deep_copy(exec_, slice(slot.full, slot_offset(slot.unit, full), size),
                      slice(slot.gathered, gathered, size));
  });
  slot.whole = true;
}

/// Makes `unit` whole, and starts to fetch those that are next.
void Store::materialise(std::size_t unit, Purpose purpose) {
  if (!gathers()) {
    wait_all(publications_[unit]);
    return;
  }
  auto const ahead = std::size_t(options_.prefetch), last = layout_.units().size() - 1;
  bool const forward = purpose == Purpose::forward;
  auto const from = forward ? unit : unit - std::min(unit, ahead),
             to = forward ? std::min(unit + ahead, last) : unit;
  auto& slot = fetch(unit, purpose, from, to);
  {
    trace::Span const span("wait for weights");
    wait_all(slot.requests);
  }
  if (!slot.whole) rebuild(slot);
  for (std::size_t d = 1; d <= to - from; ++d) (void)fetch(forward ? unit + d : unit - d, purpose, from, to);
}

void Store::begin_forward(std::size_t unit) { materialise(unit, Purpose::forward); }

void Store::end_forward(std::size_t unit) {
  if (auto* slot = find(unit); slot && options_.residency == Residency::z3) release(*slot);
}

Matrix<float const> Store::weight(std::size_t parameter) const {
  auto const& p = layout_.parameters()[parameter];
  auto const& owner = layout_.placement(parameter);
  if (!gathers() || (owner && owner->shard == layout_.place().shard)) return kept_weights(parameter);
  auto const slot = std::ranges::find(slots_, layout_.unit_of(parameter), &WeightSlot::unit);
  if (slot == slots_.end() || !slot->whole)
    throw Error("parameter {}: its unit {} is not materialised", p.name, p.unit);
  auto const offset = slot_offset(slot->unit, layout_.whole_offset(parameter));
  return as_matrix<float const>(slice(slot->full, offset, p.size()), p.rows(), p.columns());
}

void Store::publish() {
  auto const& group = mesh_.replicate();
  if (group.size() == 1) return;
  for (std::size_t unit = 0; unit < layout_.units().size(); ++unit) {
    auto const& u = layout_.units()[unit];
    auto const mine = std::ranges::find(u.packs, layout_.place().shard, &Layout::Pack::shard);
    if (mine == u.packs.end()) continue;
    for (int replica = 0; replica < group.size(); ++replica) {
      auto const& part = mine->replica[std::size_t(replica)];
      if (part.size > 0)
        publications_[unit].push_back(
            group.broadcast(exec_, slice(weights_, u.owned_weights.offset + part.offset, part.size), replica,
                            Purpose::optimizer));
    }
  }
  if (!options_.asynchronous) finish_publication();
}

void Store::finish_publication() {
  trace::Span const span("wait for replicas");
  for (auto& requests : publications_) wait_all(requests);
}

} // namespace prowl
