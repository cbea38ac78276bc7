#include "reference.hpp"

#include <prowl/core/error.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/ownership.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace prowl;

namespace {

/// Not before Kokkos is initialised.
Execution exec() { return Execution(); }

// The shapes of the acceptance list, a second unit, and vectors for AdamW. With 2 to 4 ranks some shards are
// empty.
std::vector<Parameter> parameters() {
  return {{"in.w", {6, 5}, "in"},
          {"blocks.0.a", {1, 7}, "blocks.0"},
          {"blocks.0.b", {7, 1}, "blocks.0"},
          {"blocks.0.c", {5, 3}, "blocks.0"},
          {"blocks.0.d", {3, 5}, "blocks.0"},
          {"blocks.0.bias", {13}, "blocks.0"},
          {"blocks.1.a", {64, 64}, "blocks.1"},
          {"blocks.1.b", {96, 32}, "blocks.1"},
          {"blocks.1.c", {32, 96}, "blocks.1"},
          {"blocks.1.d", {130, 50}, "blocks.1"},
          {"blocks.1.zero", {9, 4}, "blocks.1"},
          {"out.scale", {1}, "out"}};
}

bool is_zero(Parameter const& p) { return p.name == "blocks.1.zero"; }

/// Smooth, full-rank-ish values that depend on nothing but the arguments. Multiples of 2^-8, exact in
/// bfloat16's sums.
double gradient_value(std::size_t parameter, std::int64_t element, std::int64_t step) {
  auto const h = std::uint64_t(element) * 2654435761u + parameter * 97 + std::uint64_t(step) * 1000003u;
  return double(std::int64_t((h ^ (h >> 13)) % 257) - 128) / 256;
}
double weight_value(std::size_t parameter, std::int64_t element) {
  return gradient_value(parameter, element, 77) / 4;
}

using Value = double (*)(std::size_t, std::int64_t, std::int64_t);

template <class F>
void fill(Store const& store, std::size_t i, std::int64_t first_row, Matrix<float> const& rows,
          F const& value) {
  auto const host = Kokkos::create_mirror_view(rows);
  auto const first = first_row * store.layout().parameters()[i].columns();
  for (std::size_t e = 0; e < host.size(); ++e) host.data()[e] = float(value(i, first + std::int64_t(e)));
  Kokkos::deep_copy(rows, host);
}

template <class F>
void fill_gradients(Store const& store, F const& value) {
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i)
    fill(store, i, store.layout().rows(i).begin, store.updated_gradient(i), value);
}

double gradient_of(std::vector<Parameter> const& ps, std::size_t i, std::int64_t e, std::int64_t t) {
  return is_zero(ps[i]) ? 0 : gradient_value(i, e, t);
}

reference::Dense dense(Parameter const& p, auto const& value) {
  auto d = reference::zeros(p.rows(), p.columns());
  for (std::size_t e = 0; e < d.a.size(); ++e) d.a[e] = value(std::int64_t(e));
  return d;
}

struct TrainingRun {
  Ledger ledger;
  Communicator world{MPI_COMM_WORLD, &ledger};
  Mesh mesh;
  Store store;
  Optimizer optimizer;

  /// Sharded; or, with `replicas`, dedicated over so many.
  explicit TrainingRun(OptimizerOptions const& options, int replicas = 0, bool asynchronous = true)
      : mesh(world, std::max(1, replicas)),
        store(exec(), mesh,
              replicas > 0 ? dedicated_layout(parameters(), options, mesh.place(), {.pack_below = 20})
                           : Layout(parameters(), mesh.place()),
              {.asynchronous = asynchronous}),
        optimizer(exec(), store, options) {
    for (std::size_t i = 0; i < store.layout().parameters().size(); ++i)
      fill(store, i, store.layout().weight_rows(i).begin, store.kept_weights(i), weight_value);
    store.weights_changed();
  }
  Optimizer::Report step(double factor = 1) {
    auto const t = optimizer.steps();
    auto const ps = parameters();
    fill_gradients(store, [&](std::size_t i, std::int64_t e) { return gradient_of(ps, i, e, t); });
    return optimizer.step(factor);
  }
  std::vector<float> local_weights() {
    store.finish_publication();
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.weights());
    return {host.data(), host.data() + host.size()};
  }
};

