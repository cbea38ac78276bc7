/// Progress of collectives while the host computes.
///
/// MPI libraries move data only inside MPI calls. One thread a process tests what is under way, so that a
/// gather advances while the caller is inside a matrix product. Its calls and those of the other threads take turns:
/// MPI_THREAD_MULTIPLE allows them at once, but Open MPI 5.0 then loses the completion of a broadcast now and then.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace prowl::detail {

struct PendingCollective {
  MPI_Request request = MPI_REQUEST_NULL;
  std::string label; ///< for the trace
  double begin = 0;  ///< seconds, trace clock
  std::function<void()>
      finish; ///< run once by the waiting thread, e.g. a copy to the device; holds the buffers alive
  bool done = false;
  int error = MPI_SUCCESS;

  /// True once complete. Called by the progress thread and by the waiting one.
  bool test();
};

/// Held during each call of MPI, and to read or write a PendingCollective.
std::mutex& mpi_mutex();

/// Hands a started collective to the progress thread.
void progress(std::shared_ptr<PendingCollective> pending);

/// Ends the progress thread; no collective may be under way. Called before MPI is finalised.
void stop_progress();

/// Throws Error("<what>: <MPI's message>") unless `code` is MPI_SUCCESS: the one place that checks MPI's
/// return codes.
void check_mpi(int code, char const* what);

} // namespace prowl::detail
