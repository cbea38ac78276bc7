/// The line that tells a user how training goes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace prowl::dit {

struct StepReport {
  std::int64_t step = 0;  ///< steps done
  std::int64_t steps = 0; ///< of the whole run
  double loss = 0;
  std::optional<double> validation_loss; ///< where it was measured in this step
  double seconds = 0;                    ///< of this step
  double optimizer_seconds = 0;          ///< of those
  std::int64_t images = 0;               ///< of this step, over all ranks
  bool skipped = false;                  ///< its gradient was not finite
  std::int64_t all_skipped = 0;          ///< steps so far that were
};

/// "47 s", "3 min 20 s", "2 h 05 min", "3 d 04 h".
std::string format_duration(double seconds);

/// "step 120/3000  loss 0.4312  0.081 s/step  790 images/s  optimizer 12%  3 min 53 s left".
std::string format_step(StepReport const& report, double seconds_left);

/// Prints a line every `every` steps, at the last step, and with each validation loss. On a terminal a line
/// replaces the one before, unless it has a validation loss; elsewhere, and under Open MPI's mpirun, all are plain lines. Time left is from
/// a running mean of step times.
class Progress {
public:
  Progress(std::FILE* out, std::int64_t every);

  void report(StepReport const& report);
  /// Ends a line that the next would replace: call before printing anything else.
  void finish_line();

private:
  std::FILE* out_;
  std::int64_t every_;
  bool terminal_;
  bool open_line_ = false;
  std::optional<double> mean_seconds_;
};

} // namespace prowl::dit
