// The simulated pipeline against closed forms.
#include "ideal.hpp"

#include <prowl/core/random.hpp>
#include <prowl/optim/matrix_plan.hpp>
#include <prowl/plan/step_time.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace prowl;

namespace {

/// a_l and c_l of a pipeline, seconds.
struct Pipeline {
  std::vector<double> gathers, computations;

  /// arXiv:2608.20818, section 3.3: T = a_1 + sum max(c_l, a_{l+1}) + c_B.
  double overlapped() const {
    double sum = gathers[0] + computations.back();
    for (std::size_t l = 0; l + 1 < gathers.size(); ++l) sum += std::max(computations[l], gathers[l + 1]);
    return sum;
  }
  /// Of that: a_1 + sum max(0, a_{l+1} - c_l).
  double exposed() const {
    double sum = gathers[0];
    for (std::size_t l = 0; l + 1 < gathers.size(); ++l)
      sum += std::max(0.0, gathers[l + 1] - computations[l]);
    return sum;
  }
  double sum() const {
    return std::reduce(gathers.begin(), gathers.end()) +
           std::reduce(computations.begin(), computations.end());
  }
};

/// One bucket ahead, as the optimizer gathers.
Program one_ahead(Pipeline const& p) {
  Program program;
  auto next = program.start("gather", Purpose::optimizer, 0, p.gathers[0]);
  for (std::size_t l = 0; l < p.gathers.size(); ++l) {
    program.wait(next);
    if (l + 1 < p.gathers.size()) next = program.start("gather", Purpose::optimizer, 0, p.gathers[l + 1]);
    program.compute("NS5", p.computations[l]);
  }
  return program;
}

Pipeline random_pipeline(unsigned seed, std::size_t buckets) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> seconds(0.1, 2);
  Pipeline p;
  for (std::size_t l = 0; l < buckets; ++l) {
    p.gathers.push_back(seconds(engine));
    p.computations.push_back(seconds(engine));
  }
  return p;
}

double total(std::vector<std::pair<std::string, double>> const& path) {
  double sum = 0;
  for (auto const& part : path) sum += part.second;
  return sum;
}

constexpr double rounding = 1e-12; // of sums of at most a thousand terms, relative

/// Square, tall and wide matrices, and a vector for AdamW.
std::vector<Parameter> parameters() {
  std::vector<Parameter> list;
  std::int64_t const shapes[][2] = {{64, 64}, {130, 40}, {48, 200}, {3, 77}, {90, 90}, {256, 32}};
  for (int l = 0; l < 4; ++l)
    for (auto const& [rows, columns] : shapes) {
      auto const unit = "blocks." + std::to_string(l);
      list.push_back({unit + ".w" + std::to_string(list.size()), {rows, columns}, unit});
    }
  list.push_back({"out.bias", {64}, "out"});
  return list;
}

} // namespace

TEST(Simulation, one_bucket_ahead_takes_the_time_of_the_closed_form) {
  for (unsigned seed = 0; seed < 50; ++seed)
    for (std::size_t buckets : {1, 2, 3, 17}) {
      auto const p = random_pipeline(seed, buckets);
      auto const timeline = simulate(one_ahead(p), 0);
      EXPECT_NEAR(timeline.seconds, p.overlapped(), rounding * p.sum());
      EXPECT_NEAR(timeline.exposed_seconds(), p.exposed(), rounding * p.sum());
      EXPECT_NEAR(total(timeline.critical_path), timeline.seconds, rounding * p.sum());
    }
}

TEST(Simulation, nothing_is_gained_where_communication_stops_computation) {
  auto const p = random_pipeline(1, 9);
  auto const timeline = simulate(one_ahead(p), 1);
  EXPECT_NEAR(timeline.seconds, p.sum(), rounding * p.sum());
}

// Of c = 3 s beside a gather of 1 s, half a second is lost; then nothing.
TEST(Simulation, computation_slows_down_only_beside_communication) {
  Program program;
  auto const gather = program.start("gather", Purpose::optimizer, 0, 1);
  program.compute("NS5", 3);
  program.wait(gather);
  EXPECT_DOUBLE_EQ(simulate(program, 0.5).seconds, 3.5);
}

