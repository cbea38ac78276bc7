/// AdamW, Muon and Periodic Row-wise Muon on sharded or owned parameters.
#pragma once

#include <prowl/optim/options.hpp>
#include <prowl/placement/bucket.hpp>
#include <prowl/store/store.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace prowl {

class MatrixUpdate;

/// Bytes that an optimizer holds on one rank.
struct OptimizerMemory {
  std::int64_t momenta = 0;   ///< of Muon
  std::int64_t moments = 0;   ///< of AdamW, both
  std::int64_t buckets = 0;   ///< sent and gathered momenta
  std::int64_t workspace = 0; ///< whole matrices and Newton-Schulz
  std::int64_t total() const { return momenta + moments + buckets + workspace; }
};
/// From descriptions alone.
OptimizerMemory optimizer_memory(Layout const& layout, OptimizerOptions const& options);

/// The collectives of step t on the layout's rank, without those of the store: gathers and sums of the matrices, and the norm of
/// the gradient over all ranks.
Ledger optimizer_traffic(Layout const& layout, OptimizerOptions const& options, std::int64_t t);

/// Holds the optimizer's state for the parameters of a store and updates their weights from their gradients.
///
/// Step t (from 0): momentum M <- mu M + (1 - mu) G; on refresh steps, t mod K = 0, D = NS5 of the whole
/// momentum, gathered in buckets; on others D = gamma RowNorm on the shards; W <- (1 - eta lambda) W - eta
/// s(W) D. An owned matrix is whole where it is owned: no gather, and the options of gathers do not matter. All
/// other parameters by AdamW. See options.hpp for the branches. Collective calls: construction and `step`.
class Optimizer {
public:
  Optimizer(Execution const& exec, Store& store, OptimizerOptions const& options);
  ~Optimizer();

  struct Report {
    bool skipped = false;                  ///< a gradient was not finite, and the options say skip
    double gradient_norm = 0;              ///< of the whole gradient, before clipping
    std::string nonfinite;                 ///< the first parameter with a gradient that is not finite
    std::int64_t nonfinite_parameters = 0; ///< how many there are
  };

  /// One step with the store's gradients, which it takes; `rate_factor` multiplies every rate. A gradient
  /// that is not finite changes no weight and no state on any rank: throws Error naming the parameters, or
  /// counts a skipped step. Where weights or state are not finite before the step, no later one can be: that
  /// is an Error in either case. So is a rate that float32 does not hold, and a step without gradients.
  Report step(double rate_factor);

  /// What is not finite of weights and state, in words that name how many parameters and the first; none
  /// where all is finite. One pass over both; a step looks only at gradients, so call it before weights are
  /// kept. Collective.
  std::optional<std::string> nonfinite() const;

  /// t: steps taken, skipped ones included.
  std::int64_t steps() const { return step_; }
  std::int64_t skipped() const { return skipped_; }
  /// With the state that belongs to them, which was written before. Throws Error unless 0 <= skipped <=
  /// steps. Collective.
  void restore_counters(std::int64_t steps, std::int64_t skipped);

  std::vector<Route> const& routes() const { return routes_; }

  /// One array of the state of a parameter, the rows that this rank updates.
  struct StateArray {
    std::string kind; ///< "momentum", "exp_avg" or "exp_avg_sq"
    std::size_t parameter;
    Matrix<float> rows; ///< (layout().rows) x columns
  };
  std::vector<StateArray> state() const;

  /// Bytes of all arrays held here.
  std::int64_t bytes() const;

private:
  Report check_gradients(std::vector<double>& norms);
  void refuse(Report const& report) const;
  void update_adamw(double rate_factor);

  Execution exec_;
  Store& store_;
  OptimizerOptions options_;
  std::vector<Route> routes_;
  std::vector<std::int64_t> state_offsets_; ///< of each AdamW parameter in the moments
  Vector<float> exp_avg_, exp_avg_sq_;
  std::unique_ptr<MatrixUpdate> matrices_;
  std::int64_t step_ = 0, skipped_ = 0;
};

} // namespace prowl
