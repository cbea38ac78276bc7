// The optimizer of sharded matrices.
#include "training_run.hpp"

#include <prowl/core/error.hpp>

#include <cstring>

using namespace prowl;
using namespace prowl::test;

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
    gamma_one.muon.direction = Direction::row_norm;
    compare(gamma_one);
  }
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

TEST(Optimizer, gradients_of_any_size_equal_the_reference) {
  // All at the largest floats; at the smallest; and columns of both beside ordinary ones.
  auto const largest = [](std::int64_t) { return 0x1p128; };
  auto const smallest = [](std::int64_t) { return 0x1p-138; };
  auto const mixed = [](std::int64_t column) {
    double const scales[] = {0x1p128, 1, 0x1p-12, 0x1p-138};
    return scales[column % 4];
  };
  for (auto direction : {Direction::row_norm, Direction::periodic})
    for (auto system : {System::naive, System::overlap}) {
      SCOPED_TRACE(testing::Message() << int(direction) << " " << int(system));
      compare(with(system, direction, 3), 4, 0, largest);
      compare(with(system, direction, 3), 4, 0, smallest);
      compare(with(system, direction, 3), 4, 0, mixed);
    }
  compare(with(System::overlap, Direction::row_norm, 3), 4, 1, largest); // owned
  compare(with(System::overlap, Direction::row_norm, 3), 4, 1, mixed);
  // On a wire of bfloat16 the largest floats must not become infinities.
  auto half = with(System::overlap, Direction::periodic, 1);
  half.wire = Wire::bfloat16;
  half.muon.momentum = 0;
  TrainingRun run(half);
  fill_gradients(run.store, [](std::size_t, std::int64_t e) { return e % 3 == 0 ? 3.4028234e38 : -3.4e38; });
  run.optimizer.step(1);
  EXPECT_EQ(run.optimizer.nonfinite(), std::nullopt);
}

TEST(Optimizer, clipping_of_a_norm_beyond_float32_leaves_the_norm_asked_for) {
  OptimizerOptions options;
  options.adamw_only = true;
  options.clip = 1e-3;
  TrainingRun run(options);
  auto const ps = parameters();
  double squares = 0;
  for (std::size_t i = 0; i < ps.size(); ++i)
    for (std::int64_t e = 0; e < ps[i].size(); ++e)
      squares += std::pow(0x1p128 * gradient_of(ps, i, e, 0), 2);
  fill_gradients(run.store,
                 [&](std::size_t i, std::int64_t e) { return 0x1p128 * gradient_of(ps, i, e, 0); });
  auto const report = run.optimizer.step(1);
  EXPECT_GT(report.gradient_norm, 3.5e38);
  EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  double norm = 0;
  for (auto const& s : run.optimizer.state()) {
    if (s.kind != "exp_avg") continue;
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), s.rows);
    for (std::size_t e = 0; e < host.size(); ++e)
      norm += std::pow(host.data()[e] / (1 - options.adamw.beta1), 2);
  }
  EXPECT_NEAR(std::sqrt(run.world.sum(norm)), options.clip, 1e-5 * options.clip); // roundings of the products
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
        EXPECT_EQ(report.nonfinite_parameters, 1);
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

namespace {

/// What a step with these gradients says.
template <class F>
std::string message_of_step(TrainingRun& run, F const& gradient, double factor = 1) {
  fill_gradients(run.store, gradient);
  try {
    run.optimizer.step(factor);
  } catch (Error const& e) {
    return e.what();
  }
  return "no error";
}

/// Makes the last element of an array not finite, where it is held.
void spoil(Matrix<float> const& rows, bool here) {
  if (here && rows.size() > 0)
    Kokkos::deep_copy(slice(as_vector(rows), std::int64_t(rows.size()) - 1, 1), std::nanf(""));
}

auto const not_a_number = [](std::size_t, std::int64_t) { return std::nan(""); };
auto const ordinary = [](std::size_t i, std::int64_t e) { return gradient_value(i, e, 1); };

} // namespace

