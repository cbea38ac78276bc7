/// One writer a folder.
#pragma once

#include <string>

namespace prowl {

/// A lock on a folder, held until the object or the process ends, however it ends: the system's lock on the
/// file `run.lock` in it, which stays and names the last holder's host, process, job and start. Only one rank
/// takes it.
class FolderLock {
public:
  /// Throws Error where another process holds it, naming that process, and where the file cannot be opened. A
  /// file system without locks is no error, but has a warning.
  explicit FolderLock(std::string const& folder);
  FolderLock(FolderLock const&) = delete;
  FolderLock& operator=(FolderLock const&) = delete;
  ~FolderLock();

  /// Empty where the lock is held.
  std::string const& warning() const { return warning_; }

private:
  int file_ = -1;
  std::string warning_;
};

} // namespace prowl
