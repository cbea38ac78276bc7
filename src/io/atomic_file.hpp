/// Files that appear whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace prowl {

/// A file being written beside its target, as TARGET.writing-PROCESS-HOST. A link is followed; what is no file, as
/// /dev/stdout, is written itself.
///
/// Write to `path()`, close it, then `commit()`. Without a commit (an exception on the way) the destructor
/// removes what was written, and the target is as it was. What a killed process of this host left in the
/// target's folder is removed when the next file is written there.
class AtomicFile {
public:
  /// Creates the folders that it will be in, which go again where it is not committed. Throws Error naming
  /// the target where they cannot be created, or where it is a folder.
  explicit AtomicFile(std::string target);
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  ~AtomicFile();

  std::string const& path() const { return path_; }
  std::string const& target() const { return target_; }

  /// Flushes the file to the disk, renames it to the target and flushes the folder. Throws Error naming the
  /// file.
  void commit();

private:
  void create_folders(std::filesystem::path const& folder);
  void remove_folders();

  std::string target_, path_;
  std::vector<std::string> folders_; ///< created here, the innermost first
  bool direct_ = false;              ///< the target is no file
  bool committed_ = false;
};

/// A whole file of text. Throws Error naming it, with the reason, where it cannot be written; what was there before is
/// kept then.
void write_file(std::string const& path, std::string const& text);

} // namespace prowl
