/// Which parameters move together: the units of a model, from the names of its parameters.
#pragma once

#include <prowl/placement/parameter.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace prowl {

/// The first `layers.N` or `blocks.N` of a dotted name with all that comes before it, so that prefixes stay apart:
/// "vision.blocks.3" of "vision.blocks.3.attn.q.weight". None where the name has no such part.
std::optional<std::string> block_of(std::string const& name);

/// Accepts the modules, by dotted path, that are to be units.
using UnitPredicate = std::function<bool(std::string const& module)>;

/// Gives a unit to every parameter that has none: of the modules above it that `is_unit` accepts the lowest, or, without a
/// predicate, its block. A parameter that neither covers has its parent module as its unit (where
/// that was left by another parameter before: a unit of its own), unless `required` says that
/// it must be covered. Throws Error naming the parameter in that case, and where a predicate accepts no module at all.
void assign_units(std::vector<Parameter>& parameters, UnitPredicate const& is_unit = {},
                  std::function<bool(Parameter const&)> const& required = {});

} // namespace prowl
