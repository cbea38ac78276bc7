/// A run's folder: one run at a time writes there, and all of its files belong to one line of steps.
#pragma once

#include <prowl/io/folder_lock.hpp>

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace prowl::dit {

/// Functions are collective and give every rank the same.
///
/// A start that goes back, `run.resume` = PATH or "restart", begins another line: the files of later steps
/// are moved to FOLDER/previous-N, and `line.json` says where the line began, so that the next start goes on
/// with it.
class RunFolder {
public:
  /// A line's text on rank 0.
  using Say = std::function<void(std::string const&)>;

  /// Makes the folder where it is missing and locks it until the object's end. Throws Error naming who else
  /// holds it.
  RunFolder(MPI_Comm comm, std::string path, Say say);

  std::string const& path() const { return path_; }

  /// The checkpoint with which run.resume says to go on; none: at step 0. Throws Error where that would be a
  /// start at step 0, or a guess, among checkpoints.
  std::optional<std::string> checkpoint(std::string const& resume) const;
  /// Where that choice goes back, once the checkpoint is known to be good: sets aside what no longer belongs
  /// to the run. A start at step 0 sets aside what a run left that ended before its first checkpoint.
  void begin(std::string const& resume, std::int64_t step);

  /// Writes deck.toml and, where it is not the deck of the start before, deck-STEP.toml beside it.
  void write_deck(std::int64_t step, std::string const& deck) const;
  /// Whether a file of that name is there and not empty.
  bool has(std::string const& name) const;

private:
  struct Line {
    std::string from; ///< a checkpoint's path; empty: from nothing
    std::int64_t step = 0;
    bool begun = true; ///< what came after was set aside
  };

  void read_line();
  void write_line();
  void set_aside();
  std::string newest_name() const;

  MPI_Comm comm_;
  std::string path_;
  Say say_;
  std::optional<FolderLock> lock_; ///< rank 0
  std::optional<Line> line_;       ///< where the folder's is not simply from step 0
};

} // namespace prowl::dit
