#include <prowl/core/error.hpp>
#include <prowl/io/detail/input_file.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace prowl::detail {

void InputFile::fail(char const* what) const {
  int const reason = errno;
  if (fd_ >= 0) ::close(fd_);
  throw Error("{}: {}: {}", path_, what, std::strerror(reason));
}

// Without O_NONBLOCK, opening a pipe would wait for its writer.
InputFile::InputFile(std::string path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) fail("cannot be opened");
  struct stat info {};
  if (::fstat(fd_, &info) != 0) fail("cannot be inspected");
  if (!S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw Error("{}: is not a regular file", path_);
  }
  // HDF5 locks so what it writes. Where the file system has no locks, nothing is known.
  if (::flock(fd_, LOCK_SH | LOCK_NB) == 0) {
    ::flock(fd_, LOCK_UN);
  } else if (errno == EWOULDBLOCK) {
    ::close(fd_);
    throw Error("{}: is held open for writing by another process", path_);
  }
  bytes_ = info.st_size;
  seconds_ = info.st_mtim.tv_sec;
  nanoseconds_ = info.st_mtim.tv_nsec;
}

InputFile::~InputFile() { ::close(fd_); }

bool InputFile::read(std::int64_t offset, std::int64_t size, void* to) const {
  for (std::int64_t done = 0; done < size;) {
    ssize_t const count =
        ::pread(fd_, static_cast<char*>(to) + done, std::size_t(size - done), off_t(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error("{}: cannot be read: {}", path_, std::strerror(errno));
    if (count == 0) return false;
    done += count;
  }
  return true;
}

void InputFile::require_unchanged() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) throw Error("{}: cannot be inspected: {}", path_, std::strerror(errno));
  if (info.st_size != bytes_)
    throw Error("{}: has changed while in use: it has {} bytes, {} when it was opened", path_,
                std::int64_t(info.st_size), bytes_);
  if (info.st_mtim.tv_sec != seconds_ || info.st_mtim.tv_nsec != nanoseconds_)
    throw Error("{}: has changed while in use: it was written to after it was opened", path_);
}

} // namespace prowl::detail
