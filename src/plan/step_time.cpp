#include <prowl/plan/step_time.hpp>

#include <prowl/core/error.hpp>
#include <prowl/optim/matrix_plan.hpp>
#include <prowl/optim/split_direction.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace prowl {

namespace {

constexpr double float_bytes = sizeof(float);

/// Adds the operations of one rank to a program.
class Writer {
public:
  Writer(RankPlan const& plan, Machine const& machine)
      : layout_(plan.layout), options_(plan.optimizer), store_(plan.store), machine_(machine),
        routes_(route(plan.layout.parameters(), plan.optimizer)),
        matrices_(plan.layout, plan.optimizer, routes_) {
    auto const memory = optimizer_memory(layout_, options_);
    working_set_ = float_bytes * double(layout_.weights_size() + layout_.gradients_size()) +
                   double(memory.momenta + memory.moments);
  }

  MatrixPlan const& matrices() const { return matrices_; }
  Program take() { return std::move(program_); }

  void optimizer_step(std::int64_t t) {
    gradient_norm();
    for (auto const& operation : matrices_.step(t)) matrix_operation(operation);
  }

  void step(std::int64_t t, std::vector<UnitTime> const& units) {
    auto const operations = plan_store_step(layout_, store_);
    if (store_.asynchronous)
      for (auto const& o : operations)
        if (o.kind == StoreOperation::Kind::publish) launch(publications_, o);
    for (auto const& operation : operations) store_operation(operation, t, units);
  }

private:
  using Collectives = std::map<std::size_t, std::vector<std::size_t>>; // by unit

  /// Kernels over `elements` that pass through `bytes` of each.
  void pass(char const* name, double elements, double bytes, double kernels = 1) {
    if (elements > 0) program_.compute(name, machine_.stream(elements * bytes, working_set_, kernels));
  }

  std::size_t collective(Collective kind, Purpose purpose, Axis axis, std::int64_t bytes) {
    return program_.start(std::string(prowl::name(purpose)) + ' ' + prowl::name(kind), purpose,
                          machine_.channel(axis), machine_.collective(kind, axis, bytes));
  }

  void gradient_norm() {
    for (std::size_t i = 0; i < routes_.size(); ++i) pass("gradient norm", double(layout_.size(i)), 4);
    program_.wait(collective(Collective::all_reduce, Purpose::other, Axis::world,
                             std::int64_t(routes_.size() * sizeof(double))));
  }

  /// The bytes that kernels pass through, an element: a momentum reads G and M and writes M; a copy reads and writes; sums of
  /// squares read; RowNorm reads, reads again and writes; an update reads D and W and writes W; AdamW reads G, M, V and W and
  /// writes the last three.
  void matrix_operation(MatrixOperation const& o) {
    using Kind = MatrixOperation::Kind;
    auto const here = double(layout_.size(o.parameter));
    switch (o.kind) {
    case Kind::momentum:
      pass("momentum", here, 12);
      break;
    case Kind::sum_columns:
      pass("RowNorm", here, nesterov(o.parameter) ? 16 : 4);
      break;
    case Kind::reduce_columns:
      columns_ = collective(Collective::all_reduce, Purpose::optimizer, Axis::shard,
                            o.elements * std::int64_t(sizeof(float)));
      break;
    case Kind::gather:
      gather(o);
      break;
    case Kind::meanwhile:
      for (std::size_t i = 0; i < routes_.size(); ++i)
        if (routes_[i].rule != Rule::muon) pass("AdamW", double(layout_.size(i)), 28);
      break;
    case Kind::normalise_rows:
    case Kind::normalise_columns:
      pass("RowNorm", here, o.kind == Kind::normalise_rows ? 20 : 16, 2);
      pass("update", here, 12);
      break;
    case Kind::await_columns:
      program_.wait(columns_);
      break;
    case Kind::await_gather:
      program_.wait(slots_[o.slot]);
      break;
    case Kind::update_gathered:
      pass("join shards", double(layout_.parameters()[o.parameter].size()), wire_bytes() + 4);
      whole_matrix(o);
      break;
    case Kind::update_owned:
      pass("copy", double(layout_.parameters()[o.parameter].size()), 8);
      whole_matrix(o);
      break;
    }
  }