/// Largest |w - reference| over the rows held here; compared on every rank.
///
/// Tolerance: NS5 magnifies an error of its input by at most a^5 = 3.4445^5 < 500, the slope at singular
/// value zero. Its input and each product carry relative errors of a few float32 eps = 6e-8 times the square
/// root of the inner dimension (at most 130, so 12): 500 * 6e-8 * 12 * 3 products < 1.1e-3 on an entry of the
/// direction. A step moves a weight by rate * s(W) times that; rates here are 0.02 and s(W) <= 3 with
/// `original`, and errors of `steps` steps add up.
void expect_near_reference(TrainingRun& run, std::vector<reference::Parameter> const& expected,
                           double rate_and_scale, int steps) {
  double const tolerance = 1.1e-3 * rate_and_scale * steps + 1e-6;
  auto const& layout = run.store.layout();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), run.store.updated_weights(i));
    auto const first = layout.rows(i).begin * layout.parameters()[i].columns();
    for (std::size_t e = 0; e < host.size(); ++e)
      ASSERT_NEAR(host.data()[e], expected[i].w.a[std::size_t(first) + e], tolerance)
          << layout.parameters()[i].name << " element " << first + std::int64_t(e);
  }
}

void compare(OptimizerOptions const& options, int steps = 7, int replicas = 0) {
  TrainingRun run(options, replicas);
  auto const ps = parameters();
  std::vector<reference::Parameter> expected;
  for (std::size_t i = 0; i < ps.size(); ++i)
    expected.emplace_back(dense(ps[i], [&](std::int64_t e) { return double(float(weight_value(i, e))); }));
  for (int t = 0; t < steps; ++t) {
    double const factor = 1.0 / (1 + t);
    run.step(factor);
    for (std::size_t i = 0; i < ps.size(); ++i) {
      auto const g = dense(ps[i], [&](std::int64_t e) { return gradient_of(ps, i, e, t); });
      auto const& r = run.optimizer.routes()[i];
      if (r.rule == Rule::muon)
        expected[i].muon(g, r.muon, t, factor);
      else
        expected[i].adamw(g, r.adamw, t, factor);
    }
  }
  double const scale = options.muon.adjust_rate == AdjustRate::match_rms_adamw ? 0.2 * std::sqrt(130) : 3;
  expect_near_reference(run, expected, options.muon.rate * scale, steps);
}

OptimizerOptions with(System system, Direction direction, std::int64_t period) {
  OptimizerOptions options;
  options.system = system;
  options.muon.direction = direction;
  options.muon.period = period;
  options.bucket_bytes = 16 << 10; // several buckets
  return options;
}

std::vector<System> const systems = {System::naive, System::sharded_row_norm, System::buckets,
                                     System::overlap};

} // namespace

TEST(Optimizer, every_branch_and_system_variant_equals_the_float64_reference) {
  for (auto system : systems) {
    SCOPED_TRACE(int(system));
    compare(with(system, Direction::periodic, 1));
    compare(with(system, Direction::periodic, 3));
    compare(with(system, Direction::row_norm, 3));
    compare(with(system, Direction::scalar_controlled, 2));
    auto gamma_one = with(system, Direction::periodic, 3);
    gamma_one.muon.gamma = 1;
    compare(gamma_one);
  }
}

/// 1, 2, 4, ... as far as they divide the ranks.
std::vector<int> replica_counts() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> counts;
  for (int r : {1, 2, 3, 4})
    if (size % r == 0) counts.push_back(r);
  return counts;
}

