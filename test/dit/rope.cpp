#include <dit/heads.hpp>
#include <dit/rope.hpp>

#include "../arrays.hpp"

#include <gtest/gtest.h>

#include <cmath>

using namespace prowl;
using namespace prowl::test;

namespace {

constexpr int grid = 5, tokens = grid * grid;

/// Every token the same vector x, normalised and rotated as a single head.
std::vector<double> rotated(std::vector<double> const& x) {
  std::vector<double> all;
  for (int t = 0; t < tokens; ++t) all.insert(all.end(), x.begin(), x.end());
  Matrix<double> table("rope", tokens, 64);
  dit::rope_table<double>(Execution(), grid, table);
  auto const weight = to_device(std::vector<double>(64, 1.0), 64, 1);
  Batch<double> heads("heads", 1, tokens, 64);
  dit::norm_to_heads<double>(Execution(), {1, 1, tokens, tokens, 0}, to_device(all, tokens, 64), weight,
                             table, heads);
  return to_host(Vector<double>(heads.data(), heads.size()));
}

double dot(std::vector<double> const& a, int i, std::vector<double> const& b, int j) {
  double sum = 0;
  for (int c = 0; c < 64; ++c) sum += a[std::size_t(64 * i + c)] * b[std::size_t(64 * j + c)];
  return sum;
}

} // namespace

TEST(Rope, turns_the_first_half_with_the_row_and_the_last_with_the_column) {
  std::vector<double> x(64, 0.0);
  for (int i = 0; i < 32; ++i)
    x[std::size_t(2 * i)] = std::sqrt(2.0); // pairs (sqrt 2, 0), of root mean square 1
  auto const y = rotated(x);
  for (int row = 0; row < grid; ++row)
    for (int column = 0; column < grid; ++column)
      for (int i = 0; i < 32; ++i) {
        double const angle = (i < 16 ? row : column) * std::pow(10000.0, -(i % 16) / 16.0);
        auto const at = std::size_t((row * grid + column) * 64 + 2 * i);
        // The norm's eps, 1e-6, makes 5e-7 of a relative difference.
        EXPECT_NEAR(y[at], std::sqrt(2.0) * std::cos(angle), 1e-6);
        EXPECT_NEAR(y[at + 1], std::sqrt(2.0) * std::sin(angle), 1e-6);
      }
}

TEST(Rope, products_depend_on_differences_of_positions_only) {
  auto const a = rotated(normal_values<double>(64, 1)), b = rotated(normal_values<double>(64, 2));
  auto const at = [](int row, int column) { return row * grid + column; };
  double const expected = dot(a, at(0, 1), b, at(2, 0));
  EXPECT_NEAR(dot(a, at(2, 3), b, at(4, 2)), expected, 1e-12);
  EXPECT_NEAR(dot(a, at(1, 4), b, at(3, 3)), expected, 1e-12);
  EXPECT_GT(std::fabs(dot(a, at(0, 1), b, at(3, 0)) - expected), 1e-3);
}

TEST(Heads, text_is_normalised_but_not_rotated) {
  auto const x = normal_values<double>(2 * 3 * 128, 3);
  auto const w = normal_values<double>(64, 4);
  Batch<double> heads("heads", 4, 7, 64);
  dit::norm_to_heads<double>(Execution(), {2, 2, 3, 7, 1}, to_device(x, 6, 128), to_device(w, 64, 1), {},
                             heads);
  auto const y = to_host(Vector<double>(heads.data(), heads.size()));
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t h = 0; h < 2; ++h) {
        auto const from = (s * 3 + t) * 128 + h * 64, to = ((s * 2 + h) * 7 + 1 + t) * 64;
        double mean = 0;
        for (std::size_t c = 0; c < 64; ++c) mean += x[from + c] * x[from + c] / 64;
        for (std::size_t c = 0; c < 64; ++c)
          EXPECT_NEAR(y[to + c], x[from + c] * w[c] / std::sqrt(mean + 1e-6), 1e-13);
      }
}
