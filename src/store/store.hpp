/// The local memory of a model whose parameters are sharded or owned.
#pragma once

#include <prowl/comm/mesh.hpp>
#include <prowl/kernels/shards.hpp>
#include <prowl/placement/layout.hpp>
#include <prowl/store/parameters.hpp>
#include <prowl/store/unit_slots.hpp>

#include <vector>

namespace prowl {

/// What becomes of the gradients of the ranks.
enum class Reduction {
  sum, ///< for a loss of each rank that is its share of the whole
  mean ///< for a loss of each rank that is the mean of its samples: divided by replicas * shards * micro_batches
};

struct StoreOptions {
  int prefetch = 1; ///< units made whole ahead of the one that computes, 0 or more
  Residency residency = Residency::z3;
  Reduction reduction = Reduction::sum;
  int micro_batches = 1; ///< backwards of each unit a step
  /// Whether the owners' new matrices go to the other replicas under the next step's first units, or before the
  /// optimizer's step returns. The same bits.
  bool asynchronous = true;
};

/// The options; throws Error unless prefetch is 0 or more, and micro_batches at least 1.
StoreOptions const& require_options(StoreOptions const& options);

/// Elements of the arrays of a store on one rank.
struct StoreSizes {
  std::int64_t weights = 0, gradients = 0;
  std::vector<std::int64_t> gathered, whole; ///< of each slot for a unit's weights
  std::int64_t gradient = 0, packed = 0, reduced = 0,
               deferred = 0; ///< of a unit's gradients, and those of all units
  int reductions = 1;        ///< arrays of `reduced`
  /// Bytes of what units on their way take, beside the weights and gradients that are kept.
  std::int64_t transient_bytes() const;
  std::int64_t bytes() const;
};
StoreSizes store_sizes(Layout const& layout, StoreOptions const& options);

/// Holds what a rank keeps of weights and gradients (float32; see Layout), and makes the parameters of a unit whole
/// while it is in use.
///
/// Before a unit's forward and its backward, the shards of its sharded parameters are gathered, and each owner broadcasts
/// its matrices of the unit over its shard group, in one call; the next unit's are under way while this one computes.
/// After its backward, its gradients are summed: onto the shards, at each micro-batch; onto the owners at the last one,
/// over the shard group, in one call an owner, then over the replicas. At most `prefetch` + 1 units are whole at any time
/// (z3). Where a shard group is one rank, weights are used where they lie.
///
/// The arrays are allocated at construction; weights begin as zeros. Units and parameters are counted in registration order.
///
/// Calls out of turn throw Error on every rank that makes them: an index that is not there, a unit's begin
/// inside another's begin and end, an end without its begin, weights or gradients of a unit that is not in
/// use.
class Store : public Parameters<float> {
public:
  /// `layout` must be that of this rank of the mesh. Collective.
  Store(Execution const& exec, Mesh const& mesh, Layout layout, StoreOptions const& options = {});
  /// All parameters sharded.
  Store(Execution const& exec, Mesh const& mesh, std::vector<Parameter> parameters,
        StoreOptions const& options = {});
  /// Waits for what is under way.
  ~Store() override;

  Layout const& layout() const { return layout_; }
  Mesh const& mesh() const { return mesh_; }
  StoreOptions const& options() const { return options_; }

  /// What this rank keeps, flat, as the layout says. Before reading or writing weights after a step, call
  /// `finish_publication`; after writing them, `weights_changed`.
  Vector<float> weights() const { return weights_; }
  Vector<float> gradients() const { return gradients_; }
  /// Of one parameter: the rows kept here (layout().weight_rows) x columns.
  Matrix<float> kept_weights(std::size_t parameter) const;
  /// The rows updated here (layout().rows) x columns.
  Matrix<float> updated_weights(std::size_t parameter) const;
  Matrix<float> updated_gradient(std::size_t parameter) const;
  /// Sets a parameter from the whole of it, rows x columns, which every rank has. Collective; weights_changed included.
  void assign(std::size_t parameter, Matrix<float const> const& whole);
  /// Drops all whole units. Collective, as what they wait for is.
  void weights_changed();

