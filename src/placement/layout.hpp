/// Where each parameter's shard lies in a rank's flat arrays.
#pragma once

#include <prowl/placement/parameter.hpp>
#include <prowl/placement/shard.hpp>

#include <string>
#include <vector>

namespace prowl {

/// One rank's shards of all parameters, in registration order, each padded to `padded_rows` rows so that a
/// unit's shards are one contiguous part of an all-gather. Padding is zero.
class ShardLayout {
public:
  /// Parameters of a unit must be contiguous; throws Error naming the parameter where they are not, or where
  /// a name comes twice or a shape is empty.
  ShardLayout(std::vector<Parameter> parameters, int ranks, int rank);

  struct Unit {
    std::string name;
    std::size_t first, last;   ///< its parameters: [first, last)
    std::int64_t offset, size; ///< its part of the flat arrays, elements
    std::int64_t full_size;    ///< elements of its whole parameters
  };

  std::vector<Parameter> const& parameters() const { return parameters_; }
  std::vector<Unit> const& units() const { return units_; }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }

  /// Elements of a flat array over all parameters, padding included.
  std::int64_t size() const { return offsets_.back(); }
  /// Of the parameter's first row here.
  std::int64_t offset(std::size_t parameter) const { return offsets_[parameter]; }
  /// The rows of the parameter that this rank holds.
  Range rows(std::size_t parameter) const { return shard_rows(parameters_[parameter].rows(), ranks_, rank_); }
  /// Elements that this rank holds, without padding.
  std::int64_t local_size(std::size_t parameter) const {
    return rows(parameter).size() * parameters_[parameter].columns();
  }

private:
  std::vector<Parameter> parameters_;
  std::vector<Unit> units_;
  std::vector<std::int64_t> offsets_;
  int ranks_, rank_;
};

} // namespace prowl
