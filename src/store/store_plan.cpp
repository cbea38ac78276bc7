#include <prowl/store/store_plan.hpp>

#include <prowl/core/bytes.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace prowl {

namespace {

std::int64_t bytes(std::int64_t elements) { return elements * std::int64_t(sizeof(float)); }

/// Lists what a Store does, call by call.
class Walk {
public:
  Walk(Layout const& layout, StoreOptions const& options)
      : layout_(layout), options_(options), gathers_(layout.shards() > 1),
        slots_(layout.units().size(), options.prefetch, options.residency, gathers_),
        whole_(layout.units().size(), false) {}

  std::vector<StoreOperation> run() {
    auto const units = layout_.units().size();
    for (micro_batch_ = 0; micro_batch_ < options_.micro_batches; ++micro_batch_) {
      for (std::size_t u = 0; u < units; ++u) {
        materialise(u, Pass::forward);
        add(Kind::forward, u);
        if (options_.residency == Residency::z3) drop(u);
      }
      for (std::size_t u = units; u-- > 0;) {
        materialise(u, Pass::backward);
        add(Kind::backward, u);
        if (options_.residency == Residency::z3) drop(u);
        reduce(u);
      }
    }
    settle();
    if (handed_over_ != UnitSlots::none) add(Kind::await_replicas, handed_over_);
    if (replicas() && layout_.sharded_size() > 0)
      add(Kind::reduce_shards, UnitSlots::none,
          {{Collective::all_reduce, Purpose::backward, Axis::replicate, bytes(layout_.sharded_size())}});
    add(Kind::optimizer, UnitSlots::none);
    publish();
    return std::move(operations_);
  }

private:
  using Kind = StoreOperation::Kind;

  void add(Kind kind, std::size_t unit, std::vector<Transfer> transfers = {}) {
    operations_.push_back({kind, unit, std::move(transfers)});
  }
  bool replicas() const { return layout_.place().replicas > 1; }

  void materialise(std::size_t unit, Pass pass) {
    for (auto const& claim : slots_.claim(unit, pass)) {
      auto const& u = layout_.units()[claim.unit];
      auto const purpose = pass == Pass::forward ? Purpose::forward : Purpose::backward;
      if (claim.fetch) {
        std::vector<Transfer> transfers;
        if (u.shards.size > 0)
          transfers.push_back(
              {Collective::all_gather, purpose, Axis::shard, bytes(u.shards.size * layout_.shards())});
        for (auto const& pack : u.packs)
          transfers.push_back({Collective::broadcast, purpose, Axis::shard, bytes(pack.whole.size)});
        add(Kind::fetch, claim.unit, std::move(transfers));
      }
      if (claim.fetch) whole_[claim.unit] = false;
      if (claim.unit == unit && !whole_[unit]) add(Kind::await_weights, unit);
      if (claim.unit == unit) whole_[unit] = true;
    }
  }

  void drop(std::size_t unit) {
    if (auto const slot = slots_.find(unit); slot != UnitSlots::none) slots_.release(slot);
  }

  void reduce(std::size_t unit) {
    auto const& u = layout_.units()[unit];
    bool const owned = u.owned > 0 && micro_batch_ + 1 == options_.micro_batches;
    settle(); // has had the time of this unit's backward
    std::vector<Transfer> transfers;
    if (gathers_ && u.shards.size > 0)
      transfers.push_back({Collective::reduce_scatter, Purpose::backward, Axis::shard,
                           bytes(u.shards.size * layout_.shards())});
    if (gathers_ && owned)
      for (auto const& pack : u.packs)
        transfers.push_back({Collective::reduce, Purpose::backward, Axis::shard, bytes(pack.whole.size)});
    add(Kind::reduce, unit, std::move(transfers));
    reducing_ = unit;
    owned_ = owned;
    if (!gathers_) settle();
  }

  void settle() {
    if (reducing_ == UnitSlots::none) return;
    add(Kind::await_gradients, reducing_);
    auto const* const pack = layout_.units()[reducing_].own_pack();
    if (owned_ && pack && replicas()) {
      if (handed_over_ != UnitSlots::none) add(Kind::await_replicas, handed_over_);
      add(Kind::hand_over, reducing_, over_replicas(*pack, Collective::reduce, Purpose::backward));
      handed_over_ = reducing_;
    }
    reducing_ = UnitSlots::none;
  }

  /// A call for each owner in the pack.
  static std::vector<Transfer> over_replicas(Layout::Pack const& pack, Collective kind, Purpose purpose) {
    std::vector<Transfer> transfers;
    for (auto const& part : pack.replica)
      if (part.size > 0) transfers.push_back({kind, purpose, Axis::replicate, bytes(part.size)});
    return transfers;
  }

  void publish() {
    if (!replicas()) return;
    std::vector<std::size_t> published;
    for (std::size_t u = 0; u < layout_.units().size(); ++u)
      if (auto const* const pack = layout_.units()[u].own_pack()) {
        add(Kind::publish, u, over_replicas(*pack, Collective::broadcast, Purpose::optimizer));
        published.push_back(u);
      }
    for (auto u : published) add(Kind::await_published, u);
  }

