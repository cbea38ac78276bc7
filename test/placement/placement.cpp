#include <prowl/core/error.hpp>
#include <prowl/placement/bucket.hpp>
#include <prowl/placement/layout.hpp>
#include <prowl/placement/owners.hpp>
#include <prowl/placement/units.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace prowl;

// torch.chunk semantics, as FSDP2 shards dimension 0: chunks of ceil(m/p), the last ones shorter or empty.
TEST(Shard, rows_are_cut_as_by_torch_chunk) {
  auto const sizes = [](std::int64_t rows, int ranks) {
    std::vector<std::int64_t> result;
    for (int r = 0; r < ranks; ++r) result.push_back(shard_rows(rows, ranks, r).size());
    return result;
  };
  EXPECT_EQ(sizes(8, 4), (std::vector<std::int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(sizes(7, 4), (std::vector<std::int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(sizes(5, 4), (std::vector<std::int64_t>{2, 2, 1, 0}));
  EXPECT_EQ(sizes(1, 4), (std::vector<std::int64_t>{1, 0, 0, 0}));
  EXPECT_EQ(sizes(9, 4), (std::vector<std::int64_t>{3, 3, 3, 0}));
}

TEST(Shard, every_row_is_on_exactly_one_rank) {
  for (std::int64_t rows : {1, 2, 3, 5, 7, 64, 130})
    for (int ranks : {1, 2, 3, 4, 7, 200}) {
      std::int64_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        auto const range = shard_rows(rows, ranks, r);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), padded_rows(rows, ranks));
        next = range.end;
      }
      EXPECT_EQ(next, rows);
    }
}

TEST(Buckets, a_matrix_opens_a_new_bucket_when_it_would_pass_the_cap) {
  std::vector<Parameter> const parameters = {{"a", {4, 10}, "u"},
                                             {"b", {4, 10}, "u"},
                                             {"c", {5, 10}, "u"},
                                             {"d", {100, 10}, "u"},
                                             {"e", {1, 1}, "u"}};
  std::vector<std::size_t> const order = {0, 1, 2, 3, 4};
  // Two ranks, 2 bytes: padded bytes 80, 80, 120, 2000, 4.
  auto const buckets = fill_buckets(parameters, order, 2, 2, 200);
  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets[0].entries.size(), 2u);
  EXPECT_EQ(buckets[0].entries[1].offset, 20);
  EXPECT_EQ(buckets[0].part, 40);
  EXPECT_EQ(buckets[1].part, 30);  // 3 rows of 10: padded
  EXPECT_EQ(buckets[2].part, 500); // larger than the cap: alone
  EXPECT_EQ(buckets[3].part, 1);
  EXPECT_EQ(fill_buckets(parameters, order, 2, 2, 160)[0].entries.size(), 2u); // exactly the cap
  EXPECT_EQ(fill_buckets(parameters, order, 2, 2, 159)[0].entries.size(), 1u);
}

