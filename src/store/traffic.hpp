/// What a store will communicate, from the layout alone.
#pragma once

#include <prowl/comm/ledger.hpp>
#include <prowl/store/store.hpp>

#include <string>

namespace prowl {

/// The collectives of one unit in a step: for each micro-batch a forward and a backward, starting with no unit whole, and
/// the publication to the replicas. Logical bytes of the layout's rank.
Ledger planned_traffic(Layout const& layout, StoreOptions const& options, std::size_t unit);
/// Of all units, with the sum of the shards' gradients over the replicas.
Ledger planned_traffic(Layout const& layout, StoreOptions const& options);

/// A line for each unit: owners, calls and bytes of the forward, the backward and the publication.
std::string traffic_table(Layout const& layout, StoreOptions const& options);

/// One line: planned and measured calls and bytes a step, of what a store does (no sums of scalars, no optimizer gathers).
/// `measured` holds one step.
std::string compare_traffic(Ledger const& planned, Ledger const& measured);

} // namespace prowl