TEST(Dedicated, every_branch_equals_the_float64_reference) {
  for (int replicas : replica_counts()) {
    SCOPED_TRACE(replicas);
    compare(with(System::overlap, Direction::periodic, 1), 7, replicas);
    compare(with(System::overlap, Direction::periodic, 3), 7, replicas);
    compare(with(System::overlap, Direction::row_norm, 3), 7, replicas);
    compare(with(System::overlap, Direction::scalar_controlled, 2), 7, replicas);
    auto nesterov = with(System::overlap, Direction::periodic, 2);
    nesterov.muon.nesterov = true;
    compare(nesterov, 7, replicas);
    auto owned_adamw = with(System::overlap, Direction::periodic, 3);
    ParameterGroup group;
    group.pattern = "in.w";
    group.rule = Rule::adamw;
    group.rate = 0.01;
    owned_adamw.groups = {group};
    compare(owned_adamw, 7, replicas);
  }
}

TEST(Dedicated, the_step_communicates_nothing_but_new_matrices_over_the_replicas) {
  for (int replicas : replica_counts()) {
    TrainingRun run(with(System::overlap, Direction::periodic, 3), replicas);
    run.ledger.clear();
    for (int t = 0; t < 6; ++t) run.step();
    run.store.finish_publication();
    std::int64_t mine = 0; // elements of the matrices of this shard index
    auto const& layout = run.store.layout();
    for (std::size_t i = 0; i < layout.parameters().size(); ++i)
      if (layout.placement(i) && layout.placement(i)->shard == layout.place().shard)
        mine += layout.parameters()[i].size();
    auto const sent = run.ledger.totals(Collective::broadcast, Purpose::optimizer);
    EXPECT_EQ(run.ledger.totals(Purpose::optimizer).calls, sent.calls);
    EXPECT_DOUBLE_EQ(sent.bytes, 6 * double((replicas - 1) * 4 * mine) / replicas);
  }
}

TEST(Dedicated, the_asynchronous_publication_gives_the_bits_of_the_synchronous_one) {
  for (int replicas : replica_counts()) {
    TrainingRun now(with(System::overlap, Direction::periodic, 3), replicas, false),
        later(with(System::overlap, Direction::periodic, 3), replicas, true);
    for (int t = 0; t < 5; ++t) {
      now.step();
      later.step();
    }
    auto const a = now.local_weights(), b = later.local_weights();
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * 4), 0);
  }
}

TEST(Dedicated, its_bytes_are_known_from_the_description) {
  for (int replicas : replica_counts())
    for (auto direction : {Direction::periodic, Direction::row_norm}) {
      auto const options = with(System::overlap, direction, 3);
      TrainingRun const run(options, replicas);
      EXPECT_EQ(run.optimizer.bytes(), optimizer_memory(run.store.layout(), options).total());
    }
}

TEST(Dedicated, every_matrix_has_one_owner_and_the_two_sets_cover_the_model) {
  for (int replicas : replica_counts()) {
    TrainingRun const run(with(System::overlap, Direction::periodic, 3), replicas);
    auto const& layout = run.store.layout();
    for (std::size_t i = 0; i < layout.parameters().size(); ++i) {
      EXPECT_EQ(layout.placement(i).has_value(), run.optimizer.routes()[i].rule != Rule::sharded_adamw);
      double const rows = run.world.sum(double(layout.rows(i).size()));
      // Over the whole mesh; shards once a replica.
      EXPECT_EQ(rows, double(layout.parameters()[i].rows()) * (layout.placement(i) ? 1 : replicas));
    }
  }
}

namespace {

int allocations = 0;

} // namespace

