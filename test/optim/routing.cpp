#include <prowl/core/error.hpp>
#include <prowl/optim/options.hpp>
#include <prowl/optim/schedule.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace prowl;

namespace {

std::vector<Parameter> const parameters = {{"img_in.weight", {8, 4}, "embed"},
                                           {"blocks.0.q.weight", {4, 4}, "blocks.0"},
                                           {"blocks.0.q.bias", {4}, "blocks.0"},
                                           {"model.layers.12.mlp.weight", {4, 8}, "l"},
                                           {"myblocks.x.weight", {4, 4}, "x"}};

std::string message(std::function<void(OptimizerOptions&)> const& change) {
  OptimizerOptions options;
  change(options);
  try {
    (void)route(parameters, options);
  } catch (Error const& e) {
    return e.what();
  }
  return "";
}

void expect_mentions(std::string const& text, std::vector<std::string> const& parts) {
  for (auto const& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

} // namespace

TEST(Routing, matrices_of_blocks_go_to_muon_and_all_else_to_adamw) {
  auto const routes = route(parameters, {});
  EXPECT_EQ(routes[0].rule, Rule::sharded_adamw);
  EXPECT_EQ(routes[1].rule, Rule::muon);
  EXPECT_EQ(routes[2].rule, Rule::sharded_adamw);
  EXPECT_EQ(routes[3].rule, Rule::muon);
  EXPECT_EQ(routes[4].rule, Rule::sharded_adamw);
}

TEST(Routing, the_baseline_uses_adamw_on_everything) {
  OptimizerOptions options;
  options.adamw_only = true;
  for (auto const& r : route(parameters, options)) EXPECT_EQ(r.rule, Rule::sharded_adamw);
}

TEST(Routing, the_first_matching_group_overrides) {
  OptimizerOptions options;
  ParameterGroup first, second;
  first.pattern = "blocks.*.q.*eight";
  first.period = 5;
  first.rate = 0.5;
  second.pattern = "*weight";
  second.rule = Rule::muon;
  second.decay = 0.25;
  options.groups = {first, second};
  auto const routes = route(parameters, options);
  EXPECT_EQ(routes[1].muon.period, 5);
  EXPECT_EQ(routes[1].muon.rate, 0.5);
  EXPECT_EQ(routes[1].muon.decay, options.muon.decay);
  EXPECT_EQ(routes[0].rule, Rule::muon);
  EXPECT_EQ(routes[0].muon.decay, 0.25);
  EXPECT_EQ(routes[2].rule, Rule::sharded_adamw);
}

TEST(Routing, impossible_values_are_refused_with_value_and_name) {
  expect_mentions(message([](auto& o) { o.muon.period = 0; }), {"K = 0", "at least 1"});
  expect_mentions(message([](auto& o) { o.muon.gamma = 0; }), {"gamma = 0", "above 0"});
  expect_mentions(message([](auto& o) { o.muon.gamma = std::nan(""); }), {"gamma = nan"});
  expect_mentions(message([](auto& o) { o.muon.momentum = 1; }), {"momentum = 1", "[0, 1)"});
  expect_mentions(message([](auto& o) { o.muon.momentum = -0.1; }), {"momentum = -0.1"});
  expect_mentions(message([](auto& o) { o.adamw.beta2 = 1; }), {"beta2 = 1"});
  expect_mentions(message([](auto& o) {
                    o.groups.resize(1);
                    o.groups[0].pattern = "*bias";
                    o.groups[0].rule = Rule::muon;
                  }),
                  {"blocks.0.q.bias", "not two-dimensional"});
  expect_mentions(message([](auto& o) {
                    o.groups.resize(1);
                    o.groups[0].pattern = "blocks.0.q.weight";
                    o.groups[0].period = -2;
                  }),
                  {"blocks.0.q.weight", "K = -2"});
  expect_mentions(message([](auto& o) {
                    o.groups.resize(1);
                    o.groups[0].pattern = "blosc*";
                  }),
                  {"blosc*", "matches no parameter"});
}

TEST(Routing, groups_that_can_have_no_effect_are_refused_by_index_and_key) {
  auto const with = [](std::string const& pattern, auto const& change) {
    return message([&](auto& o) {
      o.groups.resize(1);
      o.groups[0].pattern = pattern;
      change(o.groups[0]);
    });
  };
  expect_mentions(with("*bias", [](auto& g) { g.momentum = 0.5; }), {"group[0].momentum", "AdamW"});
  expect_mentions(with("*bias", [](auto& g) { g.period = 2; }), {"group[0].period", "AdamW"});
  expect_mentions(with("blocks.0.q.weight", [](auto& g) { g.beta1 = 0.5; }), {"group[0].beta1", "Muon"});
  expect_mentions(message([](auto& o) {
                    o.groups.resize(2);
                    o.groups[0].pattern = "blocks*";
                    o.groups[1].pattern = "*bias";
                  }),
                  {"group[1].pattern", "*bias", "group[0]", "blocks*"});
  // A baseline of AdamW alone takes the groups of the run that it is compared with.
  OptimizerOptions baseline;
  baseline.adamw_only = true;
  baseline.groups.resize(1);
  baseline.groups[0].pattern = "blocks*";
  baseline.groups[0].momentum = 0.5;
  EXPECT_NO_THROW(route(parameters, baseline));
}

// torch.optim.Muon's `adjust_lr_fn`: "original" and "match_rms_adamw".
TEST(Routing, shape_scales) {
  EXPECT_DOUBLE_EQ(rate_scale(AdjustRate::original, 8, 2), 2);
  EXPECT_DOUBLE_EQ(rate_scale(AdjustRate::original, 2, 8), 1);
  EXPECT_DOUBLE_EQ(rate_scale(AdjustRate::match_rms_adamw, 4, 25), 1);
  EXPECT_DOUBLE_EQ(rate_scale(AdjustRate::none, 8, 2), 1);
}

TEST(Schedule, what_is_no_schedule_and_no_step_is_refused) {
  EXPECT_THROW((void)(Schedule{10, 2}.factor(-1)), Error);
  EXPECT_THROW((void)(Schedule{0, 0}.factor(0)), Error);
  EXPECT_THROW((void)(Schedule{10, -1}.factor(0)), Error);
  EXPECT_THROW((void)(Schedule{10, 2, true, -0.5}.factor(0)), Error);
  EXPECT_THROW((void)(Schedule{10, 2, true, std::nan("")}.factor(0)), Error);
  EXPECT_THROW((void)rate_scale(AdjustRate::original, 4, 0), Error);
  EXPECT_THROW((void)route({{"blocks.0.w", {}, "blocks.0"}}, {}), Error);
}

TEST(Schedule, warms_up_linearly_then_follows_a_cosine) {
  Schedule const s{110, 10, true, 0.1};
  EXPECT_DOUBLE_EQ(s.factor(0), 0.1);
  EXPECT_DOUBLE_EQ(s.factor(9), 1);
  EXPECT_DOUBLE_EQ(s.factor(10), 1);
  EXPECT_NEAR(s.factor(60), 0.55, 1e-12);
  EXPECT_NEAR(s.factor(110), 0.1, 1e-12);
  Schedule const constant{100, 0, false, 0};
  EXPECT_DOUBLE_EQ(constant.factor(0), 1);
  EXPECT_DOUBLE_EQ(constant.factor(99), 1);
}
