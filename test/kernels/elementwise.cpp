// Momentum, updates, AdamW and sums against float64.
#include "../arrays.hpp"

#include <prowl/core/error.hpp>
#include <prowl/kernels/adamw.hpp>
#include <prowl/kernels/momentum.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/kernels/update.hpp>

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

using namespace prowl;

namespace {

// Longer than a block of the kernels, and no multiple of it.
constexpr std::size_t size = 2 * 4096 + 37;

// A sum of two products: each term is off by at most two roundings (its factor and the product) and the sum
// by one more, three half ulps of |first| + |second|.
void expect_sum_near(float actual, double first, double second) {
  ASSERT_NEAR(actual, first + second, 1.51 * FLT_EPSILON * (std::abs(first) + std::abs(second)));
}

} // namespace

TEST(Momentum, IsTheExponentialMean) {
  auto const g = test::normal_values(size, 1), before = test::normal_values(size, 2);
  auto const m = test::to_device(before);
  momentum(Execution(), 0.95f, test::to_device(g), m);
  auto const after = test::to_host(m);
  for (std::size_t i = 0; i < size; ++i)
    expect_sum_near(after[i], double(0.95f) * before[i], (1 - double(0.95f)) * g[i]);
}

TEST(Momentum, WithoutMemoryIsTheGradient) {
  auto const g = test::normal_values(size, 1);
  auto const m = test::to_device(test::normal_values(size, 2));
  momentum(Execution(), 0, test::to_device(g), m);
  EXPECT_EQ(test::to_host(m), g);
}

TEST(Momentum, NesterovLooksAhead) {
  auto const g = test::normal_values(size, 1), m = test::normal_values(size, 2);
  Vector<float> u("u", size);
  nesterov(Execution(), 0.9f, test::to_device(g), test::to_device(m), u);
  auto const after = test::to_host(u);
  for (std::size_t i = 0; i < size; ++i)
    expect_sum_near(after[i], (1 - double(0.9f)) * g[i], double(0.9f) * m[i]);
}

TEST(Momentum, NesterovMayOverwriteTheGradient) {
  auto const g = test::to_device(test::normal_values(size, 1)),
             m = test::to_device(test::normal_values(size, 2));
  Vector<float> u("u", size);
  nesterov(Execution(), 0.9f, g, m, u);
  nesterov(Execution(), 0.9f, g, m, g);
  EXPECT_EQ(test::to_host(g), test::to_host(u));
}

TEST(DecayedUpdate, DecaysTheWeightAndFollowsTheDirection) {
  auto const d = test::normal_values(size, 1), before = test::normal_values(size, 2);
  auto const w = test::to_device(before);
  float const rate = 0.02f, decay = 0.1f, factor = 1.5f;
  decayed_update(Execution(), rate, decay, factor, test::to_device(d), w);
  auto const after = test::to_host(w);
  for (std::size_t i = 0; i < size; ++i)
    expect_sum_near(after[i], (1 - double(rate) * decay) * before[i], -double(rate) * factor * d[i]);
}

TEST(DecayedUpdate, OfAZeroDirectionIsDecayOnly) {
  auto const w = test::to_device(std::vector<float>{4});
  decayed_update(Execution(), 0.5f, 0.25f, 3, test::to_device(std::vector<float>{0}), w);
  EXPECT_EQ(test::to_host(w)[0], 3.5f);
}

TEST(AdamW, FirstStepIsTheSignOfTheGradientUpToEpsilon) {
  // m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g|.
  AdamW const options{0.01, 0.9, 0.95, 0.125, 0.5};
  std::vector<float> const g{2, -0.5, 0, 1e-3f}, before{1, 1, 1, -3};
  auto const w = test::to_device(before);
  Vector<float> m("m", 4), v("v", 4);
  adamw(Execution(), options, 1, test::to_device(g), m, v, w);
  auto const after = test::to_host(w);
  for (int i = 0; i < 4; ++i) {
    double const expected = (1 - 0.01 * 0.5) * before[i] - 0.01 * g[i] / (std::abs(double(g[i])) + 0.125);
    // Half an ulp each for the decay factor, its product and the difference; the step is far smaller.
    EXPECT_NEAR(after[i], expected, 2 * FLT_EPSILON * std::abs(before[i]));
  }
}

TEST(AdamW, EqualsFloat64OverTenSteps) {
  AdamW const options{0.01, 0.9, 0.95, 0.1, 0.3};
  std::size_t const n = 100;
  auto const start = test::normal_values(n, 1);
  std::vector<double> w64(start.begin(), start.end()), m64(n, 0.0), v64(n, 0.0);
  auto const w = test::to_device(start);
  Vector<float> m("m", n), v("v", n);
  for (int step = 1; step <= 10; ++step) {
    auto g = test::normal_values(n, 10 + step);
    for (float& x : g) x = std::copysign(0.5f + std::fmod(std::abs(x), 1.0f), x); // magnitudes in [0.5, 1.5]
    adamw(Execution(), options, step, test::to_device(g), m, v, w);
    for (std::size_t i = 0; i < n; ++i) {
      m64[i] = 0.9 * m64[i] + 0.1 * g[i];
      v64[i] = 0.95 * v64[i] + 0.05 * double(g[i]) * g[i];
      double const m_hat = m64[i] / (1 - std::pow(0.9, step)), v_hat = v64[i] / (1 - std::pow(0.95, step));
      w64[i] = w64[i] * (1 - 0.01 * 0.3) - 0.01 * m_hat / (std::sqrt(v_hat) + 0.1);
    }
  }
  auto const after = test::to_host(w);
  for (std::size_t i = 0; i < n; ++i) {
    // A step rounds w three times; and its term, at most rate * 1.5 / 0.6, by less than ten roundings for
    // each step made.
    double const tolerance =
        10 * (1.5 * FLT_EPSILON * (std::abs(start[i]) + 0.25) + 0.025 * 10 * 5 * FLT_EPSILON);
    ASSERT_NEAR(after[i], w64[i], tolerance) << i;
  }
}

