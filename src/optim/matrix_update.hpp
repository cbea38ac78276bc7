/// The update of the Muon matrices of a store: sharded ones as arXiv:2608.20818, section 3.3 and algorithm 2, says; owned ones
/// whole where they are owned.
#pragma once

#include <prowl/core/bfloat16.hpp>
#include <prowl/optim/options.hpp>
#include <prowl/placement/bucket.hpp>
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

  std::vector<std::size_t> const& parameters() const { return matrices_; }
  /// Local rows x columns.
  Matrix<float> momentum(std::size_t parameter) const;
  std::int64_t bytes() const;
  /// The same from the description alone.
  static std::int64_t bytes(Layout const& layout, OptimizerOptions const& options,
                            std::vector<Route> const& routes);

  /// The buckets gathered when all matrices of period `period` are refreshed.
  std::vector<Bucket> const& buckets(std::int64_t period) const;

private:
  struct Group { // sharded matrices of one period
    std::int64_t period;
    std::vector<std::size_t> matrices;
    std::vector<Bucket> buckets;
  };
  struct Sizes { // elements
    std::int64_t momenta = 0, scratch = 0, full = 0, workspace = 0, column_sums = 0, part = 0;
    int slots = 1;
  };
  struct Slot {
    Vector<float> sent, received;
    Vector<bfloat16> sent_bf16, received_bf16;
    Request request;
  };

  static std::vector<Group> make_groups(Layout const& layout, OptimizerOptions const& options,
                                        std::vector<Route> const& routes);
  static Sizes make_sizes(Layout const& layout, OptimizerOptions const& options,
                          std::vector<Route> const& routes, std::vector<Group> const& groups);

  bool refreshes(std::size_t parameter, std::int64_t t) const;
  void allocate(Sizes const& sizes);
  void update_momenta();
  /// U of the parameter's shard into `to`.
  void fed(std::size_t parameter, Vector<float> const& to) const;
  /// U of the parameter's shard, to be read: the momentum itself, or, with nesterov, in the scratch array.
  Vector<float> fed(std::size_t parameter) const;
  void launch(Bucket const& bucket, Slot& slot);
  void rebuild(Bucket const& bucket, Bucket::Entry const& entry, Slot const& slot) const;
  void gather_and_update(std::vector<Bucket const*> const& buckets, std::int64_t t, double rate_factor);
  void update_from_whole(std::size_t parameter, std::int64_t t, double rate_factor);
  void begin_row_norm(std::vector<std::size_t> const& parameters);
  void finish_row_norm(std::vector<std::size_t> const& parameters, double rate_factor);
  void apply(std::size_t parameter, Vector<float> const& direction, double rate_factor) const;
  float row_norm_scale(std::size_t parameter) const;

  Execution exec_;
  Store& store_;
  OptimizerOptions options_;
  std::vector<Route> const& routes_;
  std::vector<std::size_t> matrices_;
  std::vector<std::size_t> owned_;    ///< of those, the ones that this rank owns
  std::vector<std::int64_t> offsets_; ///< by parameter: of its shard in the momenta
  std::vector<Group> groups_;
  Vector<float> momenta_, scratch_, full_, workspace_, column_sums_;
  Slot slots_[2];
  Request column_request_;
};

} // namespace prowl
