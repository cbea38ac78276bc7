/// Errors that all ranks share: what one rank throws, every rank throws, so that none waits for another for
/// ever.
#pragma once

#include <mpi.h>

#include <exception>
#include <string>

namespace prowl {

/// Collective. Throws Error(failure of the lowest rank whose `failure` is not empty) on every rank, or on
/// none.
void agree(MPI_Comm comm, std::string const& failure);

/// Collective. Rank 0's text, on every rank.
std::string text_of_rank_0(MPI_Comm comm, std::string text);

/// Collective: runs `work`, which does not communicate, on each rank; where any rank's throws, all throw one
/// Error.
template <class Work>
void together(MPI_Comm comm, Work const& work) {
  std::string failure;
  try {
    work();
  } catch (std::exception const& e) {
    failure = *e.what() ? e.what() : "unknown error";
  }
  agree(comm, failure);
}

/// As `together` where only `rank` has work.
template <class Work>
void together_on(int rank, MPI_Comm comm, Work const& work) {
  int self = 0;
  MPI_Comm_rank(comm, &self);
  together(comm, [&] {
    if (self == rank) work();
  });
}

} // namespace prowl
