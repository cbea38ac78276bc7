#include <bench/optimizer.hpp>

#include <bench/measure.hpp>
#include <bench/shapes.hpp>
#include <bench/timeline.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/kernels/fill.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/ownership.hpp>
#include <prowl/plan/step_time.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace prowl::bench {

namespace {

struct SystemName {
  char const* name;
  System system;
};
constexpr SystemName system_names[] = {{"naive", System::naive},
                                       {"sharded_rownorm", System::sharded_row_norm},
                                       {"buckets", System::buckets},
                                       {"overlap", System::overlap}};

struct Method {
  std::string name;
  Store& store;
  OptimizerOptions options;
  std::unique_ptr<Optimizer> optimizer;
  double predicted = 0;          ///< seconds a step; 0: nothing to predict from
  std::vector<double> times;     ///< seconds a step, the slowest rank's, averaged over each round
  double refresh = 0, other = 0; ///< seconds in all first and in all other steps of the rounds
  Ledger::Totals gathers, reductions;
};

OptimizerOptions base_options(OptimizerBench const& bench) {
  OptimizerOptions options;
  if (bench.wire != "fp32" && bench.wire != "bf16")
    throw Error("--wire {}: expected fp32 or bf16", bench.wire);
  options.wire = bench.wire == "bf16" ? Wire::bfloat16 : Wire::float32;
  options.bucket_bytes = std::int64_t(bench.bucket_mib * mib);
  options.muon.period = bench.period;
  return options;
}

std::vector<SystemName> chosen_systems(std::string const& text) {
  if (text == "all") return {std::begin(system_names), std::end(system_names)};
  std::vector<SystemName> chosen;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find(',', begin), text.size());
    auto const name = text.substr(begin, end - begin);
    auto const found = std::ranges::find(system_names, name, &SystemName::name);
    if (found == std::end(system_names))
      throw Error("--systems {}: '{}', expected all or a list of naive, sharded_rownorm, buckets and overlap",
                  text, name);
    chosen.push_back(*found);
    begin = end + 1;
  }
  return chosen;
}

std::vector<Method> make_methods(OptimizerBench const& bench, Execution const& exec, Store& store,
                                 Store& owned) {
  std::vector<Method> methods;
  auto const add = [&](std::string name, Store& on, OptimizerOptions const& options) {
    methods.push_back(
        {std::move(name), on, options, std::make_unique<Optimizer>(exec, on, options), 0, {}, 0, 0, {}, {}});
  };
  auto adamw = base_options(bench), muon = base_options(bench);
  adamw.adamw_only = true;
  muon.muon.period = 1;
  add("AdamW", store, adamw);
  add("Muon", store, muon);
  for (auto const& [name, system] : chosen_systems(bench.systems)) {
    auto options = base_options(bench);
    options.system = system;
    add(fmt::format("Periodic {}", name), store, options);
  }
  add("Muon, dedicated", owned, muon);
  add("Periodic, dedicated", owned, base_options(bench));
  return methods;
}

/// The times that a planner would give. Collective.
void predict(std::string const& hardware, Communicator const& world, std::vector<Method>& methods) {
  auto const description = read_hardware(hardware);
  for (auto& method : methods) {
    auto const& layout = method.store.layout();
    Machine const machine(description, layout.place());
    double const own = optimizer_seconds({layout, method.options, method.store.options()}, machine);
    // Ranks that share a device and are done leave it to the others.
    method.predicted = std::max(world.max(own) / machine.turns(), world.sum(own) / world.size());
  }
}

/// `period` steps: one round, a whole period of every method.
void run_round(Communicator const& world, Ledger& ledger, std::int64_t period, bool counted, Method& method) {
  double sum = 0;
  for (std::int64_t k = 0; k < period; ++k) {
    ledger.clear();
    world.barrier();
    double const begin = trace::now();
    method.store.gradients_changed(); // the same as before
    method.optimizer->step(1);
    double const time = world.max(trace::now() - begin);
    if (!counted) continue;
    sum += time;
    (k == 0 ? method.refresh : method.other) += time;
    auto const gathers = ledger.totals(Collective::all_gather, Purpose::optimizer);
    auto const reductions = ledger.totals(Collective::all_reduce, Purpose::optimizer);
    method.gathers.calls += gathers.calls;
    method.gathers.bytes += gathers.bytes;
    method.reductions.calls += reductions.calls;
    method.reductions.bytes += reductions.bytes;
  }
  if (counted) method.times.push_back(sum / double(period));
}

/// The median over the rounds of the ratio to Muon in the same round.
double ratio(Method const& method, Method const& muon) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < method.times.size(); ++i) ratios.push_back(method.times[i] / muon.times[i]);
  return median(ratios);
}

