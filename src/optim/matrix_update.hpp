/// The update of the Muon matrices of a store: sharded ones as arXiv:2608.20818, section 3.3 and algorithm 2, says; owned ones
/// whole where they are owned.
#pragma once

#include <prowl/core/bfloat16.hpp>
#include <prowl/optim/matrix_plan.hpp>
#include <prowl/optim/options.hpp>
#include <prowl/store/store.hpp>

#include <functional>
#include <vector>

namespace prowl {

/// Holds the momenta of all parameters with a Muon route, and the buffers of two buckets.
class MatrixUpdate {
public:
  MatrixUpdate(Execution const& exec, Store& store, OptimizerOptions const& options,
               std::vector<Route> const& routes);

  /// Step t. `meanwhile` is called once, when the first collective of the step is under way.
  void step(std::int64_t t, double rate_factor, std::function<void()> const& meanwhile);

  /// Before a step: the norms of the gradients that it feeds, by parameter, the same on all ranks. They bound
  /// those of the momenta.
  void follow(std::vector<double> const& gradient_norms);
  /// After momenta were written elsewhere. Collective.
  void measure_momenta();

  /// Local rows x columns.
  Matrix<float> momentum(std::size_t parameter) const;
  std::int64_t bytes() const;

private:
  struct Slot {
    Vector<float> sent, received;
    Vector<bfloat16> sent_bf16, received_bf16;
    Request request;
  };

  void allocate();
  void carry_out(MatrixOperation const& operation, double rate_factor);
  void update_momentum(std::size_t parameter) const;
  /// U of the parameter's shard into `to`.
  void fed(std::size_t parameter, Vector<float> const& to) const;
  /// U of the parameter's shard, to be read: the momentum itself, or, with nesterov, in the scratch array.
  Vector<float> fed(std::size_t parameter) const;
  void sum_columns(MatrixOperation const& operation) const;
  void normalise(MatrixOperation const& operation, double rate_factor) const;
  void gather(Bucket const& bucket, Slot& slot);
  void rebuild(MatrixOperation const& operation) const;
  void update_from_whole(std::size_t parameter, bool refreshes, double rate_factor) const;
  void apply(std::size_t parameter, Vector<float> const& direction, double rate_factor) const;
  float gamma(std::size_t parameter) const;
  double gram_scale(std::size_t parameter) const;

  Execution exec_;
  Store& store_;
  OptimizerOptions options_;
  std::vector<Route> const& routes_;
  MatrixPlan plan_;
  std::vector<std::int64_t> offsets_; ///< by parameter: of its shard in the momenta
  std::vector<double> bounds_;        ///< by parameter, of a split one's momentum: at least its norm
  Vector<float> momenta_, scratch_, full_, workspace_, column_sums_;
  Slot slots_[2];
  Request column_request_;
};

} // namespace prowl
