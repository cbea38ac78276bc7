#include <dit/train/run_folder.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/io/checkpoint.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

namespace prowl::dit {

namespace fs = std::filesystem;

namespace {

constexpr auto line_file = "line.json";

/// Whether a file is of a step that a line from `step` does again, or does not have.
bool is_later(std::string const& name, std::int64_t step) {
  for (auto const& [prefix, suffix, first] : {std::tuple{"checkpoint-", ".h5", step + 1},
                                              {"samples-", ".png", step + 1},
                                              {"deck-", ".toml", step + 1},
                                              {"step-", ".h5", step}})
    if (auto const found = step_in(name, prefix, suffix)) return *found >= first;
  return false;
}

std::string read_file(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

RunFolder::RunFolder(MPI_Comm comm, std::string path, Say say)
    : comm_(comm), path_(std::move(path)), say_(std::move(say)) {
  together_on(0, comm_, [&] {
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) throw Error("run.folder: {}: cannot be created: {}", path_, error.message());
    lock_.emplace(path_);
    if (!lock_->warning().empty()) say_("warning: " + lock_->warning());
  });
  read_line();
  if (line_ && !line_->begun) set_aside();
}

bool RunFolder::has(std::string const& name) const {
  bool here = false;
  together_on(0, comm_, [&] {
    auto const path = fs::path(path_) / name;
    here = fs::exists(path) && fs::file_size(path) > 0;
  });
  return !text_of_rank_0(comm_, here ? "y" : "").empty();
}

void RunFolder::read_line() {
  std::string text;
  auto const path = path_ + "/" + line_file;
  together_on(0, comm_, [&] {
    if (fs::exists(path)) text = read_file(path);
  });
  text = text_of_rank_0(comm_, text);
  if (text.empty()) return;
  try {
    auto const json = nlohmann::json::parse(text);
    line_ = {json.at("from"), json.at("step"), json.at("begun")};
  } catch (nlohmann::json::exception const& error) {
    throw Error(
        "{}: not as prowl-train wrote it ({}); without it, run.resume = \"auto\" takes the newest checkpoint",
        path, error.what());
  }
}

void RunFolder::write_line() {
  together_on(0, comm_, [&] {
    nlohmann::json const json = {{"from", line_->from}, {"step", line_->step}, {"begun", line_->begun}};
    write_file(path_ + "/" + line_file, json.dump() + "\n");
  });
}

/// Of the latest file that is named as a checkpoint, damaged or not; empty: there is none.
std::string RunFolder::newest_name() const {
  std::pair<std::int64_t, std::string> newest{-1, ""};
  together_on(0, comm_, [&] {
    for (auto const& entry : fs::directory_iterator(path_)) {
      auto const name = entry.path().filename().string();
      if (auto const step = step_in(name, "checkpoint-", ".h5")) newest = std::max(newest, {*step, name});
    }
  });
  return text_of_rank_0(comm_, newest.second);
}

std::optional<std::string> RunFolder::checkpoint(std::string const& resume) const {
  if (resume == "restart") return {};
  auto const newest = newest_name();
  if (resume == "never") {
    if (newest.empty()) return {};
    throw Error(
        "run.resume = \"never\", but {}/{} is there; choose another run.folder, run.resume = \"auto\", or "
        "\"restart\"",
        path_, newest);
  }
  if (resume != "auto" && !(line_ && line_->from == fs::weakly_canonical(resume).string())) return resume;
  if (auto const intact = newest_intact_checkpoint(comm_, path_, say_)) return intact;
  if (line_ && !line_->from.empty()) return line_->from;
  if (newest.empty()) return {};
  throw Error("run.resume = \"{}\": {} has checkpoints ({}), but none that is intact; run.resume = "
              "\"restart\" sets them "
              "aside and starts at step 0",
              resume, path_, newest);
}

void RunFolder::begin(std::string const& resume, std::int64_t step) {
  bool const path = resume != "auto" && resume != "never" && resume != "restart";
  auto const from = path ? fs::weakly_canonical(resume).string() : "";
  if (path && line_ && line_->from == from) return; // goes on with that line
  bool const fresh = step == 0 && !path && newest_name().empty() && has("metrics.jsonl");
  if (!path && resume != "restart" && !fresh) return;
  line_ = {from, step, false};
  write_line();
  set_aside();
}

void RunFolder::set_aside() {
  together_on(0, comm_, [&] {
    fs::path const folder = path_;
    // A checkpoint of the folder has its history there; one of elsewhere has not.
    bool const inside = !line_->from.empty() && fs::exists(line_->from) &&
                        fs::equivalent(fs::path(line_->from).parent_path(), folder);
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(folder)) {
      auto const name = entry.path().filename().string();
      bool const named = name == "metrics.jsonl" || name == "deck.toml" || name == "routing.txt";
      if (inside ? is_later(name, line_->step) || name == "metrics.jsonl" : is_later(name, -1) || named)
        names.push_back(name);
    }
    bool const any = std::ranges::any_of(names, [](auto const& name) { return name != "metrics.jsonl"; });
    if (any || (!inside && !names.empty())) {
      int n = 1;
      while (fs::exists(folder / fmt::format("previous-{}", n))) ++n;
      auto const previous = folder / fmt::format("previous-{}", n);
      fs::create_directory(previous);
      for (auto const& name : names)
        if (inside && name == "metrics.jsonl") // whose steps before stay
          fs::copy_file(folder / name, previous / name);
        else
          fs::rename(folder / name, previous / name);
      say_(fmt::format("set aside in {}: {} files of {}", previous.string(), names.size(),
                       inside ? fmt::format("the steps after {}", line_->step) : "the run before"));
    }
  });
  line_->begun = true;
  write_line();
}

void RunFolder::write_deck(std::int64_t step, std::string const& deck) const {
  together_on(0, comm_, [&] {
    auto const latest = path_ + "/deck.toml";
    if (fs::exists(latest) && read_file(latest) == deck) return;
    auto name = fmt::format("{}/deck-{:08}.toml", path_, step);
    for (int n = 2; fs::exists(name); ++n) name = fmt::format("{}/deck-{:08}-{}.toml", path_, step, n);
    write_file(name, deck);
    write_file(latest, deck);
  });
}

} // namespace prowl::dit
