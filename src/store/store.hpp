/// The local memory of a model whose parameters are sharded.
#pragma once

#include <prowl/comm/mesh.hpp>
#include <prowl/placement/layout.hpp>
#include <prowl/store/parameters.hpp>

#include <functional>
#include <map>
#include <vector>

namespace prowl {

/// Holds this rank's shards of weights and gradients (float32), and makes whole parameters of a unit while it
/// is in use.
///
/// A unit's shards are gathered before its forward and its backward, the next unit's while this one computes;
/// its gradients are summed onto their shards after its backward. At most `prefetch` + 1 units are whole at
/// any time. With one rank a shard group, the weights are used where they lie.
///
/// Gradients are summed over all ranks, not averaged: the loss of each rank is its share of the whole.
class Store : public Parameters<float> {
public:
  /// `prefetch`: units gathered ahead, 0 or more. Collective.
  Store(Execution const& exec, Mesh const& mesh, std::vector<Parameter> parameters, int prefetch = 1);

  ShardLayout const& layout() const { return layout_; }
  Mesh const& mesh() const { return mesh_; }

  /// This rank's shards, flat, as the layout says. After writing weights, call `weights_changed`.
  Vector<float> weights() const { return weights_; }
  Vector<float> gradients() const { return gradients_; }
  /// Of one parameter: local rows x columns, without padding.
  Matrix<float> shard(Vector<float> const& flat, std::size_t parameter) const;
  void weights_changed();

  void begin_forward(std::size_t unit) override;
  void end_forward(std::size_t unit) override;
  void begin_backward(std::size_t unit) override;
  void end_backward(std::size_t unit) override;
  Matrix<float const> weight(std::size_t parameter) const override;
  Matrix<float> gradient(std::size_t parameter) const override;

  /// Starts the sums of an optimizer step at zero: the next backward of each unit replaces its gradients,
  /// later ones add.
  void clear_gradients();
  /// Waits until all gradients are on their shards; to be called after the last backward of a step.
  void finish_gradients();

  /// Bytes of all arrays held here.
  std::int64_t bytes() const;
  /// The same from the description alone.
  static std::int64_t bytes(ShardLayout const& layout, int prefetch);

private:
  static constexpr std::size_t none = ~std::size_t{0};

  struct WeightSlot {
    std::size_t unit = none;
    bool whole = false; // gathered and rebuilt
    std::uint64_t last_use = 0;
    Vector<float> gathered, full;
    Request request;
  };
  /// `full` is free again once it is packed, so it takes the next unit's gradients while `packed` is reduced.
  struct UnitGradient {
    std::size_t unit = none;     // in its backward
    std::size_t reducing = none; // being summed over the ranks
    Vector<float> full, packed, reduced;
    Request request;
  };

  bool gathers() const { return layout_.ranks() > 1; }
  WeightSlot* find(std::size_t unit);
  WeightSlot& gather(std::size_t unit, Purpose purpose, std::size_t keep);
  void materialise(std::size_t unit, Purpose purpose, std::size_t next);
  void rebuild(WeightSlot& slot);
  void pack(std::size_t unit);
  void settle();
  void accumulate(std::size_t unit, Vector<float> const& summed);
  /// Visits each (parameter, rank) piece of a unit: (offset in the packed array, offset in the whole one,
  /// elements).
  void for_each_piece(std::size_t unit,
                      std::function<void(std::int64_t, std::int64_t, std::int64_t)> const& visit) const;

  Execution exec_;
  Mesh mesh_;
  ShardLayout layout_;
  std::vector<std::int64_t> full_offsets_; // of each parameter within its whole unit
  std::vector<std::size_t> unit_of_;
  int prefetch_;
  Vector<float> weights_, gradients_;
  std::vector<WeightSlot> weight_slots_;
  UnitGradient unit_gradient_;
  std::vector<bool> gradient_started_; // by unit: has a gradient of this step
  std::uint64_t clock_ = 0;
};

} // namespace prowl
