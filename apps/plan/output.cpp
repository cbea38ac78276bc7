#include <plan/output.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <build_strings.hpp>

namespace prowl::plan {

namespace {

constexpr std::int64_t most_steps = 64; // of a period in one picture

/// Runs a program to its end with `input` to read; its exit status, 127 where it is not there.
int run_program(std::vector<std::string> arguments, std::string const& input = {}) {
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw Error("{}: cannot be started: {}", arguments[0], std::strerror(errno));
  pid_t const child = fork();
  if (child < 0) throw Error("{}: cannot be started: {}", arguments[0], std::strerror(errno));
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  close(ends[0]);
  auto const before = std::signal(SIGPIPE, SIG_IGN); // of a program that ends without reading
  for (std::size_t sent = 0; sent < input.size();) {
    auto const count = ::write(ends[1], input.data() + sent, input.size() - sent);
    if (count <= 0) break; // its exit status tells
    sent += std::size_t(count);
  }
  close(ends[1]);
  std::signal(SIGPIPE, before);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string python_with_matplotlib() {
  for (std::string const python : {"python3", "/usr/bin/python3"})
    if (run_program(
            {python, "-c",
             "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)"}) == 0)
      return python;
  return "";
}

} // namespace

void check_picture(std::string const& path) {
  auto const suffix = std::filesystem::path(path).extension();
  if (suffix != ".png" && suffix != ".svg" && suffix != ".pdf")
    throw Error("--plot {}: expected a name that ends in .png, .svg or .pdf", path);
}

std::string data_file(std::string const& name) {
  std::error_code error;
  auto const program = std::filesystem::read_symlink("/proc/self/exe", error);
  auto const installed = program.parent_path() / PROWL_PLAN_INSTALLED / name;
  for (auto const& path : {installed, std::filesystem::path(PROWL_PLAN_SOURCES) / name})
    if (std::filesystem::exists(path, error)) return path.lexically_normal().string();
  return installed.lexically_normal().string();
}

nlohmann::json document(std::vector<RunPlan> const& plans, dit::ModelConfig const& config,
                        Setting const& setting, bool sweep) {
  nlohmann::json list = nlohmann::json::array();
  for (auto const& plan : plans) list.push_back(to_json(plan));
  return {{"hardware", setting.hardware.name},
          {"type", setting.type},
          {"parameters", counts_json(config)},
          {"sweep", sweep},
          {"ways", list}};
}

void draw(nlohmann::json const& document, std::string const& path) {
  auto const python = python_with_matplotlib();
  if (python.empty())
    throw Error("--plot {}: no python3 with Matplotlib was found (python3-matplotlib)", path);
  auto const status = run_program({python, data_file("plot_plan.py"), "-", path}, document.dump());
  if (status != 0) throw Error("--plot {}: not drawn", path);
}

void write_timeline(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting,
                    std::string const& path) {
  auto const thread = [](int channel) { return channel == Timeline::program ? 0 : 1 + channel; };
  auto events = nlohmann::json::array();
  auto const name = [&](char const* what, int tid, std::string const& text) {
    events.push_back({{"ph", "M"}, {"name", what}, {"pid", 0}, {"tid", tid}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, fmt::format("{}, {} of {}", plan.name, text(plan.mesh), setting.hardware.name));
  name("thread_name", 0, "program");
  name("thread_name", 1, "links within a node");
  name("thread_name", 2, "links between nodes");
  name("thread_name", 3, "steps");
  struct Event {
    double begin, end;
    int tid;
    std::string name, of;
  };
  std::vector<Event> list;
  double start = 0;
  for (std::int64_t t = 0; t < std::min(std::int64_t(plan.steps.size()), most_steps); ++t) {
    auto const step = timeline(plan, config, setting, t);
    list.push_back({start, start + step.seconds, 3, fmt::format("step {}", t), ""});
    for (auto const& span : step.spans)
      list.push_back({start + span.begin, start + span.end, thread(span.channel), span.name, span.of});
    start += step.seconds;
  }
  std::ranges::stable_sort(list, {}, &Event::begin);
  auto const microseconds = [](double seconds) { return std::round(1e9 * seconds) / 1e3; };
  for (auto const& e : list) {
    // The end is rounded, not the duration: what follows begins there.
    auto const begin = microseconds(e.begin), end = microseconds(e.end);
    events.push_back({{"ph", "X"},
                      {"name", e.name},
                      {"pid", 0},
                      {"tid", e.tid},
                      {"ts", begin},
                      {"dur", std::round(1e3 * (end - begin)) / 1e3}});
    if (!e.of.empty()) events.back()["args"] = {{"of", e.of}};
  }
  write_file(path, nlohmann::json{{"traceEvents", events}}.dump() + '\n');
}

std::string sweep_table(std::vector<RunPlan> const& plans) {
  std::vector<std::string> names;
  std::vector<int> ranks;
  std::size_t width = 6;
  for (auto const& plan : plans) {
    if (std::ranges::find(names, plan.name) == names.end()) names.push_back(plan.name);
    if (std::ranges::find(ranks, plan.mesh.ranks()) == ranks.end()) ranks.push_back(plan.mesh.ranks());
    width = std::max(width, plan.name.size());
  }
  auto const table = [&](char const* title, double StepTime::*value) {
    auto text = fmt::format("{:<{}}", title, width);
    for (auto count : ranks) text += fmt::format(" {:>9}", count);
    for (auto const& name : names) {
      text += fmt::format("\n{:<{}}", name, width);
      for (auto count : ranks) {
        auto const plan = std::ranges::find_if(
            plans, [&](RunPlan const& p) { return p.mesh.ranks() == count && p.name == name; });
        text += plan == plans.end() ? fmt::format(" {:>9}", "-")
                                    : fmt::format(" {:>8}{}", milliseconds(plan->time.*value), mark(*plan));
      }
    }
    return text + "\n\n";
  };
  return table("step, ms", &StepTime::seconds) + table("optimizer, ms", &StepTime::optimizer_seconds) +
         mark_legend + '\n';
}

} // namespace prowl::plan
