// Shards joined and split, element by element.
#include "../arrays.hpp"

#include <prowl/core/error.hpp>
#include <prowl/kernels/shards.hpp>
#include <prowl/placement/shard.hpp>

#include <gtest/gtest.h>

using namespace prowl;

namespace {

/// More elements than a block of the kernel, ranks that do not divide the rows, ranks without rows.
std::vector<ShardedRows> shapes() {
  return {{1, 1, 1, 1, 0},        {7, 3, 4, 10, 2}, {5, 3, 4, 6, 0},         {1, 9, 3, 12, 3},
          {130, 97, 3, 5000, 11}, {3, 2, 8, 4, 1},  {64, 5000, 2, 160007, 7}};
}

/// Where the whole's element (row, column) lies in the shards.
std::size_t place(ShardedRows const& s, std::int64_t row, std::int64_t column) {
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto const rows = shard_rows(s.rows, s.ranks, rank);
    if (row >= rows.begin && row < rows.end)
      return std::size_t(rank * s.part + s.offset + (row - rows.begin) * s.columns + column);
  }
  return 0;
}

} // namespace

TEST(Shards, are_joined_without_their_padding) {
  for (auto const& s : shapes()) {
    auto const shards = test::normal_values(std::size_t(s.ranks * s.part), 1);
    Vector<float> const whole("whole", s.rows * s.columns);
    join_shards(Execution(), s, test::to_device(shards), whole);
    auto const joined = test::to_host(whole);
    Vector<bfloat16> const half("half", shards.size());
    Kokkos::deep_copy(whole, 0);
    auto const halves = Kokkos::create_mirror_view(half);
    for (std::size_t i = 0; i < shards.size(); ++i) halves(i) = bfloat16::from_float(shards[i]);
    Kokkos::deep_copy(half, halves);
    join_shards(Execution(), s, half, whole);
    auto const joined_halves = test::to_host(whole);
    for (std::int64_t i = 0; i < s.rows; ++i)
      for (std::int64_t j = 0; j < s.columns; ++j) {
        auto const at = place(s, i, j), e = std::size_t(i * s.columns + j);
        ASSERT_EQ(joined[e], shards[at]);
        ASSERT_EQ(joined_halves[e], halves(at).to_float());
      }
  }
}

TEST(Shards, are_split_with_zeros_behind_them_and_nothing_else_is_touched) {
  for (auto const& s : shapes()) {
    auto const whole = test::normal_values(std::size_t(s.rows * s.columns), 1);
    std::vector<float> expected(std::size_t(s.ranks * s.part), 7.0f);
    auto const shards = test::to_device(expected);
    split_shards(Execution(), s, test::to_device(whole), shards);
    for (int rank = 0; rank < s.ranks; ++rank)
      for (std::int64_t k = 0; k < padded_rows(s.rows, s.ranks) * s.columns; ++k)
        expected[std::size_t(rank * s.part + s.offset + k)] = 0;
    for (std::int64_t i = 0; i < s.rows; ++i)
      for (std::int64_t j = 0; j < s.columns; ++j)
        expected[place(s, i, j)] = whole[std::size_t(i * s.columns + j)];
    EXPECT_EQ(test::to_host(shards), expected);
  }
}

TEST(Shards, sizes_that_do_not_fit_are_refused) {
  ShardedRows const s{7, 3, 4, 10, 2};
  Vector<float> const whole("whole", 21), shards("shards", 38);
  EXPECT_NO_THROW(join_shards(Execution(), s, shards, whole));
  EXPECT_THROW(join_shards(Execution(), s, slice(shards, 0, 37), whole), Error);
  EXPECT_THROW(join_shards(Execution(), s, shards, slice(whole, 0, 20)), Error);
  EXPECT_THROW(join_shards(Execution(), {7, 3, 4, 7, 2}, shards, whole), Error);
  EXPECT_THROW(join_shards(Execution(), {7, 3, 0, 10, 2}, shards, whole), Error);
  EXPECT_THROW(join_shards(Execution(), {7, 3, 4, 10, -2}, shards, whole), Error);
}
