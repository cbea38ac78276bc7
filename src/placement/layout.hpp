/// Where each parameter's elements lie in a rank's flat arrays.
#pragma once

#include <prowl/comm/mesh_place.hpp>
#include <prowl/placement/parameter.hpp>
#include <prowl/placement/shard.hpp>

#include <optional>
#include <string>
#include <vector>

namespace prowl {

/// The rank that owns a matrix: in every replica the ranks of this shard index keep its weights, in one of them this rank
/// updates it.
struct Owner {
  int shard = 0, replica = 0;
  bool operator==(Owner const&) const = default;
};

/// Of a parameter: an owner, or none where it is sharded along dimension 0.
using Placement = std::optional<Owner>;

/// What one rank keeps of all parameters.
///
/// Two flat arrays: of weights, and of gradients. Each begins with the shards of the sharded parameters, by unit in
/// registration order, each padded to `padded_rows` rows so that a unit's shards are one contiguous part of an all-gather
/// (padding is zero). Behind them come whole owned matrices, by unit, within a unit by the owner's replica: in the weights
/// those whose owner has this rank's shard index, in the gradients those that this rank owns.
///
/// The whole of a unit has its owned matrices first, by the owner's shard index, then its replica; then the sharded
/// parameters. So what one owner sends or receives for a unit is contiguous.
class Layout {
public:
  /// `placements`: one for each parameter, or empty: all are sharded. Parameters of a unit must be
  /// contiguous; throws Error naming the parameter where they are not, where a name is empty or comes twice,
  /// a shape is not one of Parameter, or an owner is not in the mesh; and for a place that is not in its
  /// mesh.
  Layout(std::vector<Parameter> parameters, MeshPlace place, std::vector<Placement> placements = {});

  /// Contiguous elements.
  struct Block {
    std::int64_t offset = 0, size = 0;
  };
  /// The matrices of a unit with one owner's shard index.
  struct Pack {
    int shard;                  ///< the owner's
    Block whole;                ///< in the whole unit
    std::vector<Block> replica; ///< by the owner's replica: its part, counted from the pack's beginning
  };
  struct Unit {
    std::string name;
    std::size_t first, last; ///< its parameters: [first, last)
    Block shards;            ///< its shards in both flat arrays
    std::int64_t size;       ///< elements of the whole unit
    std::int64_t owned;      ///< elements of its owned matrices, which the whole unit begins with
    Block own;               ///< in the whole unit: the pack of this rank's shard index
    std::vector<Pack> packs; ///< those that are not empty, by shard index
    Block owned_weights;     ///< in the flat weights: the pack of this rank's shard index
    Block owned_gradients;   ///< in the flat gradients: the part of it that this rank owns

    /// That of this rank's shard index, or null where it is empty.
    Pack const* own_pack() const { return own.size > 0 ? &packs[own_index] : nullptr; }
    std::size_t own_index; ///< of it in `packs`
  };

  std::vector<Parameter> const& parameters() const { return parameters_; }
  std::vector<Unit> const& units() const { return units_; }
  /// By number; these and all below throw Error for one that is not there.
  Parameter const& parameter(std::size_t parameter) const { return parameters_[checked(parameter)]; }
  Unit const& unit(std::size_t unit) const;
  MeshPlace const& place() const { return place_; }
  int shards() const { return place_.shards; }
  Placement const& placement(std::size_t parameter) const { return placements_[checked(parameter)]; }
  std::size_t unit_of(std::size_t parameter) const { return unit_of_[checked(parameter)]; }

  /// Elements of the flat arrays, padding included, and of the part of both that is sharded.
  std::int64_t weights_size() const { return weights_size_; }
  std::int64_t gradients_size() const { return gradients_size_; }
  std::int64_t sharded_size() const { return sharded_size_; }

  /// The rows of the parameter whose weights are kept here, and where they begin in the flat weights.
  Range weight_rows(std::size_t parameter) const;
  std::int64_t weight_offset(std::size_t parameter) const { return weight_offsets_[checked(parameter)]; }
  /// The rows that this rank updates: those of its gradient and of the optimizer's state.
  Range rows(std::size_t parameter) const;
  std::int64_t gradient_offset(std::size_t parameter) const { return gradient_offsets_[checked(parameter)]; }
  /// Elements of those rows.
  std::int64_t size(std::size_t parameter) const {
    return rows(parameter).size() * parameters_[parameter].columns();
  }
  /// Where the parameter begins in its whole unit.
  std::int64_t whole_offset(std::size_t parameter) const { return whole_offsets_[checked(parameter)]; }
  /// Whether this rank updates the whole of an owned matrix.
  bool owns(std::size_t parameter) const {
    return placements_[checked(parameter)] == Owner{place_.shard, place_.replica};
  }

private:
  std::size_t checked(std::size_t parameter) const;
  void add_units();
  void place_shards();
  void place_owned(Unit& unit);

  std::vector<Parameter> parameters_;
  MeshPlace place_;
  std::vector<Placement> placements_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_;
  std::vector<std::int64_t> weight_offsets_, gradient_offsets_, whole_offsets_;
  std::int64_t weights_size_ = 0, gradients_size_ = 0, sharded_size_ = 0;
};

} // namespace prowl
