#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>

namespace prowl {

void agree(MPI_Comm comm, std::string const& failure) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int first = failure.empty() ? size : rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == size) return;
  std::string message = failure;
  unsigned long length = message.size();
  MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG, first, comm);
  message.resize(length);
  MPI_Bcast(message.data(), int(length), MPI_CHAR, first, comm);
  throw Error(message);
}

} // namespace prowl
