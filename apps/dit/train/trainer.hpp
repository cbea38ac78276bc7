/// A training run, from its deck to its last checkpoint.
#pragma once

#include <dit/options/options.hpp>
#include <dit/options/progress.hpp>
#include <dit/train/batch.hpp>
#include <dit/train/draw.hpp>
#include <dit/train/memory.hpp>
#include <dit/train/run_folder.hpp>
#include <dit/train/state.hpp>

#include <prowl/comm/mesh.hpp>
#include <prowl/io/loader.hpp>
#include <prowl/io/metrics.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/schedule.hpp>

#include <dit/model.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace prowl::dit {

/// Everything a run holds. Collective over the world.
class Trainer {
public:
  /// Reads the data set's description, takes the run's folder, builds model and optimizer, and resumes as
  /// `run.resume` says. `deck` is the resolved deck, which goes into the folder and each checkpoint. Throws
  /// Error for bad input.
  Trainer(Execution const& exec, Communicator const& world, Ledger& ledger, TrainOptions const& options,
          std::string deck);

  /// Trains until the last step, the time limit, or a signal, and writes a checkpoint in each case. Whether
  /// all steps are done.
  bool run();

private:
  struct Step {
    double loss = 0, rate_factor = 0, seconds = 0, optimizer_seconds = 0;
    double peak_bytes = 0; ///< of the rank that had most
    bool stop = false;     ///< some rank was asked to, or time is up
    Optimizer::Report report;
  };

  void resume();
  void load_checkpoint(std::string const& path);
  Step train_step(Loader& loader);
  std::optional<double> validation_loss(); ///< none where there are no validation samples
  void write_metrics(Step const& step, std::optional<double> validation);
  void checkpoint();
  std::string grid_name() const;
  void draw_grid();
  void print_plan();
  void say(std::string const& line);
  std::string in_folder(std::string const& name) const { return folder_.path() + "/" + name; }

  Execution exec_;
  Communicator world_;
  Ledger& ledger_;
  TrainOptions options_;
  Progress progress_;
  Dataset data_;
  ModelConfig config_;
  RunTexts texts_; ///< as checkpoints hold them
  RunFolder folder_;
  Mesh mesh_;
  Schedule schedule_;
  Store store_;
  Optimizer optimizer_;
  Model<float> model_;
  DeviceBatch batch_;
  ValidationReader validation_;
  CaptionFeatures prompts_;          ///< of the sample grid
  std::unique_ptr<Metrics> metrics_; ///< rank 0
  Position position_;
  struct Traffic {
    std::int64_t step;
    Ledger ledger;
  };
  std::optional<Traffic> last_traffic_; ///< of the last step that was not skipped
  double start_;
};

/// SIGTERM and SIGUSR1 ask a run to write a checkpoint and end; call once, after MPI has started.
void catch_stop_signals();

} // namespace prowl::dit