// Table 2 of arXiv:2608.20818: 10 all-gathers a step at 1.3b and 80 at 9b, p = 256, bf16, 256 MiB; GiB 2.38
// and 17.30.
TEST(Buckets, published_counts_and_volumes_of_the_paper) {
  auto const block_matrices = [](std::int64_t d, int layers) {
    std::vector<Parameter> parameters;
    auto const add = [&](int l, std::int64_t rows, std::int64_t columns) {
      parameters.push_back(
          {"w" + std::to_string(parameters.size()), {rows, columns}, "blocks." + std::to_string(l)});
    };
    for (int l = 0; l < layers; ++l) {
      bool const last = l + 1 == layers;
      for (int i = 0; i < 6; ++i) add(l, d, d);              // image modulation
      for (int i = 0; i < (last ? 2 : 6); ++i) add(l, d, d); // text modulation
      for (int i = 0; i < (last ? 3 : 4); ++i) add(l, d, d); // text attention
      if (!last) add(l, 8 * d, d), add(l, d, 4 * d);         // text MLP
      for (int i = 0; i < 4; ++i) add(l, d, d);              // image attention
      add(l, 8 * d, d), add(l, d, 4 * d);                    // image MLP
      add(l, d, d);                                          // cond
    }
    return parameters;
  };
  struct Row {
    std::int64_t d;
    int layers;
    std::size_t gathers;
    char const* gib;
  };
  for (auto const& row : {Row{1216, 19, 10, "2.38"}, Row{2560, 32, 80, "17.30"}}) {
    auto const parameters = block_matrices(row.d, row.layers);
    std::vector<std::size_t> order(parameters.size());
    std::iota(order.begin(), order.end(), 0);
    auto const buckets = fill_buckets(parameters, order, 256, 2, std::int64_t{256} << 20);
    EXPECT_EQ(buckets.size(), row.gathers);
    double elements = 0;
    for (auto const& bucket : buckets) elements += double(bucket.part) * 256;
    char text[16];
    std::snprintf(text, sizeof text, "%.2f", 255.0 / 256 * 2 * elements / double(1 << 30));
    EXPECT_STREQ(text, row.gib);
  }
}

TEST(Layout, units_are_contiguous_and_padded) {
  std::vector<Parameter> const parameters = {{"a.w", {5, 3}, "a"}, {"a.b", {5}, "a"}, {"b.w", {2, 2}, "b"}};
  Layout const layout(parameters, {.shards = 4, .shard = 2});
  EXPECT_EQ(layout.units().size(), 2u);
  EXPECT_EQ(layout.units()[0].shards.size, 2 * 3 + 2);
  EXPECT_EQ(layout.units()[0].size, 20);
  EXPECT_EQ(layout.weights_size(), 8 + 2);
  EXPECT_EQ(layout.weight_offset(1), 6);
  EXPECT_EQ(layout.size(0), 3);
  EXPECT_EQ(layout.size(2), 0);
}

