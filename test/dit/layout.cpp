#include <dit/layout.hpp>

#include <prowl/core/error.hpp>

#include <gtest/gtest.h>

#include <map>

using namespace prowl;
using namespace prowl::dit;

namespace {

/// The specification's closed forms.
std::int64_t trainable(std::int64_t d, std::int64_t layers) {
  return 45 * layers * d * d - 13 * d * d + 19 * layers * d + 8312 * d + 256 * layers + 6211;
}

std::map<std::string, Parameter> by_name(ModelConfig const& config) {
  std::map<std::string, Parameter> result;
  for (auto const& parameter : parameters(config))
    EXPECT_TRUE(result.emplace(parameter.name, parameter).second);
  return result;
}

} // namespace

TEST(Layout, counts_of_the_presets_are_those_of_the_formula) {
  std::map<std::string, std::pair<int, int>> const sizes = {{"mmdit-1.3b", {1216, 19}},
                                                            {"mmdit-4b", {1920, 24}},
                                                            {"mmdit-9b", {2560, 32}},
                                                            {"mmdit-15b", {2880, 40}}};
  for (auto const& [name, size] : sizes) {
    auto const [d, layers] = size;
    auto const c = counts(preset(name));
    EXPECT_EQ(c.trainable, trainable(d, layers)) << name;
    EXPECT_EQ(c.total, trainable(d, layers) + 16 * layers) << name;
    EXPECT_EQ(c.muon, (45 * std::int64_t(layers) - 17) * d * d) << name;
  }
}

TEST(Layout, counts_are_those_of_the_paper) {
  auto const small = counts(preset("mmdit-1.3b")), large = counts(preset("mmdit-9b"));
  EXPECT_EQ(small.total, 1255586099);
  EXPECT_EQ(small.trainable, 1255585795);
  EXPECT_EQ(large.total, 9374837315);
  EXPECT_EQ(large.trainable, 9374836803);
  EXPECT_NEAR(100.0 * double(small.muon) / double(small.trainable), 98.69, 0.005);
  EXPECT_NEAR(100.0 * double(large.muon) / double(large.trainable), 99.48, 0.005);
}

TEST(Layout, units_are_contiguous_and_in_forward_order) {
  auto config = preset("mmdit-1.3b");
  config.layers = 3;
  std::vector<std::string> units;
  for (auto const& parameter : parameters(config))
    if (units.empty() || units.back() != parameter.unit) units.push_back(parameter.unit);
  EXPECT_EQ(units, (std::vector<std::string>{"embed", "blocks.0", "blocks.1", "blocks.2", "final"}));
}

TEST(Layout, the_order_within_a_block_is_the_specification_s) {
  auto config = preset("mmdit-1.3b");
  config.layers = 2;
  std::vector<std::string> groups;
  for (auto const& parameter : parameters(config)) {
    if (parameter.unit != "blocks.0") continue;
    auto name = parameter.name.substr(parameter.unit.size() + 1);
    name = name.substr(0, name.find('.', name.find('.') + 1));
    if (name.rfind("cond", 0) == 0) name = "cond";
    if (groups.empty() || groups.back() != name) groups.push_back(name);
  }
  EXPECT_EQ(groups, (std::vector<std::string>{"img.modulation", "txt.modulation", "txt.attn", "txt.mlp",
                                              "img.attn", "img.mlp", "cond"}));
}

TEST(Layout, initial_values_follow_the_specification) {
  auto const all = by_name(preset("mmdit-1.3b"));
  auto const initial = [&](char const* name) { return initial_value(all.at(name)); };
  EXPECT_EQ(initial("img_in.weight"), Initial::normal);
  EXPECT_EQ(initial("img_in.bias"), Initial::zero);
  EXPECT_EQ(initial("text.t5.norm.weight"), Initial::one);
  EXPECT_EQ(initial("text.t5.scalar"), Initial::one);
  EXPECT_EQ(initial("text.t5.linear.weight"), Initial::normal);
  EXPECT_EQ(initial("blocks.3.img.attn.q.weight"), Initial::normal);
  EXPECT_EQ(initial("blocks.3.img.attn.q_norm.weight"), Initial::one);
  EXPECT_EQ(initial("blocks.3.txt.modulation.attn_gate.weight"), Initial::zero);
  EXPECT_EQ(initial("blocks.3.img.modulation.mlp_gate.weight"), Initial::zero);
  EXPECT_EQ(initial("blocks.3.img.modulation.mlp_shift.weight"), Initial::normal);
  EXPECT_EQ(initial("blocks.3.img.mlp.gate_up.weight"), Initial::normal);
  EXPECT_EQ(initial("blocks.3.img.mlp.gate_up.bias"), Initial::zero);
  EXPECT_EQ(initial("blocks.3.cond.bias"), Initial::zero);
  EXPECT_EQ(initial("final.shift.weight"), Initial::normal);
  EXPECT_EQ(initial("final.linear.weight"), Initial::zero);
  EXPECT_EQ(initial("final.linear.bias"), Initial::zero);
  EXPECT_EQ(all.count("blocks.18.txt.attn.o.weight"), 0u); // the last block's text only feeds attention
  EXPECT_EQ(all.count("blocks.18.txt.modulation.attn_gate.weight"), 0u);
  EXPECT_EQ(all.count("blocks.17.txt.attn.o.weight"), 1u);
}

TEST(Layout, impossible_sizes_are_errors) {
  auto const refused = [](auto const& change) {
    auto config = preset("mmdit-1.3b");
    change(config);
    EXPECT_THROW(validate(config), Error);
    EXPECT_THROW(parameters(config), Error);
  };
  EXPECT_NO_THROW(validate(preset("mmdit-1.3b")));
  refused([](ModelConfig& c) { c.hidden = 100; });
  refused([](ModelConfig& c) { c.hidden = 0; });
  refused([](ModelConfig& c) { c.layers = 0; });
  refused([](ModelConfig& c) { c.image_size = 33; });
  refused([](ModelConfig& c) { c.channels = 0; });
  refused([](ModelConfig& c) { c.pooled_width = 0; });
  refused([](ModelConfig& c) { c.encoders.clear(); });
  refused([](ModelConfig& c) { c.encoders[1].name = "clip_l"; });
  refused([](ModelConfig& c) { c.encoders[1].tokens = 0; });
  EXPECT_THROW(preset("mmdit-2b"), Error);
}
