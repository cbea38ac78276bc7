#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/checkpoint.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace prowl {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = "checkpoint-", suffix = ".h5";

std::optional<std::int64_t> step_of(std::string const& file_name) {
  if (!file_name.starts_with(prefix) || !file_name.ends_with(suffix)) return {};
  std::int64_t step = 0;
  char const* const last = file_name.data() + file_name.size() - suffix.size();
  auto const [end, error] = std::from_chars(file_name.data() + prefix.size(), last, step);
  if (error != std::errc() || end != last || step < 0) return {};
  return step;
}

/// Of the files in the folder that are named as checkpoints; the latest first. Empty where there is no
/// folder.
std::vector<std::int64_t> steps_in(std::string const& folder) {
  std::vector<std::int64_t> steps;
  if (!fs::exists(folder)) return steps;
  for (auto const& entry : fs::directory_iterator(folder)) {
    auto const step = step_of(entry.path().filename().string());
    if (step && entry.path() == checkpoint_path(folder, *step)) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void remove_stale(std::string const& folder) {
  std::string const hidden = fmt::format(".{}", prefix), ending = fmt::format("{}.tmp", suffix);
  for (auto const& entry : fs::directory_iterator(folder)) {
    std::string const name = entry.path().filename().string();
    if (name.starts_with(hidden) && name.ends_with(ending)) fs::remove(entry.path());
  }
}

} // namespace

std::string checkpoint_path(std::string const& folder, std::int64_t step) {
  return (fs::path(folder) / fmt::format("{}{:08}{}", prefix, step, suffix)).string();
}

std::string write_checkpoint(MPI_Comm comm, std::string const& folder, std::int64_t step,
                             ArrayFileContents contents, int keep) {
  std::string const path = checkpoint_path(folder, step);
  contents.attributes["step"] = step;
  together_on(0, comm, [&] { remove_stale(folder); });
  write_array_file(comm, path, contents);
  together_on(0, comm, [&] {
    if (keep < 1) return;
    int kept = 1;
    for (auto const older : steps_in(folder))
      if (older < step && ++kept > keep) fs::remove(checkpoint_path(folder, older));
  });
  return path;
}

std::optional<std::string> newest_intact_checkpoint(MPI_Comm comm, std::string const& folder,
                                                    std::function<void(std::string const&)> const& log) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::vector<std::int64_t> steps;
  together_on(0, comm, [&] { steps = steps_in(folder); });
  std::uint64_t count = steps.size();
  MPI_Bcast(&count, 1, MPI_UINT64_T, 0, comm);
  steps.resize(count);
  MPI_Bcast(steps.data(), int(count), MPI_INT64_T, 0, comm);
  for (auto const step : steps) {
    std::string const path = checkpoint_path(folder, step);
    try {
      ArrayFileReader const reader(comm, path);
      if (reader.integer("step") != step)
        throw Error("{}: holds step {}, not that of its name", path, reader.integer("step"));
      reader.verify();
      return path;
    } catch (Error const& error) {
      if (rank == 0) log(fmt::format("skipped checkpoint: {}", error.what()));
    }
  }
  return {};
}

} // namespace prowl
