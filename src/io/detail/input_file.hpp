/// A file that is read beside HDF5.
#pragma once

#include <cstdint>
#include <string>

namespace prowl::detail {

/// A regular file open to be read, which notices that it changes.
class InputFile {
public:
  /// Throws Error with the reason where it cannot be opened, or is held open for writing by another process.
  explicit InputFile(std::string path);
  InputFile(InputFile const&) = delete;
  ~InputFile();

  std::string const& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }

  /// Fills `to` with `size` bytes from `offset` on; false where the file ends before. Throws Error where the
  /// system cannot read.
  bool read(std::int64_t offset, std::int64_t size, void* to) const;

  /// Throws Error where the file has another size or time of change than when it was opened.
  void require_unchanged() const;

private:
  [[noreturn]] void fail(char const* what) const;

  std::string path_;
  int fd_ = -1;
  std::int64_t bytes_ = 0, seconds_ = 0, nanoseconds_ = 0;
};

} // namespace prowl::detail