// A step is the forward, the backward and the update; the first may set up what later ones use.
TEST(Dedicated, steps_after_the_first_allocate_no_array) {
  Kokkos::Tools::Experimental::set_allocate_data_callback(
      [](Kokkos_Profiling_SpaceHandle, char const*, void const*, std::uint64_t) { ++allocations; });
  {
    Vector<float> const probe("probe", 1);
    ASSERT_EQ(allocations, 1) << "Kokkos does not tell";
  }
  for (int replicas : replica_counts()) {
    TrainingRun run(with(System::overlap, Direction::periodic, 2), replicas);
    auto const step = [&] {
      auto const units = run.store.layout().units().size();
      for (std::size_t u = 0; u < units; ++u) {
        run.store.begin_forward(u);
        run.store.end_forward(u);
      }
      for (std::size_t u = units; u-- > 0;) {
        run.store.begin_backward(u);
        for (auto i = run.store.layout().units()[u].first; i < run.store.layout().units()[u].last; ++i)
          Kokkos::deep_copy(exec(), run.store.gradient(i), float(i + 1));
        run.store.end_backward(u);
      }
      run.optimizer.step(1);
    };
    step();
    step();
    allocations = 0;
    for (int t = 0; t < 4; ++t) step();
    EXPECT_EQ(allocations, 0) << replicas << " replicas";
  }
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
}

TEST(Optimizer, nesterov_and_shape_scales_equal_the_reference) {
  for (auto adjust : {AdjustRate::original, AdjustRate::match_rms_adamw, AdjustRate::none}) {
    auto options = with(System::overlap, Direction::periodic, 2);
    options.muon.nesterov = true;
    options.muon.adjust_rate = adjust;
    compare(options);
  }
}

TEST(Optimizer, groups_with_their_own_period_and_rate_equal_the_reference) {
  auto options = with(System::overlap, Direction::periodic, 3);
  ParameterGroup group;
  group.pattern = "blocks.1.[ac]";
  group.period = 2;
  group.rate = 0.01;
  options.groups = {group};
  compare(options);
}

TEST(Optimizer, adamw_on_everything_equals_the_reference) {
  OptimizerOptions options;
  options.adamw_only = true;
  options.adamw.rate = 0.01;
  compare(options);
}

// With mu = 1/2 and gradients that are multiples of 2^-8 below 1/2, the first momentum is exact in float32;
// what NS5 sees is its rounding to bfloat16 (relative 2^-9, up to 500-fold after NS5), so only the first step
// is compared with the reference that rounds too.
TEST(Optimizer, a_bfloat16_wire_rounds_what_the_refresh_sees_and_nothing_else) {
  auto options = with(System::overlap, Direction::periodic, 3);
  options.wire = Wire::bfloat16;
  options.muon.momentum = 0.5;
  TrainingRun run(options);
  run.step();
  auto const ps = parameters();
  std::vector<reference::Parameter> expected;
  for (std::size_t i = 0; i < ps.size(); ++i) {
    expected.emplace_back(dense(ps[i], [&](std::int64_t e) { return double(float(weight_value(i, e))); }));
    // Rounded by hand to 8 significant bits, ties to even; twice, since the reference halves its gradient
    // again.
    auto const g = dense(ps[i], [&](std::int64_t e) {
      double const exact = 0.5 * gradient_of(ps, i, e, 0);
      if (exact == 0) return 0.0;
      double const unit = std::exp2(std::floor(std::log2(std::fabs(exact))) - 7);
      return 2 * std::nearbyint(exact / unit) * unit;
    });
    auto const plain = dense(ps[i], [&](std::int64_t e) { return gradient_of(ps, i, e, 0); });
    auto const& r = run.optimizer.routes()[i];
    if (r.rule == Rule::muon)
      expected[i].muon(g, r.muon, 0, 1);
    else
      expected[i].adamw(plain, r.adamw, 0, 1);
  }
  expect_near_reference(run, expected, options.muon.rate * 3, 1);
  for (auto const& s : run.optimizer.state()) {
    if (s.kind != "momentum") continue;
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), s.rows);
    auto const first = run.store.layout().rows(s.parameter).begin * ps[s.parameter].columns();
    for (std::size_t e = 0; e < host.size(); ++e)
      ASSERT_EQ(host.data()[e], float(0.5 * gradient_of(ps, s.parameter, first + std::int64_t(e), 0)));
  }
}

