#include "../arrays.hpp"

#include <prowl/core/error.hpp>
#include <prowl/core/square_sum.hpp>
#include <prowl/kernels/row_norm.hpp>

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

using namespace prowl;

namespace {

// Norms in double, one rounding for the factor and one for the product: two half ulps, with a little for
// second order.
constexpr double row_tolerance = 1.01 * FLT_EPSILON;
// And half a rounding more for the sum, which is a float (the square root halves its error).
constexpr double column_tolerance = 1.26 * FLT_EPSILON;

// gamma x_ij / max(||line||, 1e-8) in float64 with the line a row or a column.
std::vector<double> reference(std::vector<float> const& x, std::size_t columns, double gamma, bool by_row) {
  std::size_t const lines = by_row ? x.size() / columns : columns;
  auto const line = [&](std::size_t i) { return by_row ? i / columns : i % columns; };
  std::vector<double> norms(lines, 0.0), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) norms[line(i)] += double(x[i]) * x[i];
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = gamma * x[i] / std::max(std::sqrt(norms[line(i)]), 1e-8);
  return y;
}

void expect_near(std::vector<float> const& actual, std::vector<double> const& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::abs(expected[i]) + FLT_TRUE_MIN) << "element " << i;
}

std::vector<float> column_normalised(std::vector<float> const& values, int rows, int columns, float gamma) {
  auto const x = test::to_device(values, rows, columns);
  auto const sums = test::to_device(std::vector<float>(columns, std::nanf("")));
  column_sum_squares(Execution(), x, sums);
  column_norm_finish(Execution(), gamma, sums, x);
  return test::to_host(x);
}

} // namespace

TEST(RowNorm, EqualsItsDefinitionInFloat64) {
  for (auto const& [rows, columns] :
       {std::pair(1, 1), {1, 7}, {5, 5}, {3, 511}, {4, 513}, {64, 96}, {2, 5000}}) {
    auto const values = test::normal_values(rows * columns, 1);
    auto const x = test::to_device(values, rows, columns);
    row_norm(Execution(), 0.15f, x);
    expect_near(test::to_host(x), reference(values, columns, 0.15f, true), row_tolerance);
  }
}

TEST(RowNorm, OfColumnsOverRanksEqualsItsDefinition) {
  for (auto const& [rows, columns] : {std::pair(1, 7), {5, 5}, {3, 1025}, {64, 96}}) {
    auto const values = test::normal_values(std::size_t(rows * columns), 7);
    auto const cut = columns / 3; // of two ranks
    std::vector<float> left, right;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        (j < cut ? left : right).push_back(values[std::size_t(i * columns + j)]);
    auto const a = test::to_device(left, rows, cut), b = test::to_device(right, rows, columns - cut);
    auto const sums_a = test::to_device(std::vector<float>(std::size_t(rows), std::nanf(""))),
               sums_b = test::to_device(std::vector<float>(std::size_t(rows), std::nanf("")));
    row_sum_squares(Execution(), a, sums_a);
    row_sum_squares(Execution(), b, sums_b);
    auto sums = test::to_host(sums_a);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += test::to_host(sums_b)[i];
    row_norm_finish(Execution(), 0.15f, test::to_device(sums), a);
    row_norm_finish(Execution(), 0.15f, test::to_device(sums), b);
    auto const x = test::to_host(a), y = test::to_host(b);
    std::vector<float> whole;
    for (int i = 0; i < rows; ++i) {
      whole.insert(whole.end(), x.begin() + i * cut, x.begin() + (i + 1) * cut);
      whole.insert(whole.end(), y.begin() + i * (columns - cut), y.begin() + (i + 1) * (columns - cut));
    }
    // Three roundings of sums, which the square root halves, and two of factor and product.
    expect_near(whole, reference(values, std::size_t(columns), 0.15f, true), 1.76 * FLT_EPSILON);
  }
}

TEST(RowNorm, HasTheFrobeniusNormOfThePolarFactor) {
  auto const x = test::to_device(test::normal_values(20 * 30, 2), 20, 30);
  row_norm(Execution(), 1, x);
  double sum = 0;
  for (float const v : test::to_host(x)) sum += double(v) * v;
  EXPECT_NEAR(sum, 20, 20 * 2 * row_tolerance);
}

TEST(RowNorm, ColumnsEqualTheDefinitionInFloat64) {
  for (auto const& [rows, columns] :
       {std::pair(1, 1), {7, 1}, {5, 3}, {130, 50}, {65, 257}, {300, 256}, {70, 600}}) {
    auto const values = test::normal_values(rows * columns, 3);
    expect_near(column_normalised(values, rows, columns, 0.15f), reference(values, columns, 0.15f, false),
                column_tolerance);
  }
}

// A column of each: up to the largest float, squares that are no floats, ordinary ones, and ones below the
// clamp.
constexpr float magnitudes[] = {3.4e38f, 1e25f, 2e19f, 1, 1e-7f, 1e-21f, 1e-42f};

std::vector<float> of_all_magnitudes(std::size_t rows, bool by_row) {
  auto values = test::normal_values(rows * 7, 5);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = magnitudes[by_row ? i / rows : i % 7] * float(std::sin(double(values[i])));
  return values;
}

