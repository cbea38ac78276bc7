/// What the update of the Muon matrices does in each step, from descriptions alone: MatrixUpdate carries it out, a planner counts
/// and times it.
#pragma once

#include <prowl/comm/ledger.hpp>
#include <prowl/optim/options.hpp>
#include <prowl/placement/bucket.hpp>
#include <prowl/placement/layout.hpp>

#include <cstdint>
#include <vector>

namespace prowl {

/// A part of a step. Sums of column squares belong to tall matrices, whose columns are the rows of the oriented matrix.
struct MatrixOperation {
  enum class Kind {
    momentum,          ///< of `parameter`
    sum_columns,       ///< squares of `parameter`'s rows here, to `offset` in the sums
    reduce_columns,    ///< starts to sum `elements` column sums over the shard group
    gather,            ///< packs `bucket` and starts its all-gather into `slot`
    meanwhile,         ///< other work: the first collective is under way
    normalise_rows,    ///< RowNorm of `parameter`'s rows here, and its update
    await_columns,     ///< waits for reduce_columns
    normalise_columns, ///< RowNorm of tall `parameter`'s rows here by the sums at `offset`, and its update
    await_gather,      ///< waits for `slot`
    update_gathered, ///< makes `parameter` whole from `slot`, at `offset` of each rank's part of `bucket`; NS5 where it
                     ///< `refreshes`, else RowNorm; updates the rows here
    update_owned, ///< the same of a matrix that is owned here
  };
  Kind kind;
  std::size_t parameter = 0;
  std::int64_t offset = 0;
  std::int64_t elements = 0;
  Bucket const* bucket = nullptr; ///< of the plan
  std::size_t slot = 0;
  bool refreshes = false;
};

class MatrixPlan {
public:
  /// Throws Error naming the parameter where a matrix that is split over a tensor group is not owned.
  MatrixPlan(Layout const& layout, OptimizerOptions const& options, std::vector<Route> const& routes);

  /// Sharded matrices with one period, 0 for those that are never refreshed.
  struct Group {
    std::int64_t period;
    std::vector<std::size_t> matrices;
    std::vector<Bucket> buckets; ///< gathered in a step that is a multiple of the period
  };
  std::vector<Group> const& groups() const { return groups_; }

  /// Step t, in order.
  std::vector<MatrixOperation> step(std::int64_t t) const;
  /// The collectives of step t.
  Ledger traffic(std::int64_t t) const;
  /// After how many steps they come again. Throws Error where that is more than `longest_period`.
  std::int64_t period() const;
  static constexpr std::int64_t longest_period = 10000;
  /// The first step of a period that does the same as step t.
  std::int64_t same_step(std::int64_t t) const;
  /// The steps of a period, those that do the same as an earlier one only counted there.
  struct Distinct {
    std::int64_t t, count;
  };
  std::vector<Distinct> distinct_steps() const;

  std::vector<std::size_t> const& matrices() const { return matrices_; }

  /// What a rank allocates, elements.
  struct Sizes {
    std::int64_t momenta = 0, scratch = 0, full = 0, workspace = 0, column_sums = 0;
    std::int64_t part = 0;               ///< of the largest bucket, one rank's
    std::size_t slots = 1;               ///< each with one part to send and all parts received
    std::int64_t slot_parts[2] = {0, 0}; ///< of the largest bucket in each slot, one rank's
  };
  Sizes const& sizes() const { return sizes_; }
  std::int64_t momentum_bytes() const;
  std::int64_t bucket_bytes() const;
  /// Whole matrices, their directions and Newton-Schulz.
  std::int64_t workspace_bytes() const;

private:
  void add_group(std::size_t parameter);
  void add_sizes();
  std::vector<std::int64_t> periods() const;
  bool gathers(Group const& group, std::int64_t t) const;
  bool refreshes(std::size_t parameter, std::int64_t t) const;
  std::int64_t wire_bytes() const;
  void add_row_norm(std::vector<std::size_t> const& local, bool tall,
                    std::vector<MatrixOperation>& step) const;
  void add_gathered(std::vector<Bucket const*> const& buckets, std::int64_t t,
                    std::vector<MatrixOperation>& step) const;

  Layout const* layout_;
  OptimizerOptions options_;
  std::vector<Route> routes_;
  std::vector<std::size_t> matrices_, owned_; ///< owned_: those that this rank owns
  std::vector<Group> groups_;
  Sizes sizes_;
};

char const* name(MatrixOperation::Kind);

} // namespace prowl
