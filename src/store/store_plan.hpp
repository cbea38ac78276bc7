/// What a store does in a step, in order, from the layout alone: for planners, which count and time it.
#pragma once

#include <prowl/comm/ledger.hpp>
#include <prowl/store/store.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace prowl {

/// One collective of a rank.
struct Transfer {
  Collective kind;
  Purpose purpose;
  Axis axis;          ///< the group of ranks
  std::int64_t bytes; ///< of the gathered, reduced or broadcast array
};

struct StoreOperation {
  enum class Kind {
    fetch,           ///< starts to make `unit` whole
    await_weights,   ///< waits for that, and puts the unit together; not where it is whole already
    forward,         ///< the model computes on the unit
    backward,        ///< likewise
    reduce,          ///< packs the unit's gradients, starts to sum them over the shard group
    await_gradients, ///< waits for that
    hand_over,       ///< starts to sum the owned ones over the replicas
    await_replicas,  ///< waits for that
    reduce_shards,   ///< sums the sharded gradients over the replicas, and waits
    optimizer,       ///< its step
    publish,         ///< starts to send the owners' new matrices of the unit to the other replicas
    await_published, ///< waits for that: where it is asynchronous, in the next step
  };
  Kind kind;
  std::size_t unit; ///< UnitSlots::none where it is of all
  std::vector<Transfer> transfers = {};
};

/// A step of a model that computes on the units in their order and back, once a micro-batch, starting with no unit whole.
std::vector<StoreOperation> plan_store_step(Layout const& layout, StoreOptions const& options);

/// Its collectives, on the layout's rank; with `unit`, those of one unit alone.
Ledger planned_traffic(Layout const& layout, StoreOptions const& options);
Ledger planned_traffic(Layout const& layout, StoreOptions const& options, std::size_t unit);

/// Of StoreSizes::gathered and whole: allocated for the largest unit, but never written, as in steps and validations only
/// smaller units come there.
std::int64_t untouched_bytes(Layout const& layout, StoreOptions const& options);

/// A line for each unit: owners, calls and bytes of the forward, the backward and the publication.
std::string traffic_table(Layout const& layout, StoreOptions const& options);

/// One line: planned and measured calls and bytes of a step, by purpose.
std::string compare_traffic(Ledger const& planned, Ledger const& measured);

} // namespace prowl