TEST(RowNorm, OfAnyMagnitudeEqualsItsDefinitionInFloat64) {
  auto const by_column = of_all_magnitudes(3000, false), by_row = of_all_magnitudes(3000, true);
  for (float gamma : {0.15f, 1e-6f}) {
    expect_near(column_normalised(by_column, 3000, 7, gamma), reference(by_column, 7, gamma, false),
                column_tolerance);
    auto const x = test::to_device(by_row, 7, 3000);
    row_norm(Execution(), gamma, x);
    expect_near(test::to_host(x), reference(by_row, 3000, gamma, true), row_tolerance);
  }
}

// Of ordinary sums, the bits of floats: sums add as floats do, and a factor is one.
TEST(RowNorm, OfOrdinaryValuesHasTheBitsOfFloats) {
  auto const values = test::normal_values(9 * 40, 8);
  std::vector<float> sums(40);
  for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = 0.37f * float(j + 1);
  auto const x = test::to_device(values, 9, 40);
  column_norm_finish(Execution(), 0.15f, test::to_device(sums), x);
  auto const y = test::to_host(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float const factor = float(double(0.15f) / std::sqrt(double(sums[i % 40])));
    EXPECT_EQ(y[i], values[i] * factor);
  }
  for (std::size_t j = 0; j < sums.size(); ++j) {
    EXPECT_EQ(store_square_sum(double(sums[j])), sums[j]);
    EXPECT_EQ(add_square_sums(sums[j], float(j)), sums[j] + float(j));
  }
}

TEST(RowNorm, SquareSumsOfAnyMagnitudeAddUp) {
  for (double a : {0.0, 1e-45, 1e-16, 3.0, 3e38, 3.4e38, 1e45, 1e82})
    for (double b : {0.0, 1e-16, 3.0, 3.4e38, 1e45, 1e82}) {
      auto const sum = load_square_sum(add_square_sums(store_square_sum(a), store_square_sum(b)));
      // Two are rounded before they are added, and the sum.
      EXPECT_NEAR(sum, a + b, FLT_EPSILON * (a + b) + FLT_TRUE_MIN) << a << " + " << b;
    }
  EXPECT_TRUE(std::isnan(load_square_sum(add_square_sums(store_square_sum(std::nan("")), 1))));
}

TEST(RowNorm, ZeroLinesStayZeroAndTinyOnesAreClamped) {
  // Rows: zero; of norm 5e-10, below the clamp; of norm 5.
  std::vector<float> const values{0, 0, 3e-10f, 4e-10f, 3, 4};
  auto const x = test::to_device(values, 3, 2);
  row_norm(Execution(), 1, x);
  auto const y = test::to_host(x);
  expect_near({y.begin(), y.begin() + 2}, {0, 0}, 0);
  // 3e-10f is within half an ulp of 3e-10.
  expect_near({y.begin() + 2, y.end()}, {0.03, 0.04, 0.6, 0.8}, 1.51 * FLT_EPSILON);

  auto const columns = column_normalised({0, 3e-10f, 3, 0, 4e-10f, 4}, 2, 3, 1);
  expect_near(columns, {0, 0.03, 0.6, 0, 0.04, 0.8}, 1.76 * FLT_EPSILON);
}

TEST(RowNorm, SumsOverTheRowsOfSeveralRanksAddUp) {
  // Small integers: every sum is exact.
  std::vector<float> values(9 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(int(i * 7 % 11) - 5);
  auto const sums_of = [&](int begin, int end) {
    Vector<float> const sums = test::to_device(std::vector<float>(5, -1.0f));
    column_sum_squares(
        Execution(),
        test::to_device(std::vector<float>(values.begin() + begin * 5, values.begin() + end * 5), end - begin,
                        5),
        sums);
    return test::to_host(sums);
  };
  auto const whole = sums_of(0, 9), top = sums_of(0, 4), bottom = sums_of(4, 9), none = sums_of(9, 9);
  for (int j = 0; j < 5; ++j) {
    double expected = 0;
    for (int i = 0; i < 9; ++i) expected += values[i * 5 + j] * values[i * 5 + j];
    EXPECT_EQ(whole[j], expected);
    EXPECT_EQ(top[j] + bottom[j], expected);
    EXPECT_EQ(none[j], 0);
  }
}

TEST(RowNorm, ANaNIsNotHidden) {
  auto const x = test::to_device(std::vector<float>{1, std::nanf(""), 3, 4}, 2, 2);
  row_norm(Execution(), 1, x);
  EXPECT_TRUE(std::isnan(test::to_host(x)[0]));
  EXPECT_NEAR(test::to_host(x)[2], 0.6, row_tolerance);
  EXPECT_TRUE(std::isnan(column_normalised({1, 2, std::nanf(""), 4}, 2, 2, 1)[0]));
}

TEST(RowNorm, EmptyMatricesAreLeftAloneAndWrongSumsRefused) {
  Execution const exec;
  EXPECT_NO_THROW(row_norm(exec, 1, Matrix<float>("x", 0, 4)));
  EXPECT_NO_THROW(row_norm(exec, 1, Matrix<float>("x", 4, 0)));
  EXPECT_NO_THROW(column_norm_finish(exec, 1, Vector<float>("s", 4), Matrix<float>("x", 0, 4)));
  EXPECT_NO_THROW(column_sum_squares(exec, Matrix<float>("x", 4, 0), Vector<float>()));
  EXPECT_THROW(column_sum_squares(exec, Matrix<float>("x", 4, 2), Vector<float>("s", 4)), Error);
  EXPECT_THROW(column_norm_finish(exec, 1, Vector<float>("s", 4), Matrix<float>("x", 4, 2)), Error);
}
