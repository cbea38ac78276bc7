#include <prowl/store/traffic.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace prowl {

namespace {

constexpr double mib = 1 << 20;

std::int64_t bytes(std::int64_t elements) { return elements * std::int64_t(sizeof(float)); }

/// Making a unit whole, once.
void add_weights(Ledger& ledger, Layout const& layout, Layout::Unit const& unit, Purpose purpose) {
  auto const shards = layout.shards();
  if (shards == 1) return;
  if (unit.shards.size > 0)
    ledger.record(Collective::all_gather, purpose, shards, bytes(unit.shards.size * shards));
  for (auto const& pack : unit.packs)
    ledger.record(Collective::broadcast, purpose, shards, bytes(pack.whole.size));
}

/// This rank's pack over the replicas, one call for each owner in it.
void add_replicas(Ledger& ledger, Layout const& layout, Layout::Unit const& unit, Collective kind,
                  Purpose purpose) {
  auto const pack = std::ranges::find(unit.packs, layout.place().shard, &Layout::Pack::shard);
  if (pack == unit.packs.end() || layout.place().replicas == 1) return;
  for (auto const& part : pack->replica)
    if (part.size > 0) ledger.record(kind, purpose, layout.place().replicas, bytes(part.size));
}

/// What a store does, as opposed to the optimizer's gathers and sums of scalars.
Ledger::Totals of_store(Ledger const& ledger) {
  Ledger::Totals sum;
  auto const add = [&](Collective kind, Purpose purpose) {
    auto const totals = ledger.totals(kind, purpose);
    sum.calls += totals.calls;
    sum.bytes += totals.bytes;
  };
  for (auto purpose : {Purpose::forward, Purpose::backward}) {
    add(Collective::all_gather, purpose);
    add(Collective::broadcast, purpose);
  }
  add(Collective::reduce_scatter, Purpose::backward);
  add(Collective::reduce, Purpose::backward);
  add(Collective::all_reduce, Purpose::backward);
  add(Collective::broadcast, Purpose::optimizer);
  return sum;
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

Ledger planned_traffic(Layout const& layout, StoreOptions const& options, std::size_t unit) {
  Ledger ledger;
  auto const& u = layout.units()[unit];
  for (int k = 0; k < options.micro_batches; ++k) {
    bool const z2 = options.residency == Residency::z2;
    if (!z2 || k == 0) add_weights(ledger, layout, u, Purpose::forward);
    if (!z2) add_weights(ledger, layout, u, Purpose::backward);
    if (layout.shards() > 1 && u.shards.size > 0)
      ledger.record(Collective::reduce_scatter, Purpose::backward, layout.shards(),
                    bytes(u.shards.size * layout.shards()));
  }
  if (layout.shards() > 1)
    for (auto const& pack : u.packs)
      ledger.record(Collective::reduce, Purpose::backward, layout.shards(), bytes(pack.whole.size));
  add_replicas(ledger, layout, u, Collective::reduce, Purpose::backward);
  add_replicas(ledger, layout, u, Collective::broadcast, Purpose::optimizer);
  return ledger;
}

Ledger planned_traffic(Layout const& layout, StoreOptions const& options) {
  Ledger ledger;
  for (std::size_t unit = 0; unit < layout.units().size(); ++unit)
    ledger.add(planned_traffic(layout, options, unit));
  if (layout.place().replicas > 1 && layout.sharded_size() > 0)
    ledger.record(Collective::all_reduce, Purpose::backward, layout.place().replicas,
                  bytes(layout.sharded_size()));
  return ledger;
}

std::string traffic_table(Layout const& layout, StoreOptions const& options) {
  std::size_t width = 4;
  for (auto const& unit : layout.units()) width = std::max(width, unit.name.size());
  auto table =
      fmt::format("{:<{}}  {:>9}  {:>9}  {:>8}  {:>9}  {:>8}  {:>8}  {}\n", "unit", width, "calls", "forward",
                  "calls", "backward", "calls", "publish", "owners (MiB a rank and step)");
  for (std::size_t u = 0; u < layout.units().size(); ++u) {
    auto const ledger = planned_traffic(layout, options, u);
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
  auto const p = of_store(planned), m = of_store(measured);
  return fmt::format(
      "communication of weights and gradients a rank and step: planned {} calls, {:.3f} MiB; measured {} "
      "calls, {:.3f} MiB",
      p.calls, p.bytes / mib, m.calls, m.bytes / mib);
}

} // namespace prowl
