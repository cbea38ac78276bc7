#include <prowl/core/error.hpp>
#include <prowl/placement/bucket.hpp>
#include <prowl/placement/layout.hpp>

#include <gtest/gtest.h>

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
  ShardLayout const layout(parameters, 4, 2);
  EXPECT_EQ(layout.units().size(), 2u);
  EXPECT_EQ(layout.units()[0].size, 2 * 3 + 2);
  EXPECT_EQ(layout.units()[0].full_size, 20);
  EXPECT_EQ(layout.size(), 8 + 2);
  EXPECT_EQ(layout.offset(1), 6);
  EXPECT_EQ(layout.local_size(0), 3);
  EXPECT_EQ(layout.local_size(2), 0);
}

TEST(Layout, impossible_registrations_are_refused_by_name) {
  auto const message = [](std::vector<Parameter> const& parameters) -> std::string {
    try {
      ShardLayout const layout(parameters, 1, 0);
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