TEST(Simulation, collectives_of_one_channel_follow_each_other_and_those_of_two_run_beside_each_other) {
  for (int second : {0, 1}) {
    Program program;
    auto const a = program.start("a", Purpose::forward, 0, 2);
    auto const b = program.start("b", Purpose::backward, second, 3);
    program.wait(a);
    program.wait(b);
    auto const timeline = simulate(program, 0);
    EXPECT_DOUBLE_EQ(timeline.seconds, second == 0 ? 5 : 3);
    EXPECT_DOUBLE_EQ(timeline.exposed[std::size_t(Purpose::forward)], 2);
    EXPECT_DOUBLE_EQ(timeline.exposed[std::size_t(Purpose::backward)], second == 0 ? 3 : 1);
  }
}

// The work while a collective runs is not on the critical path: what started the collective is.
TEST(Simulation, the_critical_path_goes_through_what_was_waited_for) {
  Program program;
  program.compute("before", 1);
  auto const gather = program.start("gather", Purpose::optimizer, 0, 5);
  program.compute("under", 2);
  program.wait(gather);
  program.compute("after", 3);
  auto const timeline = simulate(program, 0);
  EXPECT_EQ(timeline.critical_path,
            (std::vector<std::pair<std::string, double>>{{"gather", 5}, {"after", 3}, {"before", 1}}));
}

// The optimizer's own operations on ideal links: a_l = (p-1)/p b (padded elements) / bandwidth, c_l = flop of NS5 / rate.
TEST(Simulation, a_refresh_on_ideal_links_takes_the_time_of_the_closed_form) {
  auto const list = parameters();
  for (int p : {1, 2, 3, 4, 256})
    for (auto wire : {Wire::float32, Wire::bfloat16}) {
      OptimizerOptions options;
      options.wire = wire;
      options.bucket_bytes = 100000;
      double const b = wire == Wire::bfloat16 ? 2 : 4;
      Pipeline pipeline;
      double filled = 0;
      for (auto const& q : list) {
        if (!q.is_matrix()) continue;
        double const rows = std::ceil(double(q.rows()) / p), bytes = p * rows * double(q.columns()) * b;
        if (filled == 0 || filled + bytes > 100000) {
          pipeline.gathers.push_back(0);
          pipeline.computations.push_back(0);
          filled = 0;
        }
        filled += bytes;
        pipeline.gathers.back() += bytes * (p - 1) / p / test::bandwidth;
        double const r = double(std::min(q.rows(), q.columns())), c = double(std::max(q.rows(), q.columns()));
        pipeline.computations.back() += (20 * r * r * c + 10 * r * r * r) / test::flop_rate;
      }
      ASSERT_GT(pipeline.gathers.size(), 3u);
      double const norm = 2.0 * (p - 1) / p * 8 * double(list.size()) / test::bandwidth; // its sum, before
      Layout const layout(list, {.shards = p});
      Machine const machine(test::ideal_hardware(), layout.place());
      auto const run = [&](System system) {
        options.system = system;
        return simulate(optimizer_program({layout, options, {}}, machine, 0), 0);
      };
      auto const overlap = run(System::overlap);
      EXPECT_NEAR(overlap.seconds, norm + pipeline.overlapped(), 1e-9 * pipeline.sum()) << p;
      EXPECT_NEAR(overlap.exposed[std::size_t(Purpose::optimizer)], pipeline.exposed(),
                  1e-9 * pipeline.sum());
      EXPECT_NEAR(run(System::buckets).seconds, norm + pipeline.sum(), 1e-9 * pipeline.sum());
    }
}

