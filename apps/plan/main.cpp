// prowl-plan DECK --ranks N [key=value ...]: what a run will hold, communicate and take, before it is queued. Runs alone, without
// mpirun, and allocates no model.
#include <plan/output.hpp>
#include <plan/report.hpp>
#include <plan/sweep.hpp>

#include <dit/train/setup.hpp>

#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/io/deck.hpp>
#include <prowl/optim/matrix_plan.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

namespace prowl::plan {

namespace {

struct Arguments {
  std::string deck;
  std::vector<std::string> overrides;
  int ranks = 0;
  std::string mesh, hardware = "h100-nvlink-ib", type = "float32";
  std::string json, csv, plot, trace;
  std::string sweep, periods, buckets, wires, placements;
  std::int64_t per_rank = 0;
};

void declare(CLI::App& app, Arguments& a) {
  CLI::Validator const given([](std::string& text) { return text.empty() ? "empty, expected a value" : ""; },
                             "TEXT");
  app.add_option("deck", a.deck, "input deck (TOML) of prowl-train")->required();
  app.add_option("overrides", a.overrides, "key=value, over the deck's values");
  app.add_option("--ranks", a.ranks, "ranks, one a device")->check(CLI::Range(1, most_ranks));
  auto const text = [&](char const* name, std::string& value, char const* meaning) {
    app.add_option(name, value, meaning)->check(given);
  };
  text("--mesh", a.mesh, "replicas x shards, e.g. 32x8; parallel.replicate otherwise");
  text("--hardware", a.hardware,
       "description of the cluster: a file, as prowl-bench calibrate writes, or the name of one that comes "
       "with Prowl (h100-nvlink-ib)");
  app.add_option(
         "--type", a.type,
         "operands of matrix products: float32 (fp32), as Prowl computes them, or, what if, bfloat16 (bf16)")
      ->check(CLI::IsMember({"float32", "fp32", "bfloat16", "bf16"}));
  text("--sweep", a.sweep, "ranks=8..4096 by doubling, or a list: each method at each number of ranks");
  app.add_option("--per-rank", a.per_rank, "images of a rank and micro-batch: the batch grows with the ranks")
      ->check(CLI::Range(1, 1 << 30));
  text("--k", a.periods, "periods K to try: 1..8 or a list");
  text("--bucket", a.buckets, "caps on buckets to try, MiB: 32..512 by doubling, or a list");
  text("--wire", a.wires, "types of gathered momentum to try: fp32, bf16, or both as fp32,bf16");
  text("--placement", a.placements, "placements to try: sharded, dedicated, or both");
  text("--json", a.json, "file for everything");
  text("--csv", a.csv, "file for a table of the ways to run");
  text("--plot", a.plot, "picture (PNG, SVG or PDF, by the file's name); needs Python with Matplotlib");
  text("--trace", a.trace, "file for the simulated steps of a period in Chrome's trace format, at most 64");
}

/// Before anything is planned: each file that is written is another, and can be written.
void check_outputs(Arguments const& a) {
  if (!a.plot.empty()) check_picture(a.plot);
  std::set<std::string> seen;
  for (auto const& path : {a.json, a.csv, a.plot, a.trace}) {
    if (path.empty()) continue;
    if (!seen.insert(path).second) throw Error("{}: given for two files, expected names that differ", path);
    AtomicFile const file(path);
  }
}

/// A file, or one that comes with Prowl by its name.
Hardware find_hardware(std::string const& name) {
  if (std::filesystem::exists(name) || name.find_first_of("./") != std::string::npos)
    return read_hardware(name);
  return read_hardware(data_file("hardware") + "/" + name + ".toml");
}

/// The data set's sizes, or a hint how to do without.
Dataset open_data(std::string const& path) {
  try {
    return Dataset(path);
  } catch (Error const& error) {
    throw Error(
        "{}; to plan without it give data.path=\"\" and model.channels, model.size, model.encoder_widths, "
        "model.encoder_tokens (as [512]) and model.pooled_width",
        error.what());
  }
}

std::vector<std::int64_t> swept_ranks(std::string const& text) {
  if (!text.starts_with("ranks=")) throw Error("--sweep {}: expected ranks=8..4096", text);
  auto ranks = parse_numbers("--sweep ranks", text.substr(6), false, most_ranks);
  std::ranges::sort(ranks);
  return ranks;
}

/// The deck's own way to run and either the ways beside it or the combinations that were asked for; or a sweep.
class Planner {
public:
  explicit Planner(Arguments const& arguments) : a_(arguments) {
    check_outputs(a_);
    dit::declare(deck_, options_);
    deck_.read_file(a_.deck);
    for (auto const& assignment : a_.overrides) deck_.set(assignment);
    dit::check(deck_, options_);
    std::optional<Dataset> data;
    if (!options_.data.path.empty()) data.emplace(open_data(options_.data.path));
    config_ = dit::model_config(options_, data ? &*data : nullptr);
    setting_ = {find_hardware(a_.hardware), a_.type == "bf16"   ? "bfloat16"
                                            : a_.type == "fp32" ? "float32"
                                                                : a_.type};
    tries_ = tries();
  }