  void begin_forward(std::size_t unit) override;
  void end_forward(std::size_t unit) override;
  void begin_backward(std::size_t unit) override;
  void end_backward(std::size_t unit) override;
  Matrix<float const> weight(std::size_t parameter) const override;
  Matrix<float> gradient(std::size_t parameter) const override;

  /// Waits until the gradients of the backwards since the last call are where they are updated; a unit without one gets
  /// zeros. Throws Error where a unit has had some of its micro-batches, or is in its backward. Collective.
  void finish_gradients();
  /// finish_gradients for a step, which uses them up: throws Error where there are none since the step
  /// before.
  void take_gradients();
  /// After gradients were written elsewhere than in a backward: they are those of the next step.
  void gradients_changed();
  /// Forgets the gradients of a step that all ranks give up. Collective.
  void clear_gradients();

  /// Sends the owners' matrices to the other replicas; each unit waits for its own when it is next made whole.
  void publish();
  /// Waits for what `publish` sent.
  void finish_publication();

  /// Bytes of all arrays held here.
  std::int64_t bytes() const;

private:
  static constexpr std::size_t none = UnitSlots::none;

  /// The data of a slot: a unit that is whole, or on its way.
  struct WeightSlot {
    bool whole = false;           // arrived and rebuilt
    Vector<float> gathered, full; // full: the whole unit without the matrices that are kept here
    std::vector<Request> requests;
  };
  /// Gradients that are summed over the replicas, as they came from the shard group.
  struct Reduced {
    Vector<float> values; // the unit's shards, then this shard index's pack
    std::vector<Request> requests;
  };
  /// `full` is free again once it is packed, so it takes the next unit's gradients while `packed` is reduced.
  struct UnitGradient {
    std::size_t unit = none;     // in its backward
    std::size_t reducing = none; // being summed over the shard group
    bool owned = false;          // its owned matrices are summed too
    Vector<float> full, packed;  // packed: owned matrices as in the whole unit, then shards by rank
    std::vector<Request> requests;
    Reduced reduced[2];
    int turn = 0; // which of them is in use
  };

  bool gathers() const { return layout_.shards() > 1; }
  std::int64_t slot_offset(std::size_t unit, std::int64_t whole_offset) const;
  void require_idle(std::size_t unit, char const* call) const;
  void require_micro_batches() const;
  void materialise(std::size_t unit, Pass pass);
  void fetch(std::size_t unit, WeightSlot& slot, Purpose purpose);
  void rebuild(std::size_t unit, WeightSlot& slot);
  void release(std::size_t slot);
  void drop(std::size_t unit);
  void defer(std::size_t unit, bool last);
  std::int64_t deferred_offset(std::size_t unit) const;
  void reduce(std::size_t unit);
  void settle();
  void hand_over(std::size_t unit, Vector<float> const& values);
  void accumulate(std::size_t unit, Vector<float> const& summed);
  /// How the shards of a parameter lie in the gathered or packed shards of its unit.
  ShardedRows sharded_rows(std::size_t parameter) const;

  Execution exec_;
  Mesh mesh_;
  Layout layout_;
  StoreOptions options_;
  Vector<float> weights_, gradients_;
  UnitSlots units_; // which unit is in which slot
  std::vector<WeightSlot> slots_;
  std::size_t in_forward_ = none;
  UnitGradient unit_gradient_;
  Vector<float> deferred_;     // owned matrices' gradients of micro-batches before the last, all units
  bool accumulating_ = false;  // since the first backward of a step
  bool complete_ = false;      // the gradients are those of a step that has not been taken
  std::vector<bool> started_;  // by unit: its shards have a gradient of this step
  std::vector<int> backwards_; // by unit: in this step
  std::vector<std::vector<Request>> publications_; // by unit
};

} // namespace prowl
