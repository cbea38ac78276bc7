#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>

#include <utility>

namespace prowl {

namespace {

std::string broadcast(MPI_Comm comm, int root, std::string text) {
  unsigned long length = text.size();
  MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG, root, comm);
  text.resize(length);
  MPI_Bcast(text.data(), int(length), MPI_CHAR, root, comm);
  return text;
}

} // namespace

std::string text_of_rank_0(MPI_Comm comm, std::string text) { return broadcast(comm, 0, std::move(text)); }

void agree(MPI_Comm comm, std::string const& failure) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int first = failure.empty() ? size : rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == size) return;
  throw Error(broadcast(comm, first, failure));
}

} // namespace prowl
