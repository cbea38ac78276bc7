#include <plan/methods.hpp>

#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace prowl::plan {

namespace {

constexpr auto optimizer = std::size_t(Purpose::optimizer);
constexpr double as_fast = 1.02; ///< of plans that are as fast as the fastest, the smallest is the best

/// The deck's options but for these.
dit::TrainOptions with(dit::TrainOptions options, std::string const& method, std::string const& system,
                       std::string const& placement, std::string const& residency) {
  options.optimizer.method = method;
  options.optimizer.system = system;
  options.parallel.placement = placement;
  options.parallel.residency = residency;
  return options;
}

/// Meshes of powers of two of replicas.
std::vector<MeshShape> meshes(int ranks) {
  std::vector<MeshShape> list;
  for (int replicas = 1; replicas <= ranks && ranks % replicas == 0; replicas *= 2)
    list.push_back({replicas, ranks / replicas});
  return list;
}

std::string divisors(int ranks) {
  std::vector<std::string> list;
  for (int g = 1; g <= ranks; ++g)
    if (ranks % g == 0) list.push_back(fmt::format("{}x{}", g, ranks / g));
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string describe(RunPlan const& plan) {
  auto const& p = plan.options.parallel;
  return fmt::format("{}{} on {}", p.placement, plan.mesh.shards > 1 ? ", " + p.residency : "",
                     text(plan.mesh));
}

/// "the optimizer (8 ms instead of 459 ms)", of the part that most of the saving is in; the two largest where none is.
std::string saved_in(RunPlan const& best, RunPlan const& plain) {
  auto const model =
      [](RunPlan const& p) { // what it takes beside communication, with what that slows it down
        return p.time.seconds - p.time.optimizer_seconds -
               (p.time.exposed_seconds() - p.time.exposed[optimizer]);
      };
  struct Part {
    char const* name;
    double from, to;
    double saved() const { return from - to; }
  };
  std::vector<Part> parts = {
      {"the optimizer", plain.time.optimizer_seconds, best.time.optimizer_seconds},
      {"waiting for weights and gradients", plain.time.exposed_seconds() - plain.time.exposed[optimizer],
       best.time.exposed_seconds() - best.time.exposed[optimizer]},
      {"the model, with copies of weights and what communication slows down", model(plain), model(best)}};
  std::ranges::sort(parts, std::greater{}, &Part::saved);
  auto const described = [](Part const& p) {
    return fmt::format("{} ({} instead of {})", p.name, duration(p.to), duration(p.from));
  };
  bool const one = parts[0].saved() > 0.5 * (plain.time.seconds - best.time.seconds);
  return one ? "most of it in " + described(parts[0])
             : "in " + described(parts[0]) + " and in " + described(parts[1]);
}

/// What the winner saves against a plain run: sharded on a flat mesh. `fitting` ways of `tried` fit.
std::string reason_for(RunPlan const& best, RunPlan const& plain, std::size_t fitting, std::size_t tried) {
  auto const sentence = fmt::format("{}: of {} placements and meshes {} fit, and of those within 2% of the "
                                    "fastest it needs least memory, {:.1f} of {:.1f} "
                                    "GiB a rank; {} a step",
                                    describe(best), tried, fitting, double(best.memory.total()) / gib,
                                    best.capacity / gib, duration(best.time.seconds));
  if (describe(best) == describe(plain)) return sentence + '.';
  double const saved = 1 - best.time.seconds / plain.time.seconds;
  if (saved < 0.005) return sentence + fmt::format("; {} takes as long.", describe(plain));
  return sentence + fmt::format("; against {} ({}) it saves {:.0f}%, {}.", describe(plain),
                                duration(plain.time.seconds), 100 * saved, saved_in(best, plain));
}

} // namespace

MeshShape parse_mesh(std::string const& text, int ranks) {
  MeshShape mesh;
  auto const* const end = text.data() + text.size();
  auto const first = std::from_chars(text.data(), end, mesh.replicas);
  bool valid = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
  if (valid) {
    auto const second = std::from_chars(first.ptr + 1, end, mesh.shards);
    valid = second.ec == std::errc() && second.ptr == end && mesh.replicas > 0 && mesh.shards > 0;
  }
  if (!valid) throw Error("--mesh {}: expected REPLICASxSHARDS, e.g. 32x8", text);
  if (std::int64_t(mesh.replicas) * mesh.shards != ranks)
    throw Error("--mesh {}: {} ranks, expected {}: {}", text, std::int64_t(mesh.replicas) * mesh.shards,
                ranks, divisors(ranks));
  return mesh;
}

MeshShape hybrid_mesh(int ranks, int devices) {
  if (ranks > devices && ranks % devices == 0) return {ranks / devices, devices};
  if (ranks % 2 == 0) return {2, ranks / 2};
  return {1, ranks};
}

Method of_deck(dit::TrainOptions const& deck, MeshShape const& mesh) {
  return {"deck: " + deck.optimizer.method, deck, mesh};
}

std::vector<Method> all_methods(dit::TrainOptions const& deck, int ranks, MeshShape const& hybrid) {
  MeshShape const flat{1, ranks};
  std::vector<Method> methods = {{"AdamW", with(deck, "adamw", "overlap", "sharded", "z3"), flat}};
  for (std::string const method : {"muon", "periodic"}) {
    std::string const name = method == "muon" ? "Muon" : "Periodic";
    for (std::string const system : {"naive", "sharded_rownorm", "buckets", "overlap"})
      methods.push_back({name + " " + system, with(deck, method, system, "sharded", "z3"), flat});
    for (std::string const residency : {"z3", "z2"})
      methods.push_back(
          {name + " dedicated " + residency, with(deck, method, "overlap", "dedicated", residency), flat});
    if (hybrid.replicas > 1)
      methods.push_back(
          {name + " dedicated hybrid", with(deck, method, "overlap", "dedicated", "z3"), hybrid});
  }
  return methods;
}

std::vector<Method> practical_methods(dit::TrainOptions const& deck, int ranks, MeshShape const& hybrid) {
  auto methods = all_methods(deck, ranks, hybrid);
  std::erase_if(methods, [](Method const& m) {
    return m.name.ends_with("naive") || m.name.ends_with("rownorm") || m.name.ends_with("buckets");
  });
  return methods;
}

Recommendation recommend(dit::TrainOptions const& deck, dit::ModelConfig const& config, int ranks,
                         Setting const& setting) {
  std::optional<RunPlan> plain;
  std::vector<RunPlan> fitting;
  std::size_t tried = 0;
  bool const owns = deck.optimizer.method != "adamw";
  auto const consider = [&](MeshShape const& mesh, std::string const& placement,
                            std::string const& residency) {
    auto plan = plan_run("", with(deck, deck.optimizer.method, "overlap", placement, residency), config, mesh,
                         setting);
    ++tried;
    if (!plain) plain = plan;
    if (plan.fits()) fitting.push_back(std::move(plan));
  };
  for (auto const& mesh : meshes(ranks))
    for (std::string const placement : {"sharded", "dedicated"})
      for (std::string const residency : {"z3", "z2"})
        if (owns || placement == "sharded") consider(mesh, placement, residency);
  if (fitting.empty()) {
    auto const other = what_would_fit(*plain, config, setting);
    throw Error(
        "no placement and mesh of {} ranks fits: sharded on {} needs {:.1f} GiB a rank, {} has {:.1f}{}",
        ranks, text(plain->mesh), double(plain->memory.total()) / gib, setting.hardware.name,
        plain->capacity / gib, other.empty() ? "" : "; what would fit: " + other);
  }
  auto const count = fitting.size();
  if (std::ranges::any_of(fitting, &RunPlan::fits_well))
    std::erase_if(fitting, [](auto const& plan) { return !plan.fits_well(); });
  auto const fastest =
      std::ranges::min(fitting, {}, [](auto const& plan) { return plan.time.seconds; }).time.seconds;
  std::erase_if(fitting, [&](auto const& plan) { return plan.time.seconds > as_fast * fastest; });
  auto const best = std::ranges::min(fitting, {}, [](auto const& plan) { return plan.memory.total(); });
  return {best, reason_for(best, *plain, count, tried)};
}

std::string settings(RunPlan const& plan) {
  auto const& p = plan.options.parallel;
  return fmt::format("parallel.placement={} parallel.residency={} parallel.replicate={} optimizer.system={}",
                     p.placement, p.residency, plan.mesh.replicas, plan.options.optimizer.system);
}

std::string what_would_fit(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting) {
  std::vector<std::string> ways;
  auto const fits = [&](dit::TrainOptions const& options, MeshShape const& mesh) {
    try {
      return plan_run("", options, config, mesh, setting).fits();
    } catch (Error const&) { // no room for that mesh
      return false;
    }
  };
  auto const ranks = plan.mesh.ranks();
  MeshShape const flat{1, ranks};
  auto const with_change = [&](std::string const& change, auto const& apply, MeshShape const& mesh) {
    auto options = plan.options;
    apply(options);
    if (fits(options, mesh)) ways.push_back(change);
  };
  auto const& p = plan.options.parallel;
  if (plan.mesh.replicas > 1)
    with_change(
        fmt::format("--mesh 1x{}", ranks), [](auto&) {}, flat);
  if (p.residency == "z2")
    with_change(
        "parallel.residency=z3", [](auto& o) { o.parallel.residency = "z3"; }, plan.mesh);
  if (p.prefetch > 1)
    with_change(
        "parallel.prefetch=1", [](auto& o) { o.parallel.prefetch = 1; }, plan.mesh);
  if (p.placement == "dedicated" && p.owners != "balanced")
    with_change(
        "parallel.owners=balanced", [](auto& o) { o.parallel.owners = "balanced"; }, plan.mesh);
  auto const other = p.placement == "sharded" ? "dedicated" : "sharded";
  with_change(
      fmt::format("parallel.placement={}", other), [&](auto& o) { o.parallel.placement = other; }, plan.mesh);
  auto smallest = plan.options; // what needs least memory but for its micro-batches
  smallest.parallel.residency = "z3";
  smallest.parallel.prefetch = std::min<std::int64_t>(p.prefetch, 1);
  smallest.parallel.owners = "balanced";
  for (bool const small : {false, true}) {
    if (small && !ways.empty()) break; // several changes at once only where none alone helps
    auto options = small ? smallest : plan.options;
    auto const batch = options.train.batch;
    for (auto a = 2 * options.train.accumulate; a <= batch; a *= 2) {
      options.train.accumulate = a;
      if (batch % a != 0 || !fits(options, small ? flat : plan.mesh)) continue;
      ways.push_back(fmt::format("{}train.accumulate={}",
                                 small ? fmt::format("--mesh 1x{} parallel.residency=z3 parallel.prefetch={} "
                                                     "parallel.owners=balanced ",
                                                     ranks, options.parallel.prefetch)
                                       : "",
                                 a));
      break;
    }
  }
  for (int more = 2; more * ranks <= most_ranks; more *= 2) {
    MeshShape const mesh{plan.mesh.replicas, plan.mesh.shards * more};
    if (!fits(plan.options, mesh)) continue;
    ways.push_back(fmt::format("{} ranks ({})", mesh.ranks(), text(mesh)));
    break;
  }
  return fmt::format("{}", fmt::join(ways, ", or "));
}

} // namespace prowl::plan