  int run() {
    if (!a_.sweep.empty()) return sweep();
    if (a_.ranks == 0) throw Error("--ranks: missing, expected the number of ranks, e.g. --ranks 256");
    options_ = with_ranks(options_, a_.ranks, a_.per_rank);
    auto const mesh = own_mesh();
    auto const deck = of_deck(options_, mesh);
    auto const own = plan_run(deck.name, deck.options, config_, mesh, setting_);
    fmt::print("{}\n", describe_deck(own, config_, setting_));
    auto const plans = ways(mesh, own);
    fmt::print("{}\n", comparison(plans));
    if (!tries_.any()) fmt::print("{}", gains(plans));
    if (!a_.trace.empty()) write_timeline(own, config_, setting_, a_.trace);
    // Of what was tried the table tells; what does not fit is refused at the end.
    nlohmann::json recommended;
    if (!tries_.any() && own.fits()) {
      auto const [best, reason] = recommend(options_, config_, a_.ranks, setting_);
      fmt::print("recommended: {}\n  {}\n", reason, settings(best));
      recommended = {{"reason", reason}, {"settings", settings(best)}, {"way", to_json(best)}};
    }
    write(plans, recommended);
    std::fflush(stdout);
    refuse_what_does_not_fit(own);
    return 0;
  }

private:
  MeshShape own_mesh() const {
    if (!a_.mesh.empty()) return parse_mesh(a_.mesh, a_.ranks);
    auto const replicas = options_.parallel.replicate;
    if (a_.ranks % replicas != 0)
      deck_.refuse("parallel.replicate", fmt::format("a divisor of {} ranks", a_.ranks));
    return {int(replicas), a_.ranks / int(replicas)};
  }

  WhatIf tries() const {
    WhatIf values;
    auto const& method = options_.optimizer.method;
    bool const refreshes = method != "adamw" && method != "rownorm";
    auto const require = [&](std::string const& text, char const* option, bool has, char const* expected) {
      if (!text.empty() && !has)
        throw Error("{} {}: optimizer.method = {} has none, expected {}", option, text, method, expected);
    };
    require(a_.periods, "--k", method == "periodic" || method == "scalar", "periodic or scalar");
    require(a_.buckets, "--bucket", refreshes, "a method that gathers momentum");
    require(a_.wires, "--wire", refreshes, "a method that gathers momentum");
    require(a_.placements, "--placement", method != "adamw", "a method with matrices to own");
    if (!a_.periods.empty())
      values.periods = parse_numbers("--k", a_.periods, true, MatrixPlan::longest_period);
    if (!a_.buckets.empty()) values.bucket_mib = parse_numbers("--bucket", a_.buckets, false, 1 << 20);
    if (!a_.wires.empty()) values.wires = parse_choices("--wire", a_.wires, {"fp32", "bf16"});
    if (!a_.placements.empty())
      values.placements = parse_choices("--placement", a_.placements, {"sharded", "dedicated"});
    return values;
  }

  std::vector<RunPlan> ways(MeshShape const& mesh, RunPlan const& own) const {
    std::vector<RunPlan> plans{own};
    if (tries_.any()) {
      auto tried = what_if(options_, config_, mesh, tries_, setting_);
      std::ranges::move(tried, std::back_inserter(plans));
      return plans;
    }
    auto const hybrid = mesh.replicas > 1 ? mesh : hybrid_mesh(a_.ranks, int(setting_.hardware.devices));
    for (auto const& method : all_methods(options_, a_.ranks, hybrid))
      plans.push_back(plan_run(method.name, method.options, config_, method.mesh, setting_));
    return plans;
  }

  int sweep() {
    if (tries_.any() || a_.ranks != 0 || !a_.mesh.empty() || !a_.trace.empty())
      throw Error(
          "--sweep plans the deck's own options on its own meshes: without --ranks, --mesh, --trace, --k, "
          "--bucket, --wire and --placement");
    auto const ranks = swept_ranks(a_.sweep);
    auto const plans = sweep_ranks(options_, config_, ranks, a_.per_rank, setting_);
    fmt::print("{}\n", sweep_table(plans));
    nlohmann::json recommended;
    for (auto const count : ranks) {
      auto const text = recommendation(int(count));
      fmt::print("{} ranks: {}\n", count, text);
      recommended[std::to_string(count)] = text;
    }
    write(plans, recommended);
    return 0;
  }

  std::string recommendation(int ranks) const {
    try {
      auto const [best, reason] =
          recommend(with_ranks(options_, ranks, a_.per_rank), config_, ranks, setting_);
      return reason + " " + settings(best);
    } catch (Error const& nothing_fits) {
      return nothing_fits.what();
    }
  }

  void write(std::vector<RunPlan> const& plans, nlohmann::json const& recommended) const {
    if (!a_.csv.empty()) write_file(a_.csv, csv(plans));
    if (a_.json.empty() && a_.plot.empty()) return;
    auto result = document(plans, config_, setting_, !a_.sweep.empty());
    result["recommended"] = recommended;
    if (!a_.json.empty()) write_file(a_.json, result.dump(1) + '\n');
    if (!a_.plot.empty()) draw(result, a_.plot);
  }

  void refuse_what_does_not_fit(RunPlan const& plan) const {
    if (plan.fits()) return;
    auto const other = what_would_fit(plan, config_, setting_);
    throw Error("{} on {} does not fit: {:.1f} GiB a rank, {} has {:.1f}; {}", plan.name, text(plan.mesh),
                double(plan.memory.total()) / gib, setting_.hardware.name, plan.capacity / gib,
                other.empty() ? "neither more ranks nor micro-batches help" : "what would fit: " + other);
  }

  Arguments const& a_;
  dit::TrainOptions options_;
  Deck deck_;
  dit::ModelConfig config_;
  Setting setting_;
  WhatIf tries_;
};

int run(int argc, char** argv) {
  CLI::App app("Plans a run of prowl-train: memory, communication and time, without running it.",
               "prowl-plan");
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& success) {
    return app.exit(success);
  } catch (CLI::ParseError const& error) {
    throw Error("{} (prowl-plan --help)", error.what());
  }
  return Planner(arguments).run();
}

} // namespace

} // namespace prowl::plan

int main(int argc, char** argv) {
  try {
    return prowl::plan::run(argc, argv);
  } catch (std::exception const& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
