#include <plan/output.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

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

void write_text(std::string const& path, std::string const& text) {
  AtomicFile file(path);
  std::ofstream stream(file.path());
  stream << text;
  stream.close();
  if (!stream) throw Error("{}: cannot be written", path);
  file.commit();
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
  std::string events;
  auto const steps = std::min(std::int64_t(plan.steps.size()), most_steps);
  for (std::int64_t t = 0; t < steps; ++t)
    events += (t > 0 ? ",\n" : "") +
              trace::json(int(t), timeline(plan, config, setting, t).events, fmt::format("step {}", t));
  write_text(path, "{\"traceEvents\":[\n" + events + "\n]}\n");
}

std::string sweep_table(std::vector<RunPlan> const& plans) {
  std::vector<std::string> names;
  std::size_t width = 6;
  for (auto const& plan : plans)
    if (std::ranges::find(names, plan.name) == names.end()) {
      names.push_back(plan.name);
      width = std::max(width, plan.name.size());
    }
  std::string table = "step / optimizer, ms (! does not fit)\n" + fmt::format("{:>8}", "ranks");
  for (auto const& name : names) table += fmt::format("  {:>{}}", name, width);
  for (std::size_t i = 0; i < plans.size();) {
    int const ranks = plans[i].mesh.ranks();
    table += fmt::format("\n{:>8}", ranks);
    for (auto const& name : names) {
      auto const plan = std::find_if(plans.begin() + std::ptrdiff_t(i), plans.end(), [&](RunPlan const& p) {
        return p.mesh.ranks() == ranks && p.name == name;
      });
      auto const cell = plan == plans.end()
                            ? std::string("-")
                            : fmt::format("{:.4g} / {:.3g}{}", 1e3 * plan->time.seconds,
                                          1e3 * plan->time.optimizer_seconds, plan->fits() ? ' ' : '!');
      table += fmt::format("  {:>{}}", cell, width);
    }
    while (i < plans.size() && plans[i].mesh.ranks() == ranks) ++i;
  }
  return table + '\n';
}

} // namespace prowl::plan