  Layout const& layout_;
  StoreOptions const& options_;
  bool gathers_;
  UnitSlots slots_;
  std::vector<bool> whole_; // by unit
  std::vector<StoreOperation> operations_;
  int micro_batch_ = 0;
  std::size_t reducing_ = UnitSlots::none, handed_over_ = UnitSlots::none;
  bool owned_ = false;
};

Ledger count(Layout const& layout, std::vector<StoreOperation> const& step, std::size_t unit, bool all) {
  Ledger ledger;
  for (auto const& operation : step)
    if (all || operation.unit == unit)
      for (auto const& t : operation.transfers)
        ledger.record(t.kind, t.purpose, size(layout.place(), t.axis), t.bytes);
  return ledger;
}

std::string owners_of(Layout const& layout, Layout::Unit const& unit) {
  std::string owners;
  for (auto const& pack : unit.packs)
    for (std::size_t replica = 0; replica < pack.replica.size(); ++replica)
      if (pack.replica[replica].size > 0)
        owners += fmt::format("{}{}", owners.empty() ? "" : ",", pack.shard + int(replica) * layout.shards());
  return owners.empty() ? "-" : owners;
}

} // namespace

std::vector<StoreOperation> plan_store_step(Layout const& layout, StoreOptions const& options) {
  require_options(options);
  return Walk(layout, options).run();
}

Ledger planned_traffic(Layout const& layout, StoreOptions const& options) {
  return count(layout, plan_store_step(layout, options), 0, true);
}

Ledger planned_traffic(Layout const& layout, StoreOptions const& options, std::size_t unit) {
  layout.unit(unit); // throws unless it is there
  return count(layout, plan_store_step(layout, options), unit, false);
}

std::int64_t untouched_bytes(Layout const& layout, StoreOptions const& options) {
  auto const sizes = store_sizes(layout, options);
  auto const& units = layout.units();
  UnitSlots slots(units.size(), options.prefetch, options.residency, layout.shards() > 1);
  std::vector<std::int64_t> gathered(slots.size(), 0), whole(slots.size(), 0);
  auto const visit = [&](std::size_t u, Pass pass) {
    for (auto const& claim : slots.claim(u, pass)) {
      auto const& unit = units[claim.unit];
      gathered[claim.slot] = std::max(gathered[claim.slot], unit.shards.size * layout.shards());
      whole[claim.slot] = std::max(whole[claim.slot], unit.size - unit.owned_weights.size);
    }
    if (auto const slot = slots.find(u); options.residency == Residency::z3 && slot != UnitSlots::none)
      slots.release(slot);
  };
  for (bool const backward : {true, true, false, false, true}) { // steps, and a validation of two batches
    for (std::size_t u = 0; u < units.size(); ++u) visit(u, Pass::forward);
    for (std::size_t u = units.size(); backward && u-- > 0;) visit(u, Pass::backward);
  }
  std::int64_t elements = 0;
  for (std::size_t s = 0; s < slots.size(); ++s)
    elements += sizes.gathered[s] - gathered[s] + sizes.whole[s] - whole[s];
  return bytes(elements);
}

std::string traffic_table(Layout const& layout, StoreOptions const& options) {
  std::size_t width = 4;
  for (auto const& unit : layout.units()) width = std::max(width, unit.name.size());
  auto table =
      fmt::format("{:<{}}  {:>9}  {:>9}  {:>8}  {:>9}  {:>8}  {:>8}  {}\n", "unit", width, "calls", "forward",
                  "calls", "backward", "calls", "publish", "owners (MiB a rank and step)");
  auto const step = plan_store_step(layout, options);
  for (std::size_t u = 0; u < layout.units().size(); ++u) {
    auto const ledger = count(layout, step, u, false);
    auto const forward = ledger.totals(Purpose::forward), backward = ledger.totals(Purpose::backward),
               publish = ledger.totals(Purpose::optimizer);
    table +=
        fmt::format("{:<{}}  {:>9}  {:>9.3f}  {:>8}  {:>9.3f}  {:>8}  {:>8.3f}  {}\n", layout.units()[u].name,
                    width, forward.calls, forward.bytes / mib, backward.calls, backward.bytes / mib,
                    publish.calls, publish.bytes / mib, owners_of(layout, layout.units()[u]));
  }
  return table;
}

std::string compare_traffic(Ledger const& planned, Ledger const& measured) {
  auto const text = [](Ledger const& ledger) {
    std::string list;
    for (auto purpose : all_purposes) {
      auto const totals = ledger.totals(purpose);
      list += fmt::format("{}{} {} calls {:.3f} MiB", list.empty() ? "" : ", ", name(purpose), totals.calls,
                          totals.bytes / mib);
    }
    return list;
  };
  return fmt::format("communication a rank and step: planned {}; measured {}", text(planned), text(measured));
}

} // namespace prowl
