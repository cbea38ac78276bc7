/// The start and the end of a program.
#pragma once

#include <functional>

namespace prowl {

/// Runs `body` with MPI (thread level multiple), Kokkos and the host's BLAS set up, and returns the exit
/// status.
///
/// An exception on all ranks is printed once and ends every rank with status 1; an exception on some ranks
/// only is printed by those and ends the others too (MPI_Abort), so that none waits for ever.
///
/// Before MPI starts, and only where the user has not chosen: OpenMPI's MPI-IO is set to ROMIO (its own
/// component is known to corrupt parallel HDF5 writes), and an OpenBLAS that does not know the processor (it
/// then computes with the oldest kernels it has, five times slower) is told to use those of the processor's
/// instruction set.
int run(int& argc, char**& argv, std::function<int()> const& body);

} // namespace prowl
