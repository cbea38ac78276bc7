/// Checkpoints of a run: a folder of array files, the newest of which that is intact is where the run goes
/// on.
#pragma once

#include <prowl/io/array_file.hpp>

#include <functional>
#include <optional>
#include <string_view>

namespace prowl {

/// FOLDER/checkpoint-00000120.h5 for step 120.
std::string checkpoint_path(std::string const& folder, std::int64_t step);

/// The step in a file's name: prefix, digits, suffix, where -2 and the like may follow the digits.
std::optional<std::int64_t> step_in(std::string_view name, std::string_view prefix, std::string_view suffix);

/// Collective. Writes the checkpoint of a step (its attribute `step` is added to the contents) into an
/// existing folder, whole or not at all; a damaged or equal one of the same step is replaced. A number that is
/// not finite is refused, with array, row and column. Then deletes older steps so that `keep` are left (0: all)
/// of those that are whole and finite; later steps stay. Before, removes what killed runs left half-written.
/// Returns the path.
std::string write_checkpoint(MPI_Comm comm, std::string const& folder, std::int64_t step,
                             ArrayFileContents contents, int keep);

/// Collective. The checkpoint of the latest step of which every byte is as it was written and every number
/// finite, on every rank the same; none where there is none. On rank 0, `log` gets a line for each one that is
/// passed over, with the reason. Throws Error where a file that would be the newest can be neither: it cannot be
/// read, another process holds it open for writing, it is of another format.
std::optional<std::string> newest_intact_checkpoint(MPI_Comm comm, std::string const& folder,
                                                    std::function<void(std::string const&)> const& log);

} // namespace prowl
