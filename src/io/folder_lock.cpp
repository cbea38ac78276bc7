#include <prowl/core/error.hpp>
#include <prowl/io/folder_lock.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>

namespace prowl {

namespace {

/// "process 4711 on node3 (Slurm job 12), since 2026-01-31 12:00:00".
std::string holder() {
  char host[256] = "an unknown host";
  ::gethostname(host, sizeof host - 1);
  std::string job;
  for (auto const& [system, variable] :
       {std::pair{"Slurm", "SLURM_JOB_ID"}, {"PBS", "PBS_JOBID"}, {"LSF", "LSB_JOBID"}})
    if (char const* const id = std::getenv(variable)) job = fmt::format(" ({} job {})", system, id);
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  char time[32] = "";
  if (::localtime_r(&now, &parts)) std::strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("process {} on {}{}, since {}", ::getpid(), host, job, time);
}

std::string content(int file) {
  char text[512];
  auto const size = ::pread(file, text, sizeof text, 0);
  std::string result(text, std::size_t(std::max<ssize_t>(size, 0)));
  return result.substr(0, result.find('\n'));
}

} // namespace

FolderLock::FolderLock(std::string const& folder) {
  std::string const path = folder + "/run.lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw Error("{}: cannot be opened: {}", path, std::strerror(errno));
  // Of the open file, not of the process: a traditional lock ends when any file of that name is closed.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file_, F_OFD_SETLK, &whole) != 0) {
    int const error = errno;
    if (error == EAGAIN || error == EACCES) {
      // The other may have it since a moment, and not yet have said who it is.
      for (int i = 0; i < 20 && content(file_).empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      auto const who = content(file_);
      ::close(file_);
      throw Error("{}: in use by {}; two runs in one folder would destroy each other's files", folder,
                  who.empty() ? "another process" : who);
    }
    warning_ = fmt::format("{}: cannot be locked ({}): see that no other run uses this folder", path,
                           std::strerror(error));
  }
  auto const text = holder() + '\n';
  // What cannot be written here (a full disk) only leaves another run's message without a name.
  if (::ftruncate(file_, 0) == 0 && ::pwrite(file_, text.data(), text.size(), 0) < 0) return;
}

FolderLock::~FolderLock() {
  if (warning_.empty() && ::ftruncate(file_, 0) != 0) errno = 0; // the name stays, which does no harm
  ::close(file_);
}

} // namespace prowl