TEST(Layout, impossible_registrations_are_refused_by_name) {
  auto const message = [](std::vector<Parameter> const& parameters) -> std::string {
    try {
      Layout const layout(parameters, {});
    } catch (Error const& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message({{"x", {1}, "u"}, {"x", {1}, "u"}}).find("x: registered twice"), std::string::npos);
  EXPECT_NE(message({{"x", {0}, "u"}}).find("x: shape [0]"), std::string::npos);
  EXPECT_NE(message({{"x", {2, 3, 4}, "u"}}).find("x: shape [2, 3, 4]"), std::string::npos);
  EXPECT_NE(message({{"x", {1}, "u"}, {"y", {1}, "v"}, {"z", {1}, "u"}}).find("z: its unit 'u'"),
            std::string::npos);
}

TEST(Layout, owned_matrices_lie_with_their_owner_and_by_replica) {
  std::vector<Parameter> const parameters = {
      {"b", {5}, "u"}, {"m0", {3, 4}, "u"}, {"m1", {2, 2}, "u"}, {"m2", {1, 6}, "u"}, {"c", {7}, "u"}};
  std::vector<Placement> const owners = {{}, Owner{1, 1}, Owner{0, 0}, Owner{1, 0}, {}};
  Layout const layout(parameters, {.shards = 2, .replicas = 2, .shard = 1, .replica = 1}, owners);
  auto const& unit = layout.units()[0];
  EXPECT_EQ(unit.owned, 12 + 4 + 6);
  EXPECT_EQ(unit.size, 22 + 12);
  EXPECT_EQ(unit.shards.size, 3 + 4);
  // Whole: m1 (shard 0), m2 (shard 1, replica 0), m0 (shard 1, replica 1), b, c.
  EXPECT_EQ(layout.whole_offset(2), 0);
  EXPECT_EQ(layout.whole_offset(3), 4);
  EXPECT_EQ(layout.whole_offset(1), 10);
  EXPECT_EQ(layout.whole_offset(0), 22);
  EXPECT_EQ(layout.whole_offset(4), 27);
  // Kept here: the shards, m2, m0; updated: the shards, m0.
  EXPECT_EQ(layout.weights_size(), 7 + 18);
  EXPECT_EQ(layout.gradients_size(), 7 + 12);
  EXPECT_EQ(layout.weight_offset(3), 7);
  EXPECT_EQ(layout.weight_offset(1), 13);
  EXPECT_EQ(layout.gradient_offset(1), 7);
  EXPECT_EQ(layout.rows(3).size(), 0);
  EXPECT_EQ(layout.weight_rows(3).size(), 1);
  EXPECT_EQ(layout.weight_rows(2).size(), 0);
  EXPECT_TRUE(layout.owns(1));
  EXPECT_FALSE(layout.owns(3));
  EXPECT_THROW(Layout(parameters, {.shards = 2}, owners), Error); // no second replica
}

TEST(Units, come_from_names_with_their_prefixes) {
  auto const unit = [](std::string const& name) { return block_of(name).value_or("none"); };
  // A Llama, a ViT, a mixture of experts, a vision-language model.
  EXPECT_EQ(unit("model.layers.31.self_attn.q_proj.weight"), "model.layers.31");
  EXPECT_EQ(unit("model.embed_tokens.weight"), "none");
  EXPECT_EQ(unit("lm_head.weight"), "none");
  EXPECT_EQ(unit("blocks.3.mlp.fc1.weight"), "blocks.3");
  EXPECT_EQ(unit("patch_embed.proj.weight"), "none");
  EXPECT_EQ(unit("model.layers.2.block_sparse_moe.experts.7.w1.weight"), "model.layers.2");
  EXPECT_EQ(unit("vision_tower.blocks.0.attn.qkv.weight"), "vision_tower.blocks.0");
  EXPECT_EQ(unit("language_model.model.layers.0.mlp.up_proj.weight"), "language_model.model.layers.0");
  // The first of several; whole words only.
  EXPECT_EQ(unit("encoder.layers.4.blocks.2.w"), "encoder.layers.4");
  EXPECT_EQ(unit("myblocks.0.w"), "none");
  EXPECT_EQ(unit("blocks.w.0"), "none");
  EXPECT_EQ(unit("blocks"), "none");
}

TEST(Units, a_predicate_selects_the_lowest_module_that_it_accepts) {
  auto const unit = [](UnitPredicate const& accepts, std::string const& name) {
    std::vector<Parameter> list = {{name, {2, 2}, ""}};
    assign_units(list, accepts);
    return list[0].unit;
  };
  auto const expert = [](std::string const& module) {
    return module.find("experts.") != std::string::npos || module.ends_with("attn") || module == "m.layers.0";
  };
  EXPECT_EQ(unit(expert, "m.layers.0.experts.7.w1.weight"), "m.layers.0.experts.7.w1");
  EXPECT_EQ(unit([](auto const& m) { return m == "m.layers.0" || m == "m"; }, "m.layers.0.mlp.w"),
            "m.layers.0");
  EXPECT_EQ(unit(expert, "m.layers.0.attn.q.weight"), "m.layers.0.attn");
}

TEST(Units, what_must_be_covered_and_is_not_is_named) {
  auto const message = [](UnitPredicate const& accepts, bool strict) -> std::string {
    std::vector<Parameter> list = {
        {"embed.weight", {2, 2}, ""}, {"layers.0.w", {2, 2}, ""}, {"head.b", {2}, "given"}};
    try {
      assign_units(list, accepts, [&](Parameter const& p) { return strict && p.is_matrix(); });
      return list[0].unit + "|" + list[1].unit + "|" + list[2].unit;
    } catch (Error const& e) {
      return e.what();
    }
  };
  EXPECT_EQ(message({}, false), "embed|layers.0|given");
  // What lies behind a block gets a unit of its own, where its module's is closed.
  std::vector<Parameter> list = {
      {"pos", {2}, ""}, {"blocks.0.w", {2, 2}, ""}, {"scale", {2}, ""}, {"shift", {2}, ""}};
  assign_units(list);
  EXPECT_EQ(list[0].unit + "|" + list[1].unit + "|" + list[2].unit + "|" + list[3].unit,
            "|blocks.0|scale|shift");
  EXPECT_EQ(Layout(list, {}).units().size(), 4u);
  std::vector<Parameter> given = {{"w", {2, 2}, "unit"}};
  EXPECT_NO_THROW(assign_units(given, [](auto const&) { return false; }));
  EXPECT_NE(message({}, true).find("parameter embed.weight"), std::string::npos);
  EXPECT_NE(message([](auto const&) { return false; }, false).find("accepts no module"), std::string::npos);
}

namespace {

std::vector<OwnedMatrix> matrices(std::vector<double> const& costs, std::string const& unit = "u") {
  std::vector<OwnedMatrix> result;
  for (std::size_t i = 0; i < costs.size(); ++i) result.push_back({i, unit, 10000, costs[i]});
  return result;
}

} // namespace

TEST(Owners, the_costliest_go_first_each_to_the_least_loaded) {
  // Graham's example of longest processing time first (SIAM J. Appl. Math. 17, 1969): 5, 5, 4, 4, 3, 3, 3 on three machines end
  // at 11, against an optimum of 9; one unit a matrix, so that no other constraint counts.
  std::vector<OwnedMatrix> list;
  for (double cost : {3.0, 5.0, 3.0, 4.0, 5.0, 3.0, 4.0})
    list.push_back({list.size(), "u" + std::to_string(list.size()), 10000, cost});
  auto const owners = assign_owners(list, 3);
  EXPECT_EQ(*std::ranges::max_element(owners.loads), 11);
  EXPECT_EQ(std::accumulate(owners.loads.begin(), owners.loads.end(), 0.0), 27);
  EXPECT_DOUBLE_EQ(owners.imbalance(), 11.0 / 9);
}

TEST(Owners, matrices_of_a_unit_are_spread_evenly) {
  auto const owners = assign_owners(matrices({100, 1, 1, 1, 1, 1, 1}), 3);
  std::vector<int> counts(3);
  for (int s : owners.slots) ++counts[std::size_t(s)];
  std::ranges::sort(counts);
  EXPECT_EQ(counts, (std::vector<int>{2, 2, 3}));
}

TEST(Owners, small_matrices_of_a_unit_are_packed) {
  std::vector<OwnedMatrix> list;
  for (std::size_t i = 0; i < 6; ++i) list.push_back({i, i < 4 ? "a" : "b", 1000, 1});
  auto const owners = assign_owners(list, 4, Assignment::balanced, 2000);
  EXPECT_EQ(owners.slots[0], owners.slots[1]);
  EXPECT_EQ(owners.slots[2], owners.slots[3]);
  EXPECT_NE(owners.slots[1], owners.slots[2]);
  EXPECT_EQ(owners.slots[4], owners.slots[5]);
  EXPECT_EQ(assign_owners(list, 4, Assignment::balanced, 1000).slots, (std::vector<int>{0, 1, 2, 3, 0, 1}));
}

TEST(Owners, the_simple_assignments_are_what_they_say) {
  auto const list = matrices({5, 1, 1, 1});
  EXPECT_EQ(assign_owners(list, 3, Assignment::round_robin).slots, (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(assign_owners(list, 3, Assignment::first_slot).slots, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(assign_owners(list, 3, Assignment::first_slot).imbalance(), 3);
  EXPECT_EQ(assign_owners({}, 2).imbalance(), 1);
  EXPECT_THROW(assign_owners(list, 0), Error);
}
