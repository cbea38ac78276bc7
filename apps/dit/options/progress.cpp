#include <dit/options/progress.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>

namespace prowl::dit {

namespace {

/// Open MPI gives ranks a pseudo-terminal even where its own output goes to a file.
bool is_terminal(std::FILE* out) {
  return ::isatty(::fileno(out)) == 1 && !std::getenv("OMPI_COMM_WORLD_RANK");
}

} // namespace

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  auto const whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole / 3600 % 24);
}

std::string format_step(StepReport const& report, double seconds_left) {
  std::string line = fmt::format("step {:>{}}/{}  loss {:.4f}", report.step,
                                 fmt::formatted_size("{}", report.steps), report.steps, report.loss);
  if (report.validation_loss) line += fmt::format("  validation {:.4f}", *report.validation_loss);
  line += fmt::format("  {:.3f} s/step", report.seconds);
  if (report.seconds > 0)
    line += fmt::format("  {:.0f} images/s  optimizer {:.0f}%",
                        static_cast<double>(report.images) / report.seconds,
                        100 * report.optimizer_seconds / report.seconds);
  if (report.skipped) line += fmt::format("  skipped: not finite, as {} steps so far", report.all_skipped);
  return line + fmt::format("  {} left", format_duration(seconds_left));
}

Progress::Progress(std::FILE* out, std::int64_t every)
    : out_(out), every_(every), terminal_(is_terminal(out)) {}

void Progress::report(StepReport const& report) {
  // A mean over about 20 steps: steady, yet it follows a machine that becomes busy.
  mean_seconds_ = mean_seconds_ ? 0.95 * *mean_seconds_ + 0.05 * report.seconds : report.seconds;
  bool const last = report.step == report.steps;
  if (report.step % every_ != 0 && !last && !report.validation_loss) return;
  std::string const line =
      format_step(report, *mean_seconds_ * static_cast<double>(report.steps - report.step));
  if (terminal_)
    fmt::print(out_, "\r\x1b[K{}", line); // back to the line's start, erase it
  else
    fmt::print(out_, "{}\n", line);
  open_line_ = terminal_;
  if (last || report.validation_loss) finish_line();
  std::fflush(out_);
}

void Progress::finish_line() {
  if (open_line_) fmt::print(out_, "\n");
  open_line_ = false;
}

} // namespace prowl::dit