TEST(Simulation, the_last_step_of_a_period_of_several_is_weighed_by_how_often_it_comes) {
  auto const list = parameters();
  OptimizerOptions options;
  options.muon.period = 4;
  ParameterGroup group;
  group.pattern = "blocks.0.*";
  group.period = 6;
  options.groups = {group};
  Layout const layout(list, {.shards = 2});
  Machine const machine(test::ideal_hardware(), layout.place());
  RankPlan const plan{layout, options, {}};
  double mean = 0;
  for (int t = 0; t < 12; ++t) mean += simulate(optimizer_program(plan, machine, t), 0).seconds / 12;
  EXPECT_NEAR(optimizer_seconds(plan, machine), mean, rounding * mean);
  std::vector<UnitTime> const units(layout.units().size(), {1, 2});
  EXPECT_NEAR(step_time(plan, machine, units).optimizer_seconds, mean, rounding * mean);
}

// Z3, two units; a gather or a reduction takes g, computation longer.
TEST(Simulation, a_step_waits_for_weights_that_are_not_fetched_ahead) {
  std::vector<Parameter> const list = {{"a.w", {8, 8}, "a"}, {"b.w", {8, 8}, "b"}};
  Layout const layout(list, {.shards = 2});
  Machine const machine(test::ideal_hardware(), layout.place());
  OptimizerOptions options;
  options.adamw_only = true;
  double const g = 0.5 * 4 * 64 / test::bandwidth, f = 7 * g;
  std::vector<UnitTime> const units(2, {f, 2 * f});
  auto const exposed = [&](int prefetch) {
    StoreOptions store;
    store.prefetch = prefetch;
    return simulate(step_program({layout, options, store}, machine, units, 0), 0);
  };
  auto const none = exposed(0), one = exposed(1);
  EXPECT_NEAR(none.exposed[std::size_t(Purpose::forward)], 2 * g, 1e-9 * g);
  EXPECT_NEAR(one.exposed[std::size_t(Purpose::forward)], g, 1e-9 * g);
  // Of the backward: b's gather, b's reduction and behind it a's gather, a's reduction; one ahead, b's gather and a's reduction.
  EXPECT_NEAR(none.exposed[std::size_t(Purpose::backward)], 4 * g, 1e-9 * g);
  EXPECT_NEAR(one.exposed[std::size_t(Purpose::backward)], 2 * g, 1e-9 * g);
}

// z2: a unit is put together once a step, z3: in each forward and backward.
TEST(Simulation, a_unit_that_stays_whole_is_put_together_once) {
  Layout const layout({{"a.w", {8, 8}, "a"}, {"b.w", {8, 8}, "b"}}, {.shards = 2});
  for (int micro_batches : {1, 3}) {
    auto const joins = [&](Residency residency) {
      StoreOptions store;
      store.residency = residency;
      store.micro_batches = micro_batches;
      return std::ranges::count(plan_store_step(layout, store), StoreOperation::Kind::await_weights,
                                &StoreOperation::kind);
    };
    EXPECT_EQ(joins(Residency::z2), 2);
    EXPECT_EQ(joins(Residency::z3), 2 * 2 * micro_batches);
  }
}

// What is simulated of many micro-batches: the first and the last, and one between as often as it comes.
TEST(Simulation, many_micro_batches_take_as_long_as_all_of_them) {
  Layout const layout({{"a.w", {64, 64}, "a"}, {"b.w", {64, 64}, "b"}}, {.shards = 2});
  Machine const machine(test::ideal_hardware(), layout.place());
  StoreOptions store;
  store.micro_batches = 9;
  double const gather = 0.5 * 4 * 64 * 64 / test::bandwidth;
  for (double computation : {0.3 * gather, 1.4 * gather, 5 * gather}) {
    std::vector<UnitTime> const units(2, {computation, 2 * computation});
    RankPlan const plan{layout, {}, store};
    auto const whole = simulate(step_program(plan, machine, units, 0), 0);
    RankPlan single = plan;
    single.optimizer.muon.period = 1;
    auto const time = step_time(single, machine, units);
    EXPECT_NEAR(time.seconds, whole.seconds, 1e-9 * whole.seconds);
    EXPECT_NEAR(time.exposed_seconds(), whole.exposed_seconds(), 1e-9 * whole.seconds);
  }
}
