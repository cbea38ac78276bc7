#include <prowl/placement/layout.hpp>

#include <prowl/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace prowl {

ShardLayout::ShardLayout(std::vector<Parameter> parameters, int ranks, int rank)
    : parameters_(std::move(parameters)), ranks_(ranks), rank_(rank) {
  std::set<std::string> names, closed_units;
  offsets_.push_back(0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto const& p = parameters_[i];
    if (!names.insert(p.name).second) throw Error("parameter {}: registered twice", p.name);
    if (p.shape.empty() || p.shape.size() > 2 || std::ranges::any_of(p.shape, [](auto n) { return n < 1; }))
      throw Error("parameter {}: shape [{}], expected one or two dimensions of at least 1", p.name,
                  fmt::join(p.shape, ", "));
    if (units_.empty() || units_.back().name != p.unit) {
      if (!closed_units.insert(p.unit).second)
        throw Error("parameter {}: its unit '{}' was left by another parameter; register a unit's parameters "
                    "together",
                    p.name, p.unit);
      units_.push_back({p.unit, i, i, offsets_.back(), 0, 0});
    }
    auto const part = padded_rows(p.rows(), ranks) * p.columns();
    auto& unit = units_.back();
    unit.last = i + 1;
    unit.size += part;
    unit.full_size += p.size();
    offsets_.push_back(offsets_.back() + part);
  }
}

} // namespace prowl