TEST(Optimizer, all_gradients_that_are_not_finite_are_counted_and_the_first_is_named) {
  TrainingRun run(with(System::overlap, Direction::periodic, 3), 1);
  // Each in one element, so on one rank each.
  auto const two = message_of_step(run, [](std::size_t i, std::int64_t e) {
    return (i == 3 && e == 14) || (i == 9 && e == 0) ? std::nan("") : ordinary(i, e);
  });
  EXPECT_NE(two.find("the gradients of 2 of 12 parameters, blocks.0.c the first, are not finite"),
            std::string::npos)
      << two;
  auto const all = message_of_step(run, not_a_number);
  EXPECT_NE(all.find("of all 12 parameters, as where the loss or its inputs are not"), std::string::npos)
      << all;
  EXPECT_EQ(run.optimizer.nonfinite(), std::nullopt);
  EXPECT_EQ(message_of_step(run, ordinary), "no error");
}

TEST(Optimizer, weights_or_state_that_are_not_finite_are_the_cause_and_no_skip_helps) {
  for (bool skip : {false, true})
    for (int replicas : {0, 1}) {
      auto options = with(System::overlap, Direction::periodic, 3);
      options.skip_nonfinite = skip;
      TrainingRun weights(options, replicas), state(options, replicas);
      weights.step();
      EXPECT_EQ(weights.optimizer.nonfinite(), std::nullopt);
      spoil(weights.store.updated_weights(7), true);
      EXPECT_EQ(weights.optimizer.nonfinite(), "the weights of blocks.1.b are not finite");
      auto const text = message_of_step(weights, not_a_number);
      EXPECT_NE(text.find("step 1: the weights of blocks.1.b are not finite since before this step"),
                std::string::npos)
          << text;
      spoil(weights.store.updated_weights(9), true);
      EXPECT_EQ(weights.optimizer.nonfinite(),
                "the weights of blocks.1.b and arrays of 1 more of 12 parameters are not finite");
      for (auto const& s : state.optimizer.state()) spoil(s.rows, s.parameter == 0 && s.kind == "exp_avg_sq");
      EXPECT_EQ(state.optimizer.nonfinite(), "the exp_avg_sq of in.w are not finite");
      EXPECT_NE(message_of_step(state, not_a_number).find("the exp_avg_sq of in.w"), std::string::npos);
      EXPECT_EQ(state.optimizer.skipped(), 0);
    }
}

TEST(Optimizer, rates_that_float32_does_not_hold_are_refused_before_they_change_a_weight) {
  auto const refused = [](auto const& change) {
    auto options = with(System::overlap, Direction::periodic, 3);
    change(options);
    EXPECT_THROW(TrainingRun run(options), Error);
  };
  refused([](auto& o) { o.muon.rate = 1e300; });
  refused([](auto& o) { o.muon.rate = std::nan(""); });
  refused([](auto& o) { o.muon.rate = 3e38; }); // times sqrt(7)
  refused([](auto& o) { o.muon.decay = 1e300; });
  refused([](auto& o) { o.adamw.rate = 1e38; });     // over 1 - beta1
  refused([](auto& o) { o.adamw.epsilon = 1e-50; }); // zero in float32: 0 / 0
  refused([](auto& o) { o.muon.gamma = 1e-60; });
  refused([](auto& o) { o.muon.momentum = 1 - 1e-12; }); // one in float32: no gradient counts
  refused([](auto& o) { o.clip = std::numeric_limits<double>::infinity(); });
  TrainingRun run(with(System::overlap, Direction::periodic, 3));
  auto const before = run.local_weights();
  for (double factor : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0, 1e300})
    EXPECT_NE(message_of_step(run, ordinary, factor).find("expected"), std::string::npos) << factor;
  EXPECT_EQ(run.local_weights(), before);
  EXPECT_EQ(run.optimizer.steps(), 0);
  EXPECT_THROW(run.optimizer.restore_counters(-1, 0), Error);
  EXPECT_THROW(run.optimizer.restore_counters(3, 4), Error);
  EXPECT_THROW((void)optimizer_traffic(run.store.layout(), {}, -1), Error);
  EXPECT_EQ(message_of_step(run, ordinary), "no error");
}

TEST(Optimizer, a_step_without_a_backward_since_the_one_before_is_refused) {
  TrainingRun run(with(System::overlap, Direction::periodic, 3));
  EXPECT_THROW(run.optimizer.step(1), Error);
  run.step();
  auto const before = run.local_weights();
  EXPECT_THROW(run.optimizer.step(1), Error);
  EXPECT_EQ(run.local_weights(), before);
  EXPECT_EQ(run.optimizer.steps(), 1);
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
