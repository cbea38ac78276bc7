#include <prowl/optim/ownership.hpp>

#include <prowl/core/error.hpp>

#include <algorithm>

namespace prowl {

namespace {

char const* rule_name(Rule rule) {
  switch (rule) {
  case Rule::muon:
    return "muon";
  case Rule::adamw:
    return "adamw";
  case Rule::sharded_adamw:
    return "sharded_adamw";
  }
  return "";
}

char const* direction_name(Direction direction) {
  switch (direction) {
  case Direction::periodic:
    return "periodic";
  case Direction::row_norm:
    return "rownorm";
  case Direction::scalar_controlled:
    return "scalar";
  }
  return "";
}

std::string settings(Route const& route) {
  auto const& m = route.muon;
  auto const& a = route.adamw;
  if (route.rule == Rule::muon)
    return fmt::format("rate {} decay {} momentum {}{} {} K {} gamma {}", m.rate, m.decay, m.momentum,
                       m.nesterov ? " nesterov" : "", direction_name(m.direction), m.period, m.gamma);
  return fmt::format("rate {} decay {} beta {} {}", a.rate, a.decay, a.beta1, a.beta2);
}

} // namespace

double update_cost(Parameter const& p, Route const& route) {
  auto const size = double(p.whole_rows() * p.whole_columns());
  if (route.rule != Rule::muon) return 12 * size;
  auto const r = double(std::min(p.whole_rows(), p.whole_columns())),
             c = double(std::max(p.whole_rows(), p.whole_columns()));
  double const refreshes = route.muon.direction == Direction::row_norm ? 0 : 1 / double(route.muon.period);
  return refreshes * (20 * r * r * c + 10 * r * r * r) + (1 - refreshes) * 3 * size + 6 * size;
}

Ownership assign_ownership(std::vector<Parameter> const& parameters, std::vector<Route> const& routes,
                           MeshPlace const& mesh, OwnershipOptions const& options) {
  require_place(mesh);
  if (routes.size() != parameters.size())
    throw Error("{} routes for {} parameters", routes.size(), parameters.size());
  std::vector<OwnedMatrix> matrices;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (routes[i].rule != Rule::sharded_adamw)
      matrices.push_back({i, parameters[i].unit, parameters[i].whole_rows() * parameters[i].whole_columns(),
                          update_cost(parameters[i], routes[i])});
  auto const owners =
      assign_owners(matrices, mesh.shards * mesh.replicas, options.assignment, options.pack_below);
  Ownership result{std::vector<Placement>(parameters.size()), owners.loads, owners.imbalance()};
  for (std::size_t m = 0; m < matrices.size(); ++m)
    result.placements[matrices[m].parameter] =
        Owner{owners.slots[m] % mesh.shards, owners.slots[m] / mesh.shards};
  return result;
}

Layout dedicated_layout(std::vector<Parameter> parameters, OptimizerOptions const& optimizer,
                        MeshPlace const& mesh, OwnershipOptions const& options,
                        UnitPredicate const& is_unit) {
  auto const routes = route(parameters, optimizer);
  assign_units(parameters, is_unit, [&](Parameter const& p) {
    return routes[std::size_t(&p - parameters.data())].rule != Rule::sharded_adamw;
  });
  auto placements = assign_ownership(parameters, routes, mesh, options).placements;
  return Layout(std::move(parameters), mesh, std::move(placements));
}

std::string routing_table(Layout const& layout, std::vector<Route> const& routes) {
  if (routes.size() != layout.parameters().size())
    throw Error("{} routes for {} parameters", routes.size(), layout.parameters().size());
  std::string table;
  std::size_t name = 0, unit = 0;
  for (auto const& p : layout.parameters()) {
    name = std::max(name, p.name.size());
    unit = std::max(unit, p.unit.size());
  }
  for (std::size_t i = 0; i < routes.size(); ++i) {
    auto const& p = layout.parameters()[i];
    auto const& owner = layout.placement(i);
    auto const shape =
        p.is_matrix() ? fmt::format("{} x {}", p.rows(), p.columns()) : fmt::format("{}", p.rows());
    auto const where = owner ? fmt::format("shard {} replica {}", owner->shard, owner->replica) : "sharded";
    table += fmt::format("{:<{}}  {:>13}  {:<13}  {:<{}}  {:<19}  {}\n", p.name, name, shape,
                         rule_name(routes[i].rule), p.unit, unit, where, settings(routes[i]));
  }
  return table;
}

} // namespace prowl
