#include <prowl/optim/options.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>
#include <prowl/placement/units.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fnmatch.h>

namespace prowl {

namespace {

constexpr double largest = std::numeric_limits<float>::max();

/// Of what becomes a float32 that multiplies weights.
void require_float(double value, char const* name, std::string const& who) {
  if (!(value >= 0)) throw Error("{}: {} = {}, expected 0 or more", who, name, value);
  if (value > largest)
    throw Error("{}: {} = {}, expected at most {:.3g}, float32's largest", who, name, value, largest);
}

void check_muon(MuonOptions const& o, std::string const& who) {
  if (o.period < 1) throw Error("{}: period K = {}, expected at least 1", who, o.period);
  if (!(o.gamma > 0)) throw Error("{}: gamma = {}, expected above 0", who, o.gamma);
  if (!(o.gamma >= 1e-30 && o.gamma <= 1e30))
    throw Error("{}: gamma = {}, expected from 1e-30 to 1e30", who, o.gamma);
  if (!(o.momentum >= 0 && float(o.momentum) < 1))
    throw Error("{}: momentum = {}, expected in [0, 1)", who, o.momentum);
  require_float(o.rate, "rate", who);
  require_float(o.decay, "decay", who);
}

void check_adamw(AdamW const& o, std::string const& who) {
  require_float(o.rate, "AdamW rate", who);
  require_float(o.decay, "AdamW decay", who);
  if (!(o.beta1 >= 0 && o.beta1 < 1)) throw Error("{}: beta1 = {}, expected in [0, 1)", who, o.beta1);
  if (!(o.beta2 >= 0 && o.beta2 < 1)) throw Error("{}: beta2 = {}, expected in [0, 1)", who, o.beta2);
  // Of gradients below 1e-22 the squares are zero in float32, and epsilon must outweigh those gradients.
  if (!(o.epsilon >= 1e-18 && o.epsilon <= largest))
    throw Error("{}: epsilon = {}, expected above 0, at least 1e-18", who, o.epsilon);
}

Route route_one(Parameter const& p, OptimizerOptions const& options, ParameterGroup const* group) {
  bool const muon = !options.adamw_only && p.is_matrix() && block_of(p.name);
  Route route{muon ? Rule::muon : Rule::sharded_adamw, options.muon, options.adamw};
  if (!group) return route;
  if (group->rule) route.rule = *group->rule;
  if (route.rule == Rule::muon && !p.is_matrix())
    throw Error(
        "optimizer.group[{}].route: muon for parameter {}, which is not two-dimensional; expected a pattern "
        "of matrices",
        group - options.groups.data(), p.name);
  auto const override = [](auto& value, auto const& with) {
    if (with) value = *with;
  };
  override(route.rule == Rule::muon ? route.muon.rate : route.adamw.rate, group->rate);
  override(route.rule == Rule::muon ? route.muon.decay : route.adamw.decay, group->decay);
  override(route.muon.momentum, group->momentum);
  override(route.muon.nesterov, group->nesterov);
  override(route.muon.period, group->period);
  override(route.muon.gamma, group->gamma);
  override(route.muon.adjust_rate, group->adjust_rate);
  override(route.adamw.beta1, group->beta1);
  override(route.adamw.beta2, group->beta2);
  override(route.adamw.epsilon, group->epsilon);
  return route;
}

std::optional<std::size_t> first_match(std::vector<ParameterGroup> const& groups, std::string const& name) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (matches_glob(groups[g].pattern, name)) return g;
  return std::nullopt;
}

/// Whether parameters of a group end with one and the other optimizer.
struct GroupUse {
  bool muon = false, adamw = false;
};

/// Throws Error for a group without any parameter, and for options that none of its parameters has.
void check_group(OptimizerOptions const& options, std::vector<Parameter> const& parameters, std::size_t g,
                 GroupUse const& use) {
  auto const& group = options.groups[g];
  if (!use.muon && !use.adamw)
    for (auto const& p : parameters)
      if (matches_glob(group.pattern, p.name)) {
        auto const first = *first_match(options.groups, p.name);
        throw Error("optimizer.group[{}].pattern: \"{}\" matches only parameters of earlier groups, as {} of "
                    "optimizer.group[{}] (\"{}\"); expected the more special pattern first",
                    g, group.pattern, p.name, first, options.groups[first].pattern);
      }
  if (!use.muon && !use.adamw)
    throw Error("optimizer.group[{}].pattern: \"{}\" matches no parameter", g, group.pattern);
  auto const refuse = [&](bool given, char const* key, char const* has) {
    if (given)
      throw Error(
          "optimizer.group[{}].{}: all parameters of \"{}\" are updated by {}, expected a key of {}'s or "
          "another route",
          g, key, group.pattern, has, has);
  };
  if (!use.muon && !options.adamw_only) { // the baseline is compared with the same groups
    refuse(group.momentum.has_value(), "momentum", "AdamW");
    refuse(group.nesterov.has_value(), "nesterov", "AdamW");
    refuse(group.period.has_value(), "period", "AdamW");
    refuse(group.gamma.has_value(), "gamma", "AdamW");
    refuse(group.adjust_rate.has_value(), "adjust_lr", "AdamW");
  }
  if (!use.adamw) {
    refuse(group.beta1.has_value(), "beta1", "Muon");
    refuse(group.beta2.has_value(), "beta2", "Muon");
    refuse(group.epsilon.has_value(), "epsilon", "Muon");
  }
}

} // namespace

