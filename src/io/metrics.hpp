/// The curve of a run: one JSON object a step, one a line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace prowl {

using Metric = std::variant<std::int64_t, double, std::string>;
/// Names and values in the order in which they are written. A number that is not finite is written as null.
using MetricsRow = std::vector<std::pair<std::string, Metric>>;

/// Writes metrics.jsonl. Only one rank has one.
class Metrics {
public:
  /// Opens `path`, creating it where it does not exist, and removes every line whose "step" is `first_step`
  /// or later and every line that is not whole (a killed run's last). The removal is atomic: the file is the
  /// old or the new one.
  Metrics(std::string path, std::int64_t first_step);
  Metrics(Metrics const&) = delete;
  Metrics& operator=(Metrics const&) = delete;
  ~Metrics();

  /// One line {"step": step, ...}, handed to the system before this returns.
  void append(std::int64_t step, MetricsRow const& row);

  /// Lines removed when opening.
  std::int64_t removed() const { return removed_; }

private:
  std::string path_;
  int file_ = -1;
  std::int64_t removed_ = 0;
};

} // namespace prowl
