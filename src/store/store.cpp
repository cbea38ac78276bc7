#include <prowl/store/store.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/store/registration.hpp>

#include <algorithm>
#include <exception>
#include <numeric>

namespace prowl {

StoreOptions const& require_options(StoreOptions const& options) {
  if (options.prefetch < 0) throw Error("parallel.prefetch = {}: expected 0 or more", options.prefetch);
  if (options.micro_batches < 1)
    throw Error("{} micro-batches a step, expected at least 1", options.micro_batches);
  return options;
}

StoreSizes store_sizes(Layout const& layout, StoreOptions const& options) {
  require_options(options);
  StoreSizes sizes;
  sizes.weights = layout.weights_size();
  sizes.gradients = layout.gradients_size();
  bool const gathers = layout.shards() > 1, replicas = layout.place().replicas > 1;
  bool const each_its_own = options.residency == Residency::z2;
  auto const slots = UnitSlots(layout.units().size(), options.prefetch, options.residency, gathers).size();
  sizes.gathered.resize(slots);
  sizes.whole.resize(slots);
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
    : exec_(exec), mesh_(mesh), layout_(std::move(layout)), options_(require_options(options)),
      weights_("weights", layout_.weights_size()), gradients_("gradients", layout_.gradients_size()),
      units_(layout_.units().size(), options.prefetch, options.residency, layout_.shards() > 1),
      started_(layout_.units().size(), false), backwards_(layout_.units().size(), 0),
      publications_(layout_.units().size()) {
  if (layout_.place() != mesh.place())
    throw Error("the layout is that of another mesh, or of another rank of it");
  require_same_registration(mesh.world(), layout_);
  auto const sizes = store_sizes(layout_, options);
  // Not resize: it would copy slots where a View's move may throw, as it may with nvcc.
  slots_ = std::vector<WeightSlot>(sizes.whole.size());
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

std::int64_t StoreSizes::transient_bytes() const {
  return (std::reduce(gathered.begin(), gathered.end()) + std::reduce(whole.begin(), whole.end()) + gradient +
          packed + reductions * reduced + deferred) *
         std::int64_t(sizeof(float));
}

std::int64_t StoreSizes::bytes() const {
  return (weights + gradients) * std::int64_t(sizeof(float)) + transient_bytes();
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
  auto const& p = layout_.parameter(parameter);
  if (in_forward_ != none || unit_gradient_.unit != none)
    throw Error("parameter {}: assigned while unit {} is in use", p.name,
                layout_.units()[in_forward_ != none ? in_forward_ : unit_gradient_.unit].name);
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

void Store::release(std::size_t slot) {
  wait_all(slots_[slot].requests);
  slots_[slot].whole = false;
  units_.release(slot);
}

void Store::weights_changed() {
  in_forward_ = none;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) release(slot);
}

ShardedRows Store::sharded_rows(std::size_t parameter) const {
  auto const& p = layout_.parameters()[parameter];
  auto const& shards = layout_.units()[layout_.unit_of(parameter)].shards;
  return {p.rows(), p.columns(), layout_.shards(), shards.size,
          layout_.weight_offset(parameter) - shards.offset};
}

/// Where in a slot that lies which begins at `whole_offset` of the whole unit: matrices that are kept here have no place in it.
std::int64_t Store::slot_offset(std::size_t unit, std::int64_t whole_offset) const {
  auto const& own = layout_.units()[unit].own;
  return whole_offset >= own.offset + own.size ? whole_offset - own.size : whole_offset;
}

void Store::fetch(std::size_t unit, WeightSlot& slot, Purpose purpose) {
  wait_all(publications_[unit]);
  auto const& u = layout_.units()[unit];
  auto const& group = mesh_.shard();
  if (u.shards.size > 0)
    slot.requests.push_back(group.all_gather(exec_, slice(weights_, u.shards.offset, u.shards.size),
                                             slice(slot.gathered, 0, u.shards.size * group.size()), purpose));
  for (auto const& pack : u.packs) {
    auto const matrices = pack.shard == group.rank()
                              ? slice(weights_, u.owned_weights.offset, u.owned_weights.size)
                              : slice(slot.full, slot_offset(unit, pack.whole.offset), pack.whole.size);
    slot.requests.push_back(group.broadcast(exec_, matrices, pack.shard, purpose));
  }
}

void Store::rebuild(std::size_t unit, WeightSlot& slot) {
  auto const& u = layout_.units()[unit];
  auto const gathered = slice(slot.gathered, 0, u.shards.size * layout_.shards());
  for (auto i = u.first; i < u.last; ++i)
    if (!layout_.placement(i))
      join_shards(
          exec_, sharded_rows(i), gathered,
          slice(slot.full, slot_offset(unit, layout_.whole_offset(i)), layout_.parameters()[i].size()));
  slot.whole = true;
}

/// Makes `unit` whole, and starts to fetch those that are next.
void Store::materialise(std::size_t unit, Pass pass) {
  if (!gathers()) {
    wait_all(publications_[unit]);
    return;
  }
  for (auto const& claim : units_.claim(unit, pass)) {
    auto& slot = slots_[claim.slot];
    if (claim.fetch) {
      wait_all(slot.requests);
      slot.whole = false;
      fetch(claim.unit, slot, pass == Pass::forward ? Purpose::forward : Purpose::backward);
    }
    if (claim.unit != unit) continue;
    {
      trace::Span const span("wait for weights");
      wait_all(slot.requests);
    }
    if (!slot.whole) rebuild(unit, slot);
  }
}

/// Throws unless `call` of a unit is in its turn: of one that is there, and no unit is in use.
void Store::require_idle(std::size_t unit, char const* call) const {
  auto const& u = layout_.unit(unit);
  bool const forward = in_forward_ != none;
  if (!forward && unit_gradient_.unit == none) return;
  throw Error("unit {}: {} while unit {} is in its {}, expected its end before", u.name, call,
              layout_.units()[forward ? in_forward_ : unit_gradient_.unit].name,
              forward ? "forward" : "backward");
}

void Store::begin_forward(std::size_t unit) {
  require_idle(unit, "begin_forward");
  materialise(unit, Pass::forward);
  in_forward_ = unit;
}

void Store::end_forward(std::size_t unit) {
  auto const& u = layout_.unit(unit);
  if (in_forward_ != unit) throw Error("unit {}: end_forward without begin_forward", u.name);
  in_forward_ = none;
  if (options_.residency == Residency::z3) drop(unit);
}

void Store::drop(std::size_t unit) {
  if (auto const slot = units_.find(unit); slot != none) release(slot);
}

Matrix<float const> Store::weight(std::size_t parameter) const {
  auto const& p = layout_.parameter(parameter);
  auto const unit = layout_.unit_of(parameter);
  if (in_forward_ != unit && unit_gradient_.unit != unit)
    throw Error("parameter {}: its unit {} is not in its forward or backward", p.name, p.unit);
  auto const& owner = layout_.placement(parameter);
  if (!gathers() || (owner && owner->shard == layout_.place().shard)) return kept_weights(parameter);
  auto const slot = units_.find(unit);
  auto const offset = slot_offset(unit, layout_.whole_offset(parameter));
  return as_matrix<float const>(slice(slots_[slot].full, offset, p.size()), p.rows(), p.columns());
}

void Store::publish() {
  auto const& group = mesh_.replicate();
  if (group.size() == 1) return;
  for (std::size_t unit = 0; unit < layout_.units().size(); ++unit) {
    auto const& u = layout_.units()[unit];
    auto const* const mine = u.own_pack();
    if (!mine) continue;
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