bool matches_glob(std::string const& pattern, std::string const& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::vector<Route> route(std::vector<Parameter> const& parameters, OptimizerOptions const& options) {
  check_muon(options.muon, "optimizer");
  check_adamw(options.adamw, "optimizer");
  if (!(options.clip >= 0 && std::isfinite(options.clip)))
    throw Error("optimizer: clip = {}, expected a finite number of 0 or more", options.clip);
  if (options.bucket_bytes < 1)
    throw Error("optimizer: bucket of {} bytes, expected at least 1", options.bucket_bytes);
  std::vector<Route> routes;
  std::vector<GroupUse> uses(options.groups.size());
  for (auto const& p : parameters) {
    require_shape(p);
    auto const group = first_match(options.groups, p.name);
    routes.push_back(route_one(p, options, group ? &options.groups[*group] : nullptr));
    if (group) (routes.back().rule == Rule::muon ? uses[*group].muon : uses[*group].adamw) = true;
    auto const who = "parameter " + p.name;
    routes.back().rule == Rule::muon ? check_muon(routes.back().muon, who)
                                     : check_adamw(routes.back().adamw, who);
    require_rate(p, routes.back(), 1);
  }
  for (std::size_t g = 0; g < uses.size(); ++g) check_group(options, parameters, g, uses[g]);
  return routes;
}

void require_rate(Parameter const& p, Route const& route, double factor) {
  bool const muon = route.rule == Rule::muon;
  double const rate = factor * (muon ? route.muon.rate : route.adamw.rate),
               decay = muon ? route.muon.decay : route.adamw.decay;
  double const scale = muon ? rate_scale(route.muon.adjust_rate, p.whole_rows(), p.whole_columns())
                            : 1 / (1 - route.adamw.beta1);
  if (!(rate * scale <= largest) || !(rate * decay <= largest))
    throw Error("parameter {}: rate = {}, times {} is {} and times its decay {}: expected at most {:.3g}, "
                "float32's largest",
                p.name, rate, muon ? "the scale of its shape" : "AdamW's correction", rate * scale,
                rate * decay, largest);
}

double rate_scale(AdjustRate adjust, std::int64_t rows, std::int64_t columns) {
  require_between("rows", rows, 1, largest_parameter);
  require_between("columns", columns, 1, largest_parameter);
  switch (adjust) {
  case AdjustRate::original:
    return std::sqrt(std::max(1.0, double(rows) / double(columns)));
  case AdjustRate::match_rms_adamw:
    return 0.2 * std::sqrt(double(std::max(rows, columns)));
  case AdjustRate::none:
    return 1;
  }
  return 1;
}

} // namespace prowl
