// The main of every test program: GoogleTest inside Prowl's runtime; the exit status is the worst of all
// ranks.
#include <prowl/comm/runtime.hpp>

#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  return prowl::run(argc, argv, [&] {
    testing::InitGoogleTest(&argc, argv);
    int status = RUN_ALL_TESTS();
    MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return status;
  });
}
