#include <prowl/placement/units.hpp>

#include <prowl/core/error.hpp>

#include <algorithm>
#include <cctype>
#include <set>

namespace prowl {

namespace {

std::string parent(std::string const& path) {
  auto const dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::optional<std::string> lowest_accepted(std::string const& name, UnitPredicate const& is_unit) {
  for (auto module = parent(name); !module.empty(); module = parent(module))
    if (is_unit(module)) return module;
  return {};
}

} // namespace

std::optional<std::string> block_of(std::string const& name) {
  std::size_t begin = 0;
  bool after_list = false; // the part before was `layers` or `blocks`
  while (begin < name.size()) {
    auto const end = std::min(name.find('.', begin), name.size());
    auto const part = name.substr(begin, end - begin);
    bool const number =
        !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); });
    if (after_list && number) return name.substr(0, end);
    after_list = part == "layers" || part == "blocks";
    begin = end + 1;
  }
  return {};
}

void assign_units(std::vector<Parameter>& parameters, UnitPredicate const& is_unit,
                  std::function<bool(Parameter const&)> const& required) {
  bool any = false, asked = false;
  std::set<std::string> used;
  std::string last;
  for (auto& p : parameters) {
    if (p.unit.empty()) {
      auto const unit = is_unit ? lowest_accepted(p.name, is_unit) : block_of(p.name);
      asked = true;
      any = any || unit;
      if (!unit && required && required(p))
        throw Error("parameter {}: no unit covers it; expected {}", p.name,
                    is_unit ? "a module above it that the unit predicate accepts"
                            : "layers.N or blocks.N in its name, or a unit predicate");
      p.unit = unit.value_or(parent(p.name));
      // A module that was left before cannot be a unit again.
      if (!unit && p.unit != last && used.contains(p.unit)) p.unit = p.name;
    }
    used.insert(p.unit);
    last = p.unit;
  }
  if (is_unit && asked && !any)
    throw Error("the unit predicate accepts no module of the model; the first parameter is {}",
                parameters.front().name);
}

} // namespace prowl
