/// The start and the end of a program.
#pragma once

#include <functional>
#include <string>

namespace prowl {

/// Exit statuses of Prowl's programs; 0 is the end that was asked for.
inline constexpr int exit_failed = 1;  ///< while running: divergence, a full disk, a lost rank
inline constexpr int exit_refused = 2; ///< bad input, found before the work began
inline constexpr int exit_stopped =
    75; ///< ended early with a checkpoint (EX_TEMPFAIL of sysexits.h): start it again

/// Runs `body` with MPI (thread level multiple), Kokkos and the host's BLAS set up, and returns the exit
/// status.
///
/// An exception on all ranks is printed once and ends every rank with `error_status`; an exception on some
/// ranks only is printed by those and ends the others too (MPI_Abort), so that none waits for ever.
/// `error_status` is read when the exception comes: a program may change it once its input is accepted.
///
/// Fewer ranks than the launcher says that it started are an error: each task would run for itself.
///
/// Before MPI starts, and only where the user has not chosen: OpenMPI's MPI-IO is set to ROMIO (its own
/// component is known to corrupt parallel HDF5 writes), and an OpenBLAS that does not know the processor (it
/// then computes with the oldest kernels it has, five times slower) is told to use those of the processor's
/// instruction set.
int run(int& argc, char**& argv, std::function<int()> const& body, int const& error_status = exit_failed);

/// What the launcher's environment says that `ranks` contradicts; empty where they agree or there is none.
/// Inside an allocation of Slurm only a step's tasks count: a batch script may well run something by itself.
std::string launcher_disagrees(int ranks);

} // namespace prowl
