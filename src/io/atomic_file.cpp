#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace prowl {

namespace {

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

} // namespace

AtomicFile::AtomicFile(std::string target) : target_(std::move(target)) {
  namespace fs = std::filesystem;
  direct_ = fs::exists(target_) && !fs::is_regular_file(target_) && !fs::is_directory(target_);
  for (int links = 0; !direct_ && fs::is_symlink(target_) && links < 40; ++links)
    target_ = (fs::absolute(target_).parent_path() / fs::read_symlink(target_)).string();
  auto const folder = fs::absolute(target_).parent_path();
  create_folders(folder);
  if (fs::is_directory(target_)) throw Error("{}: is a folder, expected a file to write", target_);
  path_ = direct_ ? target_ : fmt::format("{}.writing-{}", target_, ::getpid());
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
  std::ofstream stream(file.path());
  stream << text;
  stream.close();
  if (!stream) throw Error("{}: cannot be written", path);
  file.commit();
}

} // namespace prowl