// The four variants do the same arithmetic in the same order wherever they do the same thing: same bits, but
// for RowNorm of tall matrices, whose sums are cut by ranks in the sharded form.
TEST(Optimizer, system_variants_give_the_same_bits) {
  std::vector<std::vector<float>> weights;
  for (auto system : {System::sharded_row_norm, System::buckets, System::overlap}) {
    TrainingRun run(with(system, Direction::periodic, 3));
    for (int t = 0; t < 5; ++t) run.step();
    weights.push_back(run.local_weights());
  }
  EXPECT_EQ(std::memcmp(weights[0].data(), weights[1].data(), weights[0].size() * 4), 0);
  EXPECT_EQ(std::memcmp(weights[0].data(), weights[2].data(), weights[0].size() * 4), 0);
}

TEST(Optimizer, repeats_bit_for_bit_at_one_rank_count) {
  TrainingRun first(with(System::overlap, Direction::periodic, 3)),
      second(with(System::overlap, Direction::periodic, 3));
  for (int t = 0; t < 5; ++t) {
    first.step();
    second.step();
  }
  auto const a = first.local_weights(), b = second.local_weights();
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * 4), 0);
}

// Section 3.3: one all-gather a bucket on refresh steps, one all-reduce of the tall matrices' column sums on
// others; (p-1)/p b (padded elements), 2 (p-1)/p 4 (sum of n over tall matrices).
TEST(Optimizer, the_ledger_equals_the_formulas_of_the_paper) {
  auto const ps = parameters();
  for (auto wire : {Wire::float32, Wire::bfloat16})
    for (std::int64_t period : {1, 3}) {
      auto options = with(System::overlap, Direction::periodic, period);
      options.wire = wire;
      TrainingRun run(options);
      int const p = run.world.size();
      std::int64_t const b = wire == Wire::bfloat16 ? 2 : 4;
      std::int64_t gathers = 0, padded = 0, filled = 0, columns = 0;
      for (auto const& q : ps) {
        if (!q.is_matrix() || q.name.find("blocks.") == std::string::npos) continue;
        auto const elements = p * ((q.rows() + p - 1) / p) * q.columns();
        if (gathers == 0 || filled + elements * b > options.bucket_bytes) ++gathers, filled = 0;
        filled += elements * b;
        padded += elements;
        if (q.rows() > q.columns()) columns += q.columns();
      }
      ASSERT_GT(gathers, 2);
      run.ledger.clear();
      for (int t = 0; t < 6; ++t) run.step();
      std::int64_t const refreshes = period == 1 ? 6 : 2, others = 6 - refreshes;
      auto const gathered = run.ledger.totals(Collective::all_gather, Purpose::optimizer);
      auto const reduced = run.ledger.totals(Collective::all_reduce, Purpose::optimizer);
      EXPECT_EQ(gathered.calls, refreshes * gathers);
      EXPECT_EQ(reduced.calls, others);
      // Both sides are one rounded division of exact integers.
      EXPECT_EQ(gathered.bytes, double((p - 1) * b * padded * refreshes) / p);
      EXPECT_EQ(reduced.bytes, 2 * double((p - 1) * 4 * columns * others) / p);
      EXPECT_EQ(run.ledger.totals(Purpose::optimizer).calls, gathered.calls + reduced.calls);
    }
}

TEST(Optimizer, its_collectives_are_known_from_the_description) {
  for (auto system : systems)
    for (std::int64_t period : {1, 2, 3}) {
      auto options = with(system, Direction::periodic, period);
      ParameterGroup group;
      group.pattern = "blocks.0.*";
      group.period = 2;
      options.groups = {group};
      TrainingRun run(options);
      for (int t = 0; t < 6; ++t) {
        run.ledger.clear();
        run.step();
        EXPECT_EQ(run.ledger, optimizer_traffic(run.store.layout(), options, t)) << "step " << t;
      }
    }
}

