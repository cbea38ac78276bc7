#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace prowl {

namespace {

constexpr std::string_view writing = ".writing-";

void flush_to_disk(std::string const& path, int flags) {
  int const file = ::open(path.c_str(), flags);
  if (file < 0) throw Error("{}: cannot be opened to flush it: {}", path, std::strerror(errno));
  int const status = ::fsync(file);
  int const error = errno;
  ::close(file);
  // Some file systems cannot flush folders; the rename is then as safe as they make it.
  if (status != 0 && error != EINVAL)
    throw Error("{}: cannot be flushed to disk: {}", path, std::strerror(error));
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// Of TARGET.writing-PROCESS-HOST, or of TARGET.writing-PROCESS, the process; 0 where the name is no such name,
/// or of another host.
pid_t writer_of(std::string const& name, std::string const& host) {
  auto const at = name.rfind(writing);
  if (at == std::string::npos) return 0;
  char const* const begin = name.data() + at + writing.size();
  char const* const last = name.data() + name.size();
  pid_t process = 0;
  auto const [end, error] = std::from_chars(begin, last, process);
  if (error != std::errc() || process < 1) return 0;
  return end == last || std::string(end, last) == "-" + host ? process : 0;
}

/// Removes what writers that are no more left in the folder.
void remove_stale(std::filesystem::path const& folder, std::string const& host) {
  namespace fs = std::filesystem;
  std::error_code error, ignored; // a folder that cannot be listed may still be written to
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    pid_t const process = writer_of(entry->path().filename().string(), host);
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) fs::remove(entry->path(), ignored);
  }
}

} // namespace

AtomicFile::AtomicFile(std::string target) : target_(std::move(target)) {
  namespace fs = std::filesystem;
  direct_ = fs::exists(target_) && !fs::is_regular_file(target_) && !fs::is_directory(target_);
  for (int links = 0; !direct_ && fs::is_symlink(target_) && links < 40; ++links)
    target_ = (fs::absolute(target_).parent_path() / fs::read_symlink(target_)).string();
  auto const folder = fs::absolute(target_).parent_path();
  create_folders(folder);
  if (fs::is_directory(target_)) throw Error("{}: is a folder, expected a file to write", target_);
  if (direct_) {
    path_ = target_;
    return;
  }
  auto const host = host_name();
  remove_stale(folder, host);
  path_ = fmt::format("{}{}{}-{}", target_, writing, ::getpid(), host);
}

AtomicFile::~AtomicFile() {
  if (committed_ || direct_) return;
  ::unlink(path_.c_str());
  remove_folders();
}

void AtomicFile::create_folders(std::filesystem::path const& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (auto missing = folder; !missing.empty() && !fs::exists(missing, error);
       missing = missing.parent_path())
    folders_.push_back(missing.string());
  fs::create_directories(folder, error);
  if (fs::is_directory(folder)) return;
  remove_folders();
  throw Error("{}: cannot be written: there is no folder {}, and it cannot be created: {}", target_,
              folder.string(), error ? error.message() : std::strerror(ENOTDIR));
}

void AtomicFile::remove_folders() {
  for (auto const& folder : folders_) ::rmdir(folder.c_str()); // not where something is in it by now
}

void AtomicFile::commit() {
  if (direct_) return;
  flush_to_disk(path_, O_RDONLY);
  if (std::rename(path_.c_str(), target_.c_str()) != 0)
    throw Error("{}: cannot be renamed to {}: {}", path_, target_, std::strerror(errno));
  committed_ = true;
  flush_to_disk(std::filesystem::absolute(target_).parent_path().string(), O_RDONLY | O_DIRECTORY);
}

void write_file(std::string const& path, std::string const& text) {
  AtomicFile file(path);
  int const out = ::open(file.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int reason = out < 0 ? errno : 0;
  for (std::size_t done = 0; reason == 0 && done < text.size();) {
    ssize_t const count = ::write(out, text.data() + done, text.size() - done);
    if (count >= 0)
      done += std::size_t(count);
    else if (errno != EINTR)
      reason = errno;
  }
  if (out >= 0 && ::close(out) != 0 && reason == 0) reason = errno;
  if (reason != 0) throw Error("{}: cannot be written: {}", path, std::strerror(reason));
  file.commit();
}

} // namespace prowl
