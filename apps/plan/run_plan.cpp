#include <plan/run_plan.hpp>

#include <dit/layout.hpp>
#include <dit/train/setup.hpp>
#include <dit/work.hpp>

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
  memory.process = std::int64_t(hardware.reserved_gib * double(1 << 30));
  if (!hardware.host) memory.transport = memory.checkpoint = 0;
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

void count_optimizer(RunPlan& plan, Layout const& layout) {
  auto const options = dit::optimizer_options(plan.options.optimizer);
  auto const routes = route(layout.parameters(), options);
  MatrixPlan const matrices(layout, options, routes);
  for (auto const& group : matrices.groups())
    if (group.period > 0 || options.system == System::naive)
      plan.buckets += std::int64_t(group.buckets.size());
  std::int64_t const element = options.wire == Wire::bfloat16 ? 2 : 4;
  plan.largest_bucket = matrices.sizes().part * layout.shards() * element;
  auto const period = matrices.period();
  for (std::int64_t t = 0; t < period; ++t)
    for (auto const& o : matrices.step(t))
      if (auto const& p = layout.parameters()[o.parameter]; o.refreshes)
        plan.optimizer_flop += newton_schulz_flop(p.rows(), p.columns()) / double(period);
}

void count_collectives(RunPlan& plan, Layout const& layout) {
  auto const options = dit::optimizer_options(plan.options.optimizer);
  auto const period = MatrixPlan(layout, options, route(layout.parameters(), options)).period();
  auto const store = planned_traffic(layout, dit::store_options(plan.options));
  for (std::int64_t t = 0; t < period; ++t) {
    plan.steps.push_back(dit::planned_step(plan.options, layout, t));
    auto const& ledger = plan.steps.back();
    auto& v = plan.volume;
    double const weight = 1.0 / double(period);
    v.all_gathers += weight * double(ledger.totals(Collective::all_gather, Purpose::optimizer).calls);
    v.all_reduces += weight * double(ledger.totals(Collective::all_reduce, Purpose::optimizer).calls);
    v.optimizer_bytes += weight * ledger.totals(Purpose::optimizer).bytes;
    v.other_bytes += weight * (store.totals(Purpose::forward).bytes + store.totals(Purpose::backward).bytes);
  }
}

} // namespace

std::string text(MeshShape const& mesh) { return fmt::format("{} x {}", mesh.replicas, mesh.shards); }

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
  plan.capacity = setting.hardware.capacity_gib * double(1 << 30) *
                  std::min(1.0, double(setting.hardware.devices * machine.nodes()) / mesh.ranks());
  count_collectives(plan, Layout(list, place, owners.placements));
  Layout const layout(list, busiest(place, owners.loads), owners.placements);
  count_optimizer(plan, layout);
  auto const times = times_of(plan.options, config, machine, &plan);
  plan.time =
      step_time({layout, dit::optimizer_options(plan.options.optimizer), dit::store_options(plan.options)},
                machine, times);
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
