/// Dedicated ownership (DMuon, arXiv:2606.27153): which parameters are owned whole, and by which rank.
#pragma once

#include <prowl/optim/options.hpp>
#include <prowl/placement/layout.hpp>
#include <prowl/placement/owners.hpp>
#include <prowl/placement/units.hpp>

#include <string>
#include <vector>

namespace prowl {

struct OwnershipOptions {
  Assignment assignment = Assignment::balanced;
  std::int64_t pack_below = 4096; ///< elements; see assign_owners
};

/// Flop of a parameter's update in an average step: NS5 has 20 r^2 c + 10 r^3 (r, c the short and the long side) in one
/// step of K, RowNorm 3, the momentum 3, and the update 3 an element, AdamW 12 an element.
double update_cost(Parameter const& parameter, Route const& route);

struct Ownership {
  std::vector<Placement> placements; ///< of every parameter
  std::vector<double> loads;         ///< of slot shard + shards * replica: flop a step
  double imbalance = 1;              ///< largest load over mean load
};

/// Parameters with the rules `muon` and `adamw` get an owner each over the shards * replicas slots of the mesh, all others
/// stay sharded. The same on every rank.
Ownership assign_ownership(std::vector<Parameter> const& parameters, std::vector<Route> const& routes,
                           MeshPlace const& mesh, OwnershipOptions const& options = {});

/// The layout of a rank of `mesh` under dedicated ownership. Parameters without a unit get theirs from their names; one
/// that is owned must be covered (see assign_units). Throws Error as route, assign_units and Layout do.
Layout dedicated_layout(std::vector<Parameter> parameters, OptimizerOptions const& optimizer,
                        MeshPlace const& mesh, OwnershipOptions const& options = {},
                        UnitPredicate const& is_unit = {});

/// A line for each parameter: name, shape, rule, unit, owner ("sharded" where it has none), and what its rule uses.
std::string routing_table(Layout const& layout, std::vector<Route> const& routes);

} // namespace prowl