  bool nesterov(std::size_t parameter) const { return routes_[parameter].muon.nesterov; }
  int wire_bytes() const { return options_.wire == Wire::bfloat16 ? 2 : 4; }

  void gather(MatrixOperation const& o) {
    for (auto const& entry : o.bucket->entries)
      pass("pack bucket", double(layout_.size(entry.parameter)),
           4 + wire_bytes() + (nesterov(entry.parameter) ? 8 : 0));
    slots_[o.slot] = collective(Collective::all_gather, Purpose::optimizer, Axis::shard,
                                o.bucket->part * layout_.shards() * wire_bytes());
  }

  void whole_matrix(MatrixOperation const& o) {
    auto const& p = layout_.parameters()[o.parameter];
    if (p.split)
      for (auto const& c : split_collectives(p, layout_.place().tensors, o.refreshes))
        program_.wait(
            collective(c.kind, Purpose::optimizer, Axis::tensor, c.elements * std::int64_t(sizeof(float))));
    if (o.refreshes)
      program_.compute("NS5", machine_.newton_schulz(p.rows(), p.columns()));
    else
      pass("RowNorm", double(p.size()), 12);
    pass("update", double(layout_.size(o.parameter)), 12);
  }

  void launch(Collectives& collectives, StoreOperation const& o) {
    for (auto const& t : o.transfers)
      collectives[o.unit].push_back(collective(t.kind, t.purpose, t.axis, t.bytes));
  }
  void wait(Collectives& collectives, std::size_t unit) {
    for (auto c : collectives[unit]) program_.wait(c);
    collectives[unit].clear();
  }

  void store_operation(StoreOperation const& o, std::int64_t t, std::vector<UnitTime> const& units) {
    using Kind = StoreOperation::Kind;
    bool const one = o.unit != UnitSlots::none;
    auto const* const unit = one ? &layout_.units()[o.unit] : nullptr;
    auto const shards = unit ? double(unit->shards.size) : 0;
    bool const gathers = layout_.shards() > 1;
    switch (o.kind) {
    case Kind::fetch:
      wait(publications_, o.unit);
      launch(fetches_, o);
      break;
    case Kind::await_weights:
      wait(fetches_, o.unit);
      pass("join shards", double(unit->size - unit->owned), 8);
      break;
    case Kind::forward:
      wait(publications_, o.unit);
      program_.compute("forward", units[o.unit].forward);
      break;
    case Kind::backward:
      program_.compute("backward", units[o.unit].backward);
      break;
    case Kind::reduce:
      if (gathers) pass("pack gradients", double(unit->size), 8);
      launch(reductions_, o);
      break;
    case Kind::await_gradients:
      wait(reductions_, o.unit);
      pass("keep gradients", shards, 8);
      break;
    case Kind::hand_over:
      launch(hand_overs_, o);
      break;
    case Kind::await_replicas:
      wait(hand_overs_, o.unit);
      break;
    case Kind::reduce_shards:
      launch(reductions_, o);
      wait(reductions_, o.unit);
      break;
    case Kind::optimizer:
      program_.wait(
          collective(Collective::all_reduce, Purpose::other, Axis::world, 2 * sizeof(double))); // the loss
      optimizer_step(t);
      break;
    case Kind::publish:
      if (!store_.asynchronous) launch(publications_, o);
      break;
    case Kind::await_published:
      if (!store_.asynchronous) wait(publications_, o.unit);
      break;
    }
  }

