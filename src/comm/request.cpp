#include <prowl/comm/detail/progress.hpp>
#include <prowl/comm/request.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace prowl {

namespace detail {

namespace {

class ProgressThread {
public:
  void add(std::shared_ptr<PendingCollective> pending) {
    std::lock_guard const lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    pending_.push_back(std::move(pending));
    wake_.notify_one();
  }

  void stop() {
    {
      std::lock_guard const lock(mutex_);
      if (!thread_.joinable()) return;
      stopping_ = true;
      wake_.notify_one();
    }
    thread_.join();
    stopping_ = false;
  }

  ~ProgressThread() { stop(); }

private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
      if (stopping_) return;
      auto const current = pending_;
      lock.unlock();
      for (auto const& p : current) p->test();
      // Long enough to leave the core to the computation, short beside the milliseconds that a gather takes.
      std::this_thread::sleep_for(std::chrono::microseconds(30));
      lock.lock();
      std::erase_if(pending_, [](auto const& p) {
        std::lock_guard const guard(mpi_mutex());
        return p->done;
      });
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<PendingCollective>> pending_;
  bool stopping_ = false;
  std::thread thread_;
};

ProgressThread& progress_thread() {
  static ProgressThread thread;
  return thread;
}

} // namespace

std::mutex& mpi_mutex() {
  static std::mutex mutex;
  return mutex;
}

bool PendingCollective::test() {
  std::lock_guard const lock(mpi_mutex());
  if (done) return true;
  int flag = 0;
  error = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  done = flag || error != MPI_SUCCESS;
  if (done) trace::record(trace::Track::communication, label, begin, trace::now());
  return done;
}

void progress(std::shared_ptr<PendingCollective> pending) { progress_thread().add(std::move(pending)); }

void stop_progress() { progress_thread().stop(); }

void check_mpi(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error("{}: {}", what, text);
}

} // namespace detail

Request::Request(std::shared_ptr<detail::PendingCollective> pending) : pending_(std::move(pending)) {}
Request::Request(Request&&) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  Request old(std::move(*this)); // dropped unless complete
  pending_ = std::move(other.pending_);
  return *this;
}

Request::~Request() {
  if (!pending_) return;
  if (std::uncaught_exceptions() > 0) {
    // An error is on its way up: the buffers must outlive the collective, which may never end. The process is
    // about to.
    new std::shared_ptr<detail::PendingCollective>(std::move(pending_));
    return;
  }
  std::fprintf(stderr, "prowl: the request of '%s' was dropped before it was waited for\n",
               pending_->label.c_str());
  std::terminate();
}

void Request::wait() {
  if (!pending_) return;
  auto const pending = std::move(pending_);
  pending_ = nullptr;
  while (!pending->test()) std::this_thread::yield();
  detail::check_mpi(pending->error, pending->label.c_str());
  auto const finish = std::exchange(
      pending->finish, nullptr); // the buffers end with this call, not with the progress thread's copy
  if (finish) finish();
}

void wait_all(std::vector<Request>& requests) {
  for (auto& request : requests) request.wait();
  requests.clear();
}

} // namespace prowl
