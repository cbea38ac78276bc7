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

  /// Kernels over `elements` that pass through `bytes` of each; over the optimizer's arrays in turn.
  void pass(char const* name, double elements, double bytes, double kernels = 1) {
    if (elements > 0) program_.compute(name, machine_.stream(elements * bytes, working_set_, kernels));
  }
  /// Likewise, over a whole matrix or unit.
  void pass_whole(char const* name, double elements, double bytes, double kernels = 1) {
    if (elements > 0) program_.compute(name, machine_.stream(elements * bytes, elements * bytes, kernels));
  }

  std::size_t collective(Collective kind, Purpose purpose, Axis axis, std::int64_t bytes,
                         std::string of = {}) {
    return program_.start(std::string(prowl::name(purpose)) + ' ' + prowl::name(kind), purpose,
                          machine_.channel(axis), machine_.collective(kind, axis, bytes), std::move(of));
  }

  void gradient_norm() {
    for (std::size_t i = 0; i < routes_.size(); ++i) pass("gradient norm", double(layout_.size(i)), 4);
    program_.wait(collective(Collective::all_reduce, Purpose::other, Axis::world,
                             std::int64_t(routes_.size() * sizeof(double))));
    if (options_.clip > 0) pass("clip", double(layout_.gradients_size()), 8); // as if always
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
      pass_whole("join shards", double(layout_.parameters()[o.parameter].size()), wire_bytes() + 4);
      whole_matrix(o);
      break;
    case Kind::update_owned:
      pass_whole("copy", double(layout_.parameters()[o.parameter].size()), 8);
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
                                o.bucket->part * layout_.shards() * wire_bytes(),
                                layout_.parameters()[o.bucket->entries.front().parameter].name + " ...");
  }

  void whole_matrix(MatrixOperation const& o) {
    auto const& p = layout_.parameters()[o.parameter];
    if (p.split)
      for (auto const& c : split_collectives(p, layout_.place().tensors, o.refreshes))
        program_.wait(
            collective(c.kind, Purpose::optimizer, Axis::tensor, c.elements * std::int64_t(sizeof(float))));
    if (o.refreshes)
      program_.compute("NS5", machine_.newton_schulz(p.rows(), p.columns()), p.name);
    else
      pass_whole("RowNorm", double(p.size()), 12);
    pass("update", double(layout_.size(o.parameter)), 12);
  }

  double sharded_parameters(Layout::Unit const& unit) const {
    double count = 0;
    for (auto i = unit.first; i < unit.last; ++i) count += !layout_.placement(i);
    return count;
  }

  void launch(Collectives& collectives, StoreOperation const& o) {
    for (auto const& t : o.transfers)
      collectives[o.unit].push_back(
          collective(t.kind, t.purpose, t.axis, t.bytes,
                     o.unit == UnitSlots::none ? "all shards" : layout_.units()[o.unit].name));
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
      pass_whole("join shards", double(unit->size - unit->owned), 8, sharded_parameters(*unit));
      break;
    case Kind::forward:
      wait(publications_, o.unit);
      program_.compute("forward", units[o.unit].forward, unit->name);
      break;
    case Kind::backward:
      program_.compute("backward", units[o.unit].backward, unit->name);
      break;
    case Kind::reduce:
      if (gathers) pass_whole("pack gradients", double(unit->size), 8, 1 + sharded_parameters(*unit));
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

/// More micro-batches than these follow each other as the last two do.
constexpr int simulated_micro_batches = 4;

void add(StepTime& sum, double weight, Timeline const& timeline, std::map<std::string, double>& path) {
  sum.seconds += weight * timeline.seconds;
  for (std::size_t p = 0; p < sum.exposed.size(); ++p) {
    sum.communication[p] += weight * timeline.communication[p];
    sum.exposed[p] += weight * timeline.exposed[p];
  }
  for (auto const& [name, seconds] : timeline.critical_path) path[name] += weight * seconds;
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
  MatrixPlan const matrices(plan.layout, plan.optimizer, route(plan.layout.parameters(), plan.optimizer));
  auto const period = double(matrices.period()), slowdown = machine.hardware().overlap_slowdown;
  int const micro_batches = plan.store.micro_batches, extra = micro_batches - simulated_micro_batches;
  auto const run = [&](int count, std::int64_t t) {
    RankPlan part = plan;
    part.store.micro_batches = count;
    return simulate(step_program(part, machine, units, t), slowdown);
  };
  StepTime mean;
  for (auto const& unit : units) mean.computing_seconds += (unit.forward + unit.backward) * micro_batches;
  std::map<std::string, double> path;
  for (auto const& [t, count] : matrices.distinct_steps()) {
    auto const optimizer = simulate(optimizer_program(plan, machine, t), slowdown).seconds;
    double const weight = double(count) / period;
    if (extra <= 0) {
      add(mean, weight, run(micro_batches, t), path);
    } else {
      add(mean, weight * (1 + extra), run(simulated_micro_batches, t), path);
      add(mean, -weight * extra, run(simulated_micro_batches - 1, t), path);
    }
    mean.optimizer_seconds += weight * optimizer;
    if (t == 0)
      mean.refresh_seconds = optimizer;
    else
      mean.other_seconds += optimizer * double(count) / (period - 1);
  }
  std::erase_if(path, [](auto const& part) { return part.second <= 0; });
  mean.critical_path = longest_first(path);
  return mean;
}

double optimizer_seconds(RankPlan const& plan, Machine const& machine) {
  MatrixPlan const matrices(plan.layout, plan.optimizer, route(plan.layout.parameters(), plan.optimizer));
  double mean = 0;
  for (auto const& [t, count] : matrices.distinct_steps())
    mean += double(count) / double(matrices.period()) *
            simulate(optimizer_program(plan, machine, t), machine.hardware().overlap_slowdown).seconds;
  return mean;
}

} // namespace prowl