TEST(Optimizer, its_bytes_are_known_from_the_description) {
  for (auto system : systems)
    for (auto wire : {Wire::float32, Wire::bfloat16}) {
      auto options = with(system, Direction::periodic, 3);
      options.wire = wire;
      TrainingRun const run(options);
      EXPECT_EQ(run.optimizer.bytes(), optimizer_memory(run.store.layout(), options).total());
    }
}

TEST(Optimizer, naive_gathers_every_matrix_at_every_step) {
  TrainingRun run(with(System::naive, Direction::periodic, 3));
  run.ledger.clear();
  for (int t = 0; t < 3; ++t) run.step();
  EXPECT_EQ(run.ledger.totals(Collective::all_gather, Purpose::optimizer).calls, 3 * 9);
  EXPECT_EQ(run.ledger.totals(Collective::all_reduce, Purpose::optimizer).calls, 0);
}

TEST(Optimizer, a_zero_matrix_only_decays) {
  TrainingRun run(with(System::overlap, Direction::periodic, 2));
  auto const ps = parameters();
  for (int t = 0; t < 4; ++t) run.step();
  auto const index = std::size_t(std::find_if(ps.begin(), ps.end(), is_zero) - ps.begin());
  auto const host =
      Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), run.store.updated_weights(index));
  auto const first = run.store.layout().rows(index).begin * ps[index].columns();
  double const decay = std::pow(1 - 0.02 * 0.01, 4);
  for (std::size_t e = 0; e < host.size(); ++e) // four roundings
    EXPECT_NEAR(host.data()[e], float(weight_value(index, first + std::int64_t(e))) * decay, 4 * 6e-8);
}

TEST(Optimizer, a_gradient_that_is_not_finite_changes_nothing_and_is_named) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (bool skip : {false, true}) {
      auto options = with(System::overlap, Direction::periodic, 3);
      options.skip_nonfinite = skip;
      options.clip = 1;
      TrainingRun run(options);
      run.step();
      auto const before = run.local_weights();
      auto const ps = parameters();
      fill_gradients(run.store, [&](std::size_t i, std::int64_t e) {
        return ps[i].name == "blocks.1.b" && e == 96 * 32 - 1 - 7 ? bad : gradient_of(ps, i, e, 1);
      });
      if (skip) {
        auto const report = run.optimizer.step(1);
        EXPECT_TRUE(report.skipped);
        EXPECT_EQ(report.nonfinite, "blocks.1.b");
        EXPECT_EQ(run.optimizer.skipped(), 1);
      } else {
        try {
          run.optimizer.step(1);
          FAIL() << "expected an error";
        } catch (Error const& e) {
          EXPECT_NE(std::string(e.what()).find("blocks.1.b"), std::string::npos);
        }
      }
      auto const after = run.local_weights();
      EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * 4), 0);
    }
}

TEST(Optimizer, clipping_scales_the_whole_gradient_to_the_norm) {
  OptimizerOptions options;
  options.adamw_only = true;
  options.clip = 0.5;
  TrainingRun run(options);
  auto const ps = parameters();
  double squares = 0;
  for (std::size_t i = 0; i < ps.size(); ++i)
    for (std::int64_t e = 0; e < ps[i].size(); ++e) squares += std::pow(gradient_of(ps, i, e, 0), 2);
  auto const report = run.step();
  EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  double norm = 0;
  for (auto const& s : run.optimizer.state()) {
    if (s.kind != "exp_avg") continue;
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), s.rows);
    for (std::size_t e = 0; e < host.size(); ++e)
      norm += std::pow(host.data()[e] / (1 - options.adamw.beta1), 2);
  }
  EXPECT_NEAR(std::sqrt(run.world.sum(norm)), options.clip, 1e-5);
}
