/// Collectives over MPI on Prowl's vectors.
#pragma once

#include <prowl/comm/ledger.hpp>
#include <prowl/comm/request.hpp>
#include <prowl/core/bfloat16.hpp>
#include <prowl/core/types.hpp>

#include <mpi.h>

#include <memory>
#include <span>

namespace prowl {

/// A group of ranks. Copies share the group. Each member must call the same collectives in the same order.
///
/// Asynchronous calls take T = float, double, bfloat16 (moved, never summed), return at once, and progress
/// while the host computes. They first wait for `exec`, whose kernels fill the buffers; buffers that MPI
/// cannot reach go through the host. Sizes that do not fit together, or over 2^31 elements a rank, and a root
/// that is no rank of the group throw Error.
class Communicator {
public:
  /// Duplicates `comm`. Throws Error unless MPI was started with MPI_THREAD_MULTIPLE (prowl::run does). Calls
  /// are counted in `ledger`, which must outlive the communicator, where there is one.
  explicit Communicator(MPI_Comm comm, Ledger* ledger = nullptr);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm mpi() const;

  /// The group of the ranks with equal `colour`, 0 or more, ordered by `key`.
  Communicator split(int colour, int key) const;

  /// received (p n) = every rank's sent (n), in rank order.
  template <class T>
  Request all_gather(Execution const& exec, Vector<T> const& sent, Vector<T> const& received,
                     Purpose purpose) const;

  /// received (n) = this rank's part of the sum of all ranks' sent (p n).
  template <class T>
  Request reduce_scatter(Execution const& exec, Vector<T> const& sent, Vector<T> const& received,
                         Purpose purpose) const;

  /// values (n) <- sum over ranks.
  template <class T>
  Request all_reduce(Execution const& exec, Vector<T> const& values, Purpose purpose) const;

  /// sums (n) <- sum over ranks of sums of squares that are stored as square_sum.hpp says. Counted as an
  /// all-reduce.
  Request all_reduce_squares(Execution const& exec, Vector<float> const& sums, Purpose purpose) const;

  /// values (n) <- those of `root`.
  template <class T>
  Request broadcast(Execution const& exec, Vector<T> const& values, int root, Purpose purpose) const;

  /// On `root`: received (n) = sum over ranks of sent (n). Elsewhere received may be empty.
  template <class T>
  Request reduce(Execution const& exec, Vector<T> const& sent, Vector<T> const& received, int root,
                 Purpose purpose) const;

  /// Small sums on the host, in place; blocking.
  void sum(std::span<double> values, Purpose purpose = Purpose::other) const;
  double sum(double value, Purpose purpose = Purpose::other) const;
  double max(double value) const;
  void max(std::span<double> values) const; ///< in place
  void barrier() const;

private:
  std::shared_ptr<MPI_Comm> comm_;
  Ledger* ledger_ = nullptr;
  int rank_ = 0, size_ = 1;
};

} // namespace prowl
