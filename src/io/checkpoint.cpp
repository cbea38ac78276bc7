#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/checkpoint.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace prowl {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(std::string const& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error("{}: cannot be listed: {}", folder, error.message());
  return names;
}

/// Of the files in the folder that are named as checkpoints; the latest first. Empty where there is no
/// folder.
std::vector<std::int64_t> steps_in(std::string const& folder) {
  std::vector<std::int64_t> steps;
  for (auto const& name : names_in(folder)) {
    auto const step = step_in(name, "checkpoint-", ".h5");
    if (step && fs::path(folder) / name == checkpoint_path(folder, *step)) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void remove_file(fs::path const& path) {
  std::error_code error;
  if (!fs::remove(path, error) && error)
    throw Error("{}: cannot be removed: {}", path.string(), error.message());
}

/// What killed runs left of checkpoints and of dumped steps.
void remove_stale(std::string const& folder) {
  for (auto const& name : names_in(folder))
    if ((name.starts_with(".checkpoint-") || name.starts_with(".step-")) && name.ends_with(".h5.tmp"))
      remove_file(fs::path(folder) / name);
}

/// Deletes steps before `step`, so that of those that can be gone on from `keep` are left with it. One that
/// cannot be is no reason to delete another.
void remove_older(std::string const& folder, std::int64_t step, int keep) {
  int kept = 1;
  for (auto const older : steps_in(folder)) {
    if (older >= step) continue;
    auto const path = checkpoint_path(folder, older);
    if (kept >= keep)
      remove_file(path);
    else
      kept += is_sealed_and_finite(path);
  }
}

/// Empty where there is none.
std::string reason_to_pass_over(ArrayFileReader const& file, std::int64_t step) {
  if (file.integer("step") != step)
    return fmt::format("holds step {}, not that of its name", file.integer("step"));
  if (!file.not_finite().empty()) return fmt::format("is not finite: {}", file.not_finite());
  return {};
}

} // namespace

std::string checkpoint_path(std::string const& folder, std::int64_t step) {
  return (fs::path(folder) / fmt::format("checkpoint-{:08}.h5", step)).string();
}

std::optional<std::int64_t> step_in(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size())
    return {};
  std::int64_t step = 0;
  char const* const last = name.data() + name.size() - suffix.size();
  auto const [end, error] = std::from_chars(name.data() + prefix.size(), last, step);
  if (error != std::errc() || step < 0 || (end != last && *end != '-')) return {};
  return step;
}

std::string write_checkpoint(MPI_Comm comm, std::string const& folder, std::int64_t step,
                             ArrayFileContents contents, int keep) {
  std::string const path = checkpoint_path(folder, step);
  contents.attributes["step"] = step;
  contents.finite = true;
  together_on(0, comm, [&] { remove_stale(folder); });
  write_array_file(comm, path, contents);
  together_on(0, comm, [&] {
    if (keep > 0) remove_older(folder, step, keep);
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
    std::string damage;
    auto const file = ArrayFileReader::open_intact(comm, path, damage);
    if (file) damage = reason_to_pass_over(*file, step);
    if (damage.empty()) return path;
    if (rank == 0) log(fmt::format("skipped checkpoint: {}: {}", path, damage));
  }
  return {};
}

} // namespace prowl
