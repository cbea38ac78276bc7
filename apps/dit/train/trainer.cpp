#include <dit/train/trainer.hpp>

#include <dit/layout.hpp>
#include <dit/train/draw.hpp>
#include <dit/train/dump.hpp>
#include <dit/train/setup.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/process_memory.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/io/checkpoint.hpp>
#include <prowl/io/dataset_summary.hpp>
#include <prowl/optim/ownership.hpp>
#include <prowl/store/store_plan.hpp>

#include <csignal>
#include <filesystem>

namespace prowl::dit {

namespace {

volatile std::sig_atomic_t stop_requested = 0;

/// Validation noise is the same at every validation, and none that training uses.
constexpr std::uint64_t validation_seed_flip = 0x76616C6964617465;

} // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}

Trainer::Trainer(Execution const& exec, Communicator const& world, Ledger& ledger,
                 TrainOptions const& options, std::string deck)
    : exec_(exec), world_(world), ledger_(ledger), options_(options), deck_(std::move(deck)),
      data_(options.data.path), config_(model_config(options, &data_)),
      description_(describe(config_, data_.text_encoding())), mesh_(world, int(options.parallel.replicate)),
      schedule_(schedule(options)),
      store_(exec, mesh_, layout(options, config_, mesh_.place()), store_options(options)),
      optimizer_(exec, store_, optimizer_options(options.optimizer)),
      model_(config_, int(local_capacity(options, world.size()))), batch_(config_, model_.capacity()),
      validation_(data_, options.train.batch / options.train.accumulate, world.rank(), world.size()),
      progress_(stdout, options.train.log_every), start_(trace::now()) {
  position_.seed = options.run.seed;
  // Now, not after hours of training: prompts for which the model has no text encoder are refused.
  if (!options.sample.prompts.empty())
    prompts_ = encode_prompts(config_, data_.text_encoding(), options.sample.prompts);
  auto const& folder = options_.run.folder;
  together_on(0, world_.mpi(), [&] {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error("run.folder: {}: cannot be created: {}", folder, error.message());
  });
  resume();
  together_on(0, world_.mpi(), [&] {
    for (auto const& line : lines(data_, summarise(data_))) say(line);
  });
  print_plan();
  together_on(0, world_.mpi(), [&] {
    write_file(folder + "/deck.toml", deck_);
    write_file(folder + "/routing.txt", routing_table(store_.layout(), optimizer_.routes()));
    metrics_ = std::make_unique<Metrics>(folder + "/metrics.jsonl", position_.step);
  });
}

/// What goes where, and what that will communicate.
void Trainer::print_plan() {
  auto const& layout = store_.layout();
  if (options_.parallel.placement == "dedicated") {
    auto const owners = ownership(options_, layout.parameters(), mesh_.place());
    say(fmt::format("dedicated owners over {} ranks: the work of the busiest is {:.3f} of the mean",
                    owners.loads.size(), owners.imbalance));
    say(routing_table(layout, optimizer_.routes()));
  }
  if (world_.size() > 1) say(traffic_table(layout, store_.options()));
}

void Trainer::say(std::string const& line) {
  if (world_.rank() != 0) return;
  progress_.finish_line();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::optional<std::string> Trainer::checkpoint_to_resume() {
  auto const& how = options_.run.resume;
  if (how != "auto" && how != "never") return how;
  auto const newest =
      newest_intact_checkpoint(world_.mpi(), options_.run.folder, [&](auto const& line) { say(line); });
  if (newest && how == "never")
    throw Error(
        "run.resume = \"never\", but {} is there; choose another run.folder, or run.resume = \"auto\"",
        *newest);
  return newest;
}

void Trainer::resume() {
  auto const path = checkpoint_to_resume();
  if (!path) {
    initialise_weights(exec_, store_, options_.run.seed);
    say(fmt::format("starts at step 0: {} parameters, {} ranks", counts(config_).trainable, world_.size()));
    return;
  }
  position_ = load(store_, optimizer_, *path);
  say(fmt::format("resumes at step {} from {}", position_.step, *path));
  if (position_.seed != options_.run.seed)
    say(fmt::format("warning: run.seed is {}, but the run was started with {}, which is kept",
                    options_.run.seed, position_.seed));
}

Trainer::Step Trainer::train_step(Loader& loader) {
  Step step;
  double const begin = trace::now();
  auto const seed = std::uint64_t(position_.seed);
  auto const micro_batch = options_.train.batch / options_.train.accumulate;
  std::optional<StepDump> dump;
  if (position_.step == options_.train.dump_step) dump.emplace();
  store_.weights_changed(); // drops what a validation left whole: each step communicates what is planned
  ledger_.clear();
  for (std::int64_t k = 0; k < options_.train.accumulate; ++k) {
    auto const& host = loader.next();
    batch_.upload(host);
    batch_.make_noisy(exec_, seed, std::uint64_t(host.first_sample), options_.train.caption_drop);
    if (dump)
      dump->add_batch(int(k), config_, batch_, local_range(micro_batch, world_.rank(), world_.size()).begin,
                      micro_batch);
    step.loss += model_.forward_backward(exec_, store_, batch_.input(), batch_.velocity(),
                                         1.0 / double(options_.train.batch));
  }
  store_.finish_gradients();
  double shared[] = {step.loss / double(options_.train.batch), stop_requested ? 1.0 : 0.0};
  world_.sum(shared);
  step.loss = shared[0];
  step.stop = shared[1] > 0;
  if (dump) {
    dump->add_gradients(store_);
    dump->add_state("before", store_, optimizer_);
  }
  double const optimizer_begin = trace::now();
  step.rate_factor = schedule_.factor(position_.step);
  step.report = optimizer_.step(step.rate_factor);
  step.optimizer_seconds = trace::now() - optimizer_begin;
  step.seconds = trace::now() - begin;
  if (dump) {
    dump->add_state("after", store_, optimizer_);
    auto const path = fmt::format("{}/step-{:08}.h5", options_.run.folder, position_.step);
    dump->write(world_.mpi(), path, position_, step.loss, step.rate_factor, description_, deck_);
    say(fmt::format("wrote {}", path));
  }
  return step;
}

std::optional<double> Trainer::validation_loss() {
  if (validation_.batches() == 0) return {};
  auto const seed = std::uint64_t(position_.seed) ^ validation_seed_flip;
  auto const batches = std::min(validation_.batches(), options_.train.validation_batches);
  double sums[] = {0, 0}; // losses, samples
  for (std::int64_t b = 0; b < batches; ++b) {
    auto const& host = validation_.read(b);
    batch_.upload(host);
    batch_.make_noisy(exec_, seed, std::uint64_t(host.first_sample), 0);
    sums[0] += model_.loss(exec_, store_, batch_.input(), batch_.velocity());
    sums[1] += double(host.count);
  }
  world_.sum(sums);
  return sums[0] / sums[1];
}

void Trainer::write_metrics(Step const& step, std::optional<double> validation) {
  if (!metrics_) return;
  MetricsRow row = {{"loss", step.loss}};
  if (validation) row.push_back({"val_loss", *validation});
  double const images = double(options_.train.batch);
  row.insert(row.end(), {{"rate_factor", step.rate_factor},
                         {"gradient_norm", step.report.gradient_norm},
                         {"skipped", optimizer_.skipped()},
                         {"seconds", step.seconds},
                         {"optimizer_seconds", step.optimizer_seconds},
                         {"images_per_second", images / step.seconds},
                         {"peak_bytes", peak_resident_bytes()}});
  for (auto purpose : all_purposes)
    for (auto kind : all_collectives) {
      auto const totals = ledger_.totals(kind, purpose);
      if (totals.calls == 0) continue;
      auto const key = fmt::format("{}_{}", name(purpose), name(kind));
      row.push_back({key + "s", totals.calls});
      row.push_back({key + "_bytes", totals.bytes});
    }
  metrics_->append(position_.step, row);
}

void Trainer::checkpoint() {
  store_.finish_publication();
  auto const path =
      save(store_, optimizer_, position_, description_, deck_, options_.run.folder, int(options_.train.keep));
  say(fmt::format("wrote {}", path));
}

void Trainer::draw_grid() {
  auto const& o = options_.sample;
  if (o.prompts.empty()) return;
  auto const samples = draw(exec_, world_, model_, store_, prompts_, {int(o.steps), o.guidance},
                            std::uint64_t(position_.seed));
  auto const path = fmt::format("{}/samples-{:08}.png", options_.run.folder, position_.step);
  together_on(0, world_.mpi(), [&] { write_grid(path, config_, samples, 4); });
  say(fmt::format("wrote {}", path));
}

bool Trainer::out_of_time() const {
  auto const limit = options_.run.time_limit;
  return limit > 0 && world_.max(trace::now() - start_) > limit;
}

void Trainer::run() {
  auto const& train = options_.train;
  auto const due = [](std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; };
  auto const micro_batch = train.batch / train.accumulate;
  Loader loader(data_, {std::uint64_t(position_.seed), micro_batch, world_.rank(), world_.size(),
                        (position_.sample + micro_batch - 1) / micro_batch});
  bool stop = false;
  std::int64_t saved = -1;
  while (position_.step < options_.run.steps && !stop) {
    std::optional<double> validation;
    if (due(position_.step, train.validate_every)) validation = validation_loss();
    auto const step = train_step(loader);
    if (!step.report.skipped) last_traffic_ = {position_.step, ledger_};
    write_metrics(step, validation);
    ++position_.step;
    position_.skipped = optimizer_.skipped();
    position_.sample += train.batch;
    if (world_.rank() == 0)
      progress_.report({position_.step, options_.run.steps, step.loss, validation, step.seconds,
                        step.optimizer_seconds, train.batch});
    stop = step.stop || out_of_time();
    if (due(position_.step, train.checkpoint_every)) {
      checkpoint();
      saved = position_.step;
    }
    if (due(position_.step, options_.sample.every) && position_.step < options_.run.steps) draw_grid();
  }
  if (saved != position_.step) checkpoint();
  if (world_.size() > 1 && last_traffic_)
    say(compare_traffic(planned_step(options_, store_.layout(), last_traffic_->step), last_traffic_->ledger));
  if (position_.step < options_.run.steps) {
    say(fmt::format("ends at step {} as asked to; the same command goes on from there", position_.step));
    return;
  }
  if (auto const validation = validation_loss()) {
    if (metrics_) metrics_->append(position_.step, {{"val_loss", *validation}});
    say(fmt::format("validation loss {:.5f} after {} steps", *validation, position_.step));
  } else {
    say(fmt::format("{} steps done; {} has no validation samples", position_.step, data_.path()));
  }
  draw_grid();
}

} // namespace prowl::dit
