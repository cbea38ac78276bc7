/// What an optimizer does to which parameter.
///
/// Formulas: "Scaling Muon for Diffusion Transformers", arXiv:2608.20818, sections 3.1 to 3.3.
#pragma once

#include <prowl/kernels/adamw.hpp>
#include <prowl/placement/parameter.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prowl {

/// s(W) of an m x n matrix, with torch's names: sqrt(max(1, m/n)); 0.2 sqrt(max(m, n)); 1.
enum class AdjustRate { original, match_rms_adamw, none };

/// The branches of the update of a matrix.
enum class Direction {
  periodic,          ///< NS5 where t mod K = 0, gamma RowNorm elsewhere; K = 1 is vanilla Muon
  row_norm,          ///< gamma RowNorm at every step
  scalar_controlled, ///< periodic with gamma on both branches
};

/// The system variants of the paper's table 3b; each has what the one before has.
enum class System {
  naive,            ///< gathers the whole momentum at every step, a matrix at a time
  sharded_row_norm, ///< RowNorm on shards; gathers only to refresh
  buckets,          ///< one gather a bucket
  overlap,          ///< the next bucket is gathered under NS5
};

/// Bytes of a momentum element in a gather. bfloat16 rounds what NS5 sees; the momentum itself stays float32.
enum class Wire { float32, bfloat16 };

/// What updates a parameter. Under dedicated ownership `muon` and `adamw` are updated whole by an owner; otherwise everything
/// is sharded, and the two AdamW rules are the same.
enum class Rule { sharded_adamw, adamw, muon };

struct MuonOptions {
  double rate = 2e-2;
  double decay = 0.01;    ///< lambda; W <- (1 - rate lambda) W
  double momentum = 0.95; ///< mu, in [0, 1)
  bool nesterov = false;
  Direction direction = Direction::periodic;
  std::int64_t period = 3; ///< K, at least 1
  double gamma = 0.15;     ///< above 0
  AdjustRate adjust_rate = AdjustRate::original;
};

/// Overrides for the parameters whose names match; the first matching group counts. `rate` and `decay` are those of the
/// rule that the parameter ends with.
struct ParameterGroup {
  std::string pattern;           ///< glob over the whole name: * any characters, ? one
  std::optional<Rule> rule = {}; ///< sharded_adamw excludes matrices from Muon
  std::optional<double> rate = {}, decay = {}, momentum = {}, gamma = {}, beta1 = {}, beta2 = {},
                        epsilon = {};
  std::optional<std::int64_t> period = {};
  std::optional<bool> nesterov = {};
  std::optional<AdjustRate> adjust_rate = {};
};

struct OptimizerOptions {
  bool adamw_only = false; ///< the baseline: AdamW on everything
  MuonOptions muon;
  AdamW adamw;
  std::vector<ParameterGroup> groups;
  double clip = 0;             ///< largest norm of the whole gradient; 0: no clipping
  bool skip_nonfinite = false; ///< skip and count a step with a NaN or infinite gradient, instead of failing
  System system = System::overlap;
  Wire wire = Wire::float32;
  std::int64_t bucket_bytes = std::int64_t{256} << 20; ///< cap of a gathered, padded bucket
};

/// The options of one parameter, after routing.
struct Route {
  Rule rule;
  MuonOptions muon;
  AdamW adamw;
};

/// Two-dimensional parameters of transformer blocks (a name with `blocks.N` or `layers.N`) go to Muon, all
/// others to sharded AdamW, unless a group says otherwise. Throws Error naming the parameter or the group and the
/// value: K < 1, gamma <= 0, mu outside [0, 1), a rate that float32 does not hold, a Muon route on a parameter
/// that is not two-dimensional, a pattern that matches nothing or only what earlier groups have, and a group's
/// option that none of its parameters has because of its optimizer (but for Muon's with adamw_only).
std::vector<Route> route(std::vector<Parameter> const& parameters, OptimizerOptions const& options);

/// Throws Error naming the parameter unless what multiplies its direction and its weights at `factor` times
/// its rate is a finite float32.
void require_rate(Parameter const& parameter, Route const& route, double factor);

/// s(W). Throws Error for an extent below 1.
double rate_scale(AdjustRate adjust, std::int64_t rows, std::int64_t columns);

bool matches_glob(std::string const& pattern, std::string const& name);

} // namespace prowl
