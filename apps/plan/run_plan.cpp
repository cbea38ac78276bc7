#include <plan/run_plan.hpp>

#include <dit/layout.hpp>
#include <dit/train/setup.hpp>
#include <dit/work.hpp>

#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/loader.hpp>
#include <prowl/kernels/newton_schulz.hpp>
#include <prowl/optim/matrix_plan.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace prowl::plan {

namespace {

MeshPlace place_of(MeshShape const& mesh) {
  MeshPlace place;
  place.shards = mesh.shards;
  place.replicas = mesh.replicas;
  return place;
}

/// The rank whose update takes longest: of owners the one with most to do; of shards the first.
MeshPlace busiest(MeshPlace place, std::vector<double> const& loads) {
  if (loads.empty()) return place;
  auto const slot = int(std::ranges::max_element(loads) - loads.begin());
  place.shard = slot % place.shards;
  place.replica = slot / place.shards;
  return place;
}

/// What the program itself takes is in the hardware's description; a device has no part in the transport of messages and in
/// checkpoints.
dit::MemoryPlan memory_on(Hardware const& hardware, dit::MemoryPlan memory) {
  memory.process = std::int64_t(hardware.reserved_gib * gib);
  if (!hardware.host) {
    memory.transport = memory.checkpoint = memory.loader = 0;
    return memory;
  }
  memory.gathered -= memory.untouched;
  memory.process += std::int64_t(9 * mib); // stacks of threads, ends of heaps, HDF5 while it writes
  return memory;
}

std::vector<UnitTime> times_of(dit::TrainOptions const& options, dit::ModelConfig const& config,
                               Machine const& machine, RunPlan* plan) {
  int const ranks = size(machine.mesh(), Axis::world);
  auto const samples = local_range(options.train.batch / options.train.accumulate, 0, ranks).count;
  auto const work = dit::unit_work(config, samples);
  if (plan)
    for (auto const& unit : work)
      plan->model_flop += double(options.train.accumulate) * (unit.forward.flop() + unit.backward.flop());
  return dit::unit_times(work, machine);
}

/// As MatrixPlan::period; the Error names the keys.
std::int64_t period_of(MatrixPlan const& matrices) try {
  return matrices.period();
} catch (Error const& error) {
  throw Error("optimizer.period, optimizer.group: {}", error.what());
}

/// What a refresh does on the layout's rank.
void count_optimizer(RunPlan& plan, Layout const& layout, MatrixPlan const& matrices) {
  auto const options = dit::optimizer_options(plan.options.optimizer);
  for (auto i : matrices.matrices()) plan.muon += layout.parameters()[i].size();
  for (auto const& group : matrices.groups())
    if (group.period > 0 || options.system == System::naive)
      plan.buckets += std::int64_t(group.buckets.size());
  plan.largest_bucket = matrices.sizes().part * layout.shards() * (options.wire == Wire::bfloat16 ? 2 : 4);
  for (auto const& [t, count] : matrices.distinct_steps())
    for (auto const& o : matrices.step(t))
      if (auto const& p = layout.parameters()[o.parameter]; o.refreshes)
        plan.optimizer_flop +=
            newton_schulz_flop(p.rows(), p.columns()) * double(count) / double(period_of(matrices));
}

void count_collectives(RunPlan& plan, Layout const& layout, MatrixPlan const& matrices) {
  auto const period = period_of(matrices);
  plan.steps.resize(std::size_t(period));
  Ledger sum;
  for (std::int64_t t = 0; t < period; ++t) {
    auto const same = matrices.same_step(t);
    auto& step = plan.steps[std::size_t(t)];
    step = same < t ? plan.steps[std::size_t(same)] : dit::planned_step(plan.options, layout, t);
    sum.add(step);
  }
  auto const steps = double(period);
  plan.volume = {double(sum.totals(Collective::all_gather, Purpose::optimizer).calls) / steps,
                 double(sum.totals(Collective::all_reduce, Purpose::optimizer).calls) / steps,
                 double(sum.totals(Collective::broadcast, Purpose::optimizer).calls) / steps,
                 sum.totals(Purpose::optimizer).bytes / steps,
                 (sum.totals(Purpose::forward).bytes + sum.totals(Purpose::backward).bytes) / steps};
}

} // namespace

std::optional<std::int64_t> RunPlan::period() const {
  auto const& o = options.optimizer;
  if (o.method == "adamw" || o.method == "rownorm") return {};
  return o.method == "muon" ? 1 : o.period;
}

std::string text(MeshShape const& mesh) { return fmt::format("{} x {}", mesh.replicas, mesh.shards); }

std::string milliseconds(double seconds) {
  return seconds >= 1 ? fmt::format("{:.0f}", 1e3 * seconds) : fmt::format("{:.4g}", 1e3 * seconds);
}

std::string duration(double seconds) {
  return seconds >= 10 ? fmt::format("{:.1f} s", seconds) : milliseconds(seconds) + " ms";
}

char mark(RunPlan const& plan) { return !plan.fits() ? '!' : plan.fits_well() ? ' ' : '~'; }

RunPlan plan_run(std::string name, dit::TrainOptions options, dit::ModelConfig const& config,
                 MeshShape const& mesh, Setting const& setting) {
  options.parallel.replicate = mesh.replicas;
  RunPlan plan;
  plan.name = std::move(name);
  plan.options = std::move(options);
  plan.mesh = mesh;
  auto const place = place_of(mesh);
  Machine const machine(setting.hardware, place, setting.type);
  auto const list = dit::parameters(config);
  auto const owners = dit::ownership(plan.options, list, place);
  plan.loads = owners.loads;
  plan.imbalance = owners.imbalance;
  plan.owned = std::ranges::count_if(owners.placements, [](auto const& owner) { return owner.has_value(); });
  plan.memory = memory_on(setting.hardware, dit::largest_memory(plan.options, config, place));
  plan.capacity = setting.hardware.capacity_gib * gib *
                  std::min(1.0, double(setting.hardware.devices * machine.nodes()) / mesh.ranks());
  auto const optimizer = dit::optimizer_options(plan.options.optimizer);
  auto const routes = route(list, optimizer);
  Layout const first(list, place, owners.placements),
      layout(list, busiest(place, owners.loads), owners.placements);
  count_collectives(plan, first, MatrixPlan(first, optimizer, routes));
  count_optimizer(plan, layout, MatrixPlan(layout, optimizer, routes));
  auto const times = times_of(plan.options, config, machine, &plan);
  plan.time = step_time({layout, optimizer, dit::store_options(plan.options)}, machine, times);
  return plan;
}

Timeline timeline(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting,
                  std::int64_t t) {
  auto const place = place_of(plan.mesh);
  Machine const machine(setting.hardware, place, setting.type);
  auto const list = dit::parameters(config);
  Layout const layout(list, busiest(place, plan.loads), dit::ownership(plan.options, list, place).placements);
  auto const program =
      step_program({layout, dit::optimizer_options(plan.options.optimizer), dit::store_options(plan.options)},
                   machine, times_of(plan.options, config, machine, nullptr), t);
  return simulate(program, setting.hardware.overlap_slowdown);
}

} // namespace prowl::plan
