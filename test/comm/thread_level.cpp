// A communicator refuses an MPI that was started without MPI_THREAD_MULTIPLE, as by a program of another's.
#include <prowl/comm/communicator.hpp>
#include <prowl/core/error.hpp>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  int provided = 0, wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) { // a library may give more than was asked for
    wrong = 1;
    try {
      prowl::Communicator const world(MPI_COMM_WORLD);
    } catch (prowl::Error const& error) {
      std::string const message = error.what();
      wrong = message.find("MPI_THREAD_SINGLE, expected MPI_THREAD_MULTIPLE") == message.npos;
    }
  }
  MPI_Finalize();
  if (wrong) std::puts("no error that names both thread levels");
  return wrong;
}