nlohmann::json describe(OptimizerBench const& bench, Store const& store, std::vector<Method> const& methods) {
  auto const rounds = double(methods[0].times.size()), steps = rounds * double(bench.period);
  nlohmann::json result = {{"model", bench.model},   {"ranks", store.layout().shards()},
                           {"period", bench.period}, {"bucket_bytes", std::int64_t(bench.bucket_mib * mib)},
                           {"wire", bench.wire},     {"rounds", rounds}};
  for (auto const& p : store.layout().parameters())
    result["parameters"].push_back({{"name", p.name}, {"shape", p.shape}});
  for (auto const& method : methods)
    result["methods"].push_back({{"name", method.name},
                                 {"median_s", median(method.times)},
                                 {"min_s", std::ranges::min(method.times)},
                                 {"predicted_s", method.predicted},
                                 {"ratio_to_muon", ratio(method, methods[1])},
                                 {"first_step_of_a_period_s", method.refresh / rounds},
                                 {"other_steps_s", bench.period > 1 ? method.other / (steps - rounds) : 0.0},
                                 {"all_gathers_a_period", double(method.gathers.calls) / rounds},
                                 {"all_gather_bytes_a_period", method.gathers.bytes / rounds},
                                 {"all_reduces_a_period", double(method.reductions.calls) / rounds},
                                 {"all_reduce_bytes_a_period", method.reductions.bytes / rounds},
                                 {"times_s", method.times}});
  return result;
}

void print_table(nlohmann::json const& result) {
  double const period = result["period"];
  fmt::print("{}: {} ranks, K = {}, buckets of {:.2f} MiB, {} on the wire, {} rounds of {} steps\n"
             "Milliseconds a step of the slowest rank, averaged over periods; collectives of the optimizer a "
             "step and rank\n\n"
             "{:<26}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>11}\n",
             result["model"].get<std::string>(), result["ranks"].get<int>(), period,
             result["bucket_bytes"].get<double>() / mib, result["wire"].get<std::string>(),
             result["rounds"].get<double>(), period, "", "median", "min", "/ Muon", "refresh", "others",
             "gathers", "sums", "MiB", "predicted");
  for (auto const& m : result["methods"]) {
    auto const number = [&](char const* key) { return m[key].get<double>(); };
    fmt::print("{:<26}{:>9.2f}{:>9.2f}{:>8.1f}%{:>9.2f}{:>9.2f}{:>9.2f}{:>9.2f}{:>10.3f}{:>11}\n",
               m["name"].get<std::string>(), 1e3 * number("median_s"), 1e3 * number("min_s"),
               100 * number("ratio_to_muon"), 1e3 * number("first_step_of_a_period_s"),
               1e3 * number("other_steps_s"), number("all_gathers_a_period") / period,
               number("all_reduces_a_period") / period,
               (number("all_gather_bytes_a_period") + number("all_reduce_bytes_a_period")) / period / mib,
               number("predicted_s") > 0 ? fmt::format("{:.2f}", 1e3 * number("predicted_s")) : "-");
  }
}

/// One period of the full system, recorded.
void record_timeline(OptimizerBench const& bench, Execution const& exec, Communicator const& world,
                     Store& store) {
  Optimizer optimizer(exec, store, base_options(bench));
  auto const period = [&] {
    for (std::int64_t k = 0; k < bench.period; ++k) {
      store.gradients_changed();
      optimizer.step(1);
    }
  };
  period(); // the first touch of its memory
  world.barrier();
  trace::enable(true);
  period();
  trace::enable(false);
  auto const overlap = measure_overlap(world);
  write_trace(world, bench.trace);
  if (world.rank() != 0) return;
  fmt::print("\n{}: one period of the full system (chrome://tracing or ui.perfetto.dev)\n"
             "  {} gathers on {} ranks under way for {:.2f} ms, {:.1f}% of it while the rank was inside NS5 "
             "({:.2f} ms in all)\n"
             "  {} gathers were complete before the NS5 above them ended{}\n",
             bench.trace, overlap.gathers, world.size(), 1e3 * overlap.gather,
             overlap.gather > 0 ? 100 * overlap.under_ns5 / overlap.gather : 0.0, 1e3 * overlap.ns5,
             overlap.ended_under_ns5,
             overlap.gathers <= world.size() ? "; a single bucket has nothing to hide under, see --bucket-mib"
                                             : "; the first of a step has none above it");
}

} // namespace

void run_optimizer(OptimizerBench const& bench) {
  Execution const exec;
  Ledger ledger;
  Communicator const world(MPI_COMM_WORLD, &ledger);
  Mesh const mesh(world);
  Store store(exec, mesh, parse_shapes(bench.model), {.prefetch = 0});
  Store owned(exec, mesh, dedicated_layout(parse_shapes(bench.model), base_options(bench), mesh.place()),
              {.prefetch = 0});
  for (auto* s : {&store, &owned}) {
    auto const first = std::uint64_t(world.rank()) << 40;
    fill_normal(exec, Random(1, 0), first, 0.02f, s->weights());
    fill_normal(exec, Random(1, 1), first, 1e-3f, s->gradients());
    s->weights_changed();
  }

  auto methods = make_methods(bench, exec, store, owned);
  if (!bench.hardware.empty()) predict(bench.hardware, world, methods);
  auto const rounds = (bench.steps + bench.period - 1) / bench.period;
  for (std::int64_t round = -1; round < rounds; ++round) // the first is for warming up
    for (auto& method : methods) run_round(world, ledger, bench.period, round >= 0, method);

  auto const result = describe(bench, store, methods);
  if (world.rank() == 0) print_table(result);
  together_on(0, world.mpi(), [&] {
    if (!bench.json.empty()) write_file(bench.json, result.dump(2) + '\n');
  });
  methods.clear();
  if (!bench.trace.empty()) record_timeline(bench, exec, world, store);
}

} // namespace prowl::bench
