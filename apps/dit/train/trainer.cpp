#include <dit/train/trainer.hpp>

#include <dit/layout.hpp>
#include <dit/train/changes.hpp>
#include <dit/train/draw.hpp>
#include <dit/train/dump.hpp>
#include <dit/train/setup.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/process_memory.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/io/dataset_summary.hpp>
#include <prowl/optim/ownership.hpp>
#include <prowl/store/store_plan.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iterator>
#include <limits>

namespace prowl::dit {

namespace {

volatile std::sig_atomic_t stop_requested = 0;

/// Validation noise is the same at every validation, and none that training uses.
constexpr std::uint64_t validation_seed_flip = 0x76616C6964617465;

/// As many whatever the micro-batches and ranks.
std::int64_t validation_samples(TrainOptions const& options) {
  auto const batch = options.train.batch;
  return batch * std::min(options.train.validation_batches, std::numeric_limits<std::int64_t>::max() / batch);
}

/// Read by rank 0 alone.
std::string shared_fingerprint(Communicator const& world, Dataset const& data) {
  std::string text;
  together_on(0, world.mpi(), [&] { text = fingerprint(data); });
  return text_of_rank_0(world.mpi(), text);
}

} // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}

Trainer::Trainer(Execution const& exec, Communicator const& world, Ledger& ledger,
                 TrainOptions const& options, std::string deck)
    : exec_(exec), world_(world), ledger_(ledger), options_(options),
      progress_(stdout, options.train.log_every), data_(options.data.path),
      config_(model_config(options, &data_)), texts_{describe(config_, data_.text_encoding()),
                                                     std::move(deck), shared_fingerprint(world, data_)},
      folder_(world.mpi(), options.run.folder, [this](auto const& line) { say(line); }),
      mesh_(world, int(options.parallel.replicate)), schedule_(schedule(options)),
      store_(exec, mesh_, layout(options, config_, mesh_.place()), store_options(options)),
      optimizer_(exec, store_, optimizer_options(options.optimizer)),
      model_(config_, int(local_capacity(options, config_, world.size()))),
      batch_(config_, model_.capacity()),
      validation_(data_, validation_samples(options), options.train.batch / options.train.accumulate,
                  world.rank(), world.size()),
      start_(trace::now()) {
  position_.seed = options.run.seed;
  // Now, not after hours of training: prompts for which the model has no text encoder are refused.
  if (!options.sample.prompts.empty())
    prompts_ = encode_prompts(config_, data_.text_encoding(), options.sample.prompts);
  resume();
  together_on(0, world_.mpi(), [&] {
    for (auto const& line : lines(data_, summarise(data_))) say(line);
  });
  print_plan();
  folder_.write_deck(position_.step, texts_.deck);
  together_on(0, world_.mpi(), [&] {
    write_file(in_folder("routing.txt"), routing_table(store_.layout(), optimizer_.routes()));
    metrics_ = std::make_unique<Metrics>(in_folder("metrics.jsonl"), position_.step);
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

void Trainer::load_checkpoint(std::string const& path) {
  ArrayFileReader const file(world_.mpi(), path);
  auto const changes = changes_since(file, texts_.deck, texts_.model, texts_.data);
  std::vector<Change> routes;
  std::ranges::copy_if(changes, std::back_inserter(routes), [](auto const& c) {
    return c.what == "optimizer.method" || c.what.starts_with("optimizer.group");
  });
  refuse_another_model(path, changes);
  require_state(store_, optimizer_, file, text(routes));
  refuse_changes(path, changes, options_.run.accept_changes);
  position_ = load(store_, optimizer_, file);
  if (std::ranges::any_of(changes, [](auto const& c) { return c.what == "run.seed"; }))
    position_.seed = options_.run.seed;
  if (position_.step > options_.run.steps)
    throw Error("run.steps: {}, expected at least {}, the steps of {}", options_.run.steps, position_.step,
                path);
  folder_.begin(options_.run.resume, position_.step);
  say(fmt::format("resumes at step {} from {}", position_.step, path));
  for (auto const& change : changes) say(fmt::format("changed: {}", text({change})));
  if (!file.has("data"))
    say(fmt::format("warning: {} does not say which data set it is of; {} is taken for it", path,
                    data_.path()));
}

void Trainer::resume() {
  if (auto const path = folder_.checkpoint(options_.run.resume)) return load_checkpoint(*path);
  folder_.begin(options_.run.resume, 0);
  initialise_weights(exec_, store_, options_.run.seed);
  say(fmt::format("starts at step 0: {} parameters, {} ranks", counts(config_).trainable, world_.size()));
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
  if (dump) {
    dump->add_gradients(store_);
    dump->add_state("before", store_, optimizer_);
  }
  double const optimizer_begin = trace::now();
  step.rate_factor = schedule_.factor(position_.step);
  step.report = optimizer_.step(step.rate_factor);
  if (!std::isfinite(step.loss) && !step.report.skipped)
    throw Error("step {}: the loss is {}, though every gradient is finite", position_.step, step.loss);
  step.optimizer_seconds = trace::now() - optimizer_begin;
  step.seconds = trace::now() - begin;
  double most[] = {double(peak_resident_bytes()), trace::now() - start_};
  world_.max(most);
  step.peak_bytes = most[0];
  auto const limit = options_.run.time_limit;
  step.stop = shared[1] > 0 || (limit > 0 && most[1] > limit);
  if (dump) {
    dump->add_state("after", store_, optimizer_);
    auto const path = in_folder(fmt::format("step-{:08}.h5", position_.step));
    dump->write(world_.mpi(), path, position_, step.loss, step.rate_factor, texts_.model, texts_.deck);
    say(fmt::format("wrote {}", path));
  }
  return step;
}

std::optional<double> Trainer::validation_loss() {
  if (validation_.batches() == 0) return {};
  auto const seed = std::uint64_t(position_.seed) ^ validation_seed_flip;
  double sums[] = {0, 0}; // losses, samples
  for (std::int64_t b = 0; b < validation_.batches(); ++b) {
    auto const& host = validation_.read(b);
    batch_.upload(host);
    batch_.make_noisy(exec_, seed, std::uint64_t(host.first_sample), 0);
    sums[0] += model_.loss(exec_, store_, batch_.input(), batch_.velocity());
    sums[1] += double(host.count);
  }
  world_.sum(sums);
  if (!std::isfinite(sums[0]))
    throw Error("step {}: the validation loss is {}: the model has diverged, or the validation samples are "
                "out of scale",
                position_.step, sums[0]);
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
                         {"peak_bytes", std::int64_t(step.peak_bytes)}});
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
  auto const path = save(store_, optimizer_, position_, texts_, folder_.path(), int(options_.train.keep));
  say(fmt::format("wrote {}", path));
}

std::string Trainer::grid_name() const { return fmt::format("samples-{:08}.png", position_.step); }

void Trainer::draw_grid() {
  auto const& o = options_.sample;
  if (o.prompts.empty()) return;
  auto const samples = draw(exec_, world_, model_, store_, prompts_, {int(o.steps), o.guidance},
                            std::uint64_t(position_.seed));
  auto const path = in_folder(grid_name());
  together_on(0, world_.mpi(), [&] { write_grid(path, config_, samples, 4); });
  say(fmt::format("wrote {}", path));
}

bool Trainer::run() {
  auto const& train = options_.train;
  auto const due = [](std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; };
  auto const grid_due = [&] {
    return due(position_.step, options_.sample.every) && position_.step < options_.run.steps;
  };
  Loader loader(data_, {std::uint64_t(position_.seed), train.batch / train.accumulate, world_.rank(),
                        world_.size(), position_.sample});
  bool stop = false;
  std::int64_t saved = -1;
  // The run may have ended between the checkpoint and its picture.
  if (position_.step > 0 && grid_due() && !folder_.has(grid_name())) draw_grid();
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
                        step.optimizer_seconds, train.batch, step.report.skipped, optimizer_.skipped()});
    stop = step.stop;
    if (due(position_.step, train.checkpoint_every)) {
      checkpoint();
      saved = position_.step;
    }
    if (grid_due()) draw_grid();
  }
  if (saved != position_.step) checkpoint();
  if (world_.size() > 1 && last_traffic_)
    say(compare_traffic(planned_step(options_, store_.layout(), last_traffic_->step), last_traffic_->ledger));
  if (position_.step < options_.run.steps) {
    bool const again = options_.run.resume == "restart" || options_.run.resume == "never";
    say(fmt::format("ends at step {} as asked to; the same command{} goes on from there", position_.step,
                    again ? " with run.resume=auto" : ""));
    return false;
  }
  if (auto const validation = validation_loss()) {
    if (metrics_) metrics_->append(position_.step, {{"val_loss", *validation}});
    say(fmt::format("validation loss {:.5f} after {} steps", *validation, position_.step));
  } else {
    say(fmt::format("{} steps done; {} has no validation samples", position_.step, data_.path()));
  }
  draw_grid();
  return true;
}

} // namespace prowl::dit