// m / sqrt(v) of one step is the gradient's sign whatever its size, and so of gradients that are all large.
TEST(AdamW, OfGradientsWhoseSquaresAreNoFloatsMovesByTheRate) {
  std::vector<float> const gradients{3.4e38f, -1e30f, 2e19f, -1e19f, 1e10f};
  AdamW options;
  options.decay = 0;
  auto const w = test::to_device(std::vector<float>(5, 0.0f)),
             m = test::to_device(std::vector<float>(5, 0.0f)),
             v = test::to_device(std::vector<float>(5, 0.0f));
  for (int step = 1; step <= 3; ++step) {
    adamw(Execution(), options, step, test::to_device(gradients), m, v, w);
    auto const weights = test::to_host(w), squares = test::to_host(v);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(std::isfinite(squares[i]));
      double const sign = gradients[i] > 0 ? 1 : -1;
      EXPECT_NEAR(weights[i], -sign * options.rate * step, 8 * FLT_EPSILON * options.rate * step) << i;
    }
  }
}

TEST(AdamW, StepsAreCountedFromOne) {
  Vector<float> const x("x", 1);
  EXPECT_THROW(adamw(Execution(), AdamW{}, 0, x, x, x, x), Error);
}

TEST(Elementwise, SizesThatDifferAreRefused) {
  Execution const exec;
  Vector<float> const three("three", 3), four("four", 4);
  EXPECT_THROW(momentum(exec, 0.9f, three, four), Error);
  EXPECT_THROW(nesterov(exec, 0.9f, three, four, three), Error);
  EXPECT_THROW(nesterov(exec, 0.9f, three, three, four), Error);
  EXPECT_THROW(decayed_update(exec, 1, 1, 1, three, four), Error);
  EXPECT_THROW(adamw(exec, AdamW{}, 1, three, four, three, three), Error);
  EXPECT_THROW(adamw(exec, AdamW{}, 1, three, three, four, three), Error);
  EXPECT_THROW(adamw(exec, AdamW{}, 1, three, three, three, four), Error);
}

TEST(SumSquares, IsExactForSmallIntegers) {
  for (std::size_t const n : {0, 1, 3, 7, 511, 512, 513, 520, 5000}) {
    std::vector<float> x(n);
    double expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = float(int(i % 13) - 6);
      expected += double(x[i]) * x[i];
    }
    EXPECT_EQ(sum_squares(Execution(), test::to_device(x)), expected) << n;
  }
}

TEST(SumSquares, IsSummedInDoubleAndRepeatable) {
  std::size_t const n = 100003;
  auto const values = test::normal_values(n, 6);
  auto const x = test::to_device(values);
  long double expected = 0;
  for (float const v : values) expected += (long double)(v)*v;
  double const sum = sum_squares(Execution(), x);
  // n roundings of half an ulp of a double.
  EXPECT_NEAR(sum, double(expected), double(expected) * double(n) * 0x1p-53);
  EXPECT_EQ(sum_squares(Execution(), x), sum);
}

TEST(SumSquares, HoldsSquaresThatAreNoFloat) {
  EXPECT_DOUBLE_EQ(sum_squares(Execution(), test::to_device(std::vector<float>{0x1p100f, 0x1p100f})),
                   0x1p201);
}

TEST(SumSquares, NaNAndInfinityPropagate) {
  for (std::size_t const position : {0, 700, 999}) {
    auto values = test::normal_values(1000, 7);
    values[position] = std::nanf("");
    EXPECT_TRUE(std::isnan(sum_squares(Execution(), test::to_device(values))));
    values[position] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(sum_squares(Execution(), test::to_device(values)), std::numeric_limits<double>::infinity());
  }
}

TEST(Scale, ByLessThanAFloatOfFullPrecision) {
  auto const x = test::to_device(std::vector<float>{3e38f, -1e35f});
  scale(Execution(), 1e-42, x);
  auto const y = test::to_host(x);
  EXPECT_NEAR(y[0], 1e-42 * double(3e38f), 3e-4 * FLT_EPSILON);
  EXPECT_NEAR(y[1], -1e-42 * double(1e35f), 1e-7 * FLT_EPSILON);
}

TEST(Scale, MultipliesEveryElement) {
  auto const before = test::normal_values(size, 8);
  auto const x = test::to_device(before);
  scale(Execution(), -0.25f, x);
  auto const after = test::to_host(x);
  for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(after[i], -0.25f * before[i]);
}