  Layout const& layout_;
  OptimizerOptions const& options_;
  StoreOptions const& store_;
  Machine const& machine_;
  std::vector<Route> routes_;
  MatrixPlan matrices_;
  double working_set_;
  Program program_;
  std::size_t columns_ = 0, slots_[2] = {};
  Collectives fetches_, reductions_, hand_overs_, publications_;
};

/// The steps of a period that are alike: one of them, and how many there are.
std::map<std::int64_t, std::int64_t> distinct_steps(MatrixPlan const& plan,
                                                    std::vector<Route> const& routes) {
  std::map<std::vector<bool>, std::int64_t> first;
  std::map<std::int64_t, std::int64_t> counts;
  std::vector<std::int64_t> periods;
  for (auto i : plan.matrices()) periods.push_back(routes[i].muon.period);
  std::ranges::sort(periods);
  periods.erase(std::ranges::unique(periods).begin(), periods.end());
  for (std::int64_t t = 0; t < plan.period(); ++t) {
    std::vector<bool> refreshed;
    for (auto period : periods) refreshed.push_back(t % period == 0);
    ++counts[first.try_emplace(refreshed, t).first->second];
  }
  return counts;
}

} // namespace

Program optimizer_program(RankPlan const& plan, Machine const& machine, std::int64_t t) {
  Writer writer(plan, machine);
  writer.optimizer_step(t);
  return writer.take();
}

Program step_program(RankPlan const& plan, Machine const& machine, std::vector<UnitTime> const& units,
                     std::int64_t t) {
  if (units.size() != plan.layout.units().size())
    throw Error("times of {} units, expected {}", units.size(), plan.layout.units().size());
  Writer writer(plan, machine);
  writer.step(t, units);
  return writer.take();
}

double StepTime::exposed_seconds() const { return std::accumulate(exposed.begin(), exposed.end(), 0.0); }

StepTime step_time(RankPlan const& plan, Machine const& machine, std::vector<UnitTime> const& units) {
  auto const routes = route(plan.layout.parameters(), plan.optimizer);
  MatrixPlan const matrices(plan.layout, plan.optimizer, routes);
  auto const period = double(matrices.period()), slowdown = machine.hardware().overlap_slowdown;
  StepTime mean;
  for (auto const& unit : units) mean.computing_seconds += unit.forward + unit.backward;
  mean.computing_seconds *= plan.store.micro_batches;
  std::map<std::string, double> path;
  for (auto const& [t, count] : distinct_steps(matrices, routes)) {
    auto const timeline = simulate(step_program(plan, machine, units, t), slowdown);
    auto const optimizer = simulate(optimizer_program(plan, machine, t), slowdown).seconds;
    double const weight = double(count) / period;
    mean.seconds += weight * timeline.seconds;
    mean.optimizer_seconds += weight * optimizer;
    if (t == 0)
      mean.refresh_seconds = optimizer;
    else
      mean.other_seconds += optimizer * double(count) / (period - 1);
    for (std::size_t p = 0; p < mean.exposed.size(); ++p) {
      mean.communication[p] += weight * timeline.communication[p];
      mean.exposed[p] += weight * timeline.exposed[p];
    }
    for (auto const& [name, seconds] : timeline.critical_path) path[name] += weight * seconds;
  }
  mean.critical_path.assign(path.begin(), path.end());
  std::ranges::stable_sort(mean.critical_path, std::greater{}, [](auto const& part) { return part.second; });
  return mean;
}

double optimizer_seconds(RankPlan const& plan, Machine const& machine) {
  auto const routes = route(plan.layout.parameters(), plan.optimizer);
  MatrixPlan const matrices(plan.layout, plan.optimizer, routes);
  double mean = 0;
  for (auto const& [t, count] : distinct_steps(matrices, routes))
    mean += double(count) / double(matrices.period()) *
            simulate(optimizer_program(plan, machine, t), machine.hardware().overlap_slowdown).seconds;
  return mean;
}

} // namespace prowl
