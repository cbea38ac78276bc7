#include "../arrays.hpp"

#include <prowl/core/error.hpp>
#include <prowl/kernels/newton_schulz.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace prowl;

namespace {

using Values = std::vector<double>;

Values product(Values const& a, Values const& b, std::int64_t m, std::int64_t k, std::int64_t n) {
  Values c(m * n, 0.0);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

Values transposed(Values const& a, std::int64_t rows, std::int64_t columns) {
  Values t(a.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  return t;
}

// The definition, in float64 and on the oriented matrix: a tall one is transposed, mapped and transposed
// back.
Values reference(std::vector<float> const& values, std::int64_t rows, std::int64_t columns) {
  Values x(values.begin(), values.end());
  if (rows > columns) {
    auto const t = transposed(x, rows, columns);
    std::vector<float> const oriented(t.begin(), t.end());
    return transposed(reference(oriented, columns, rows), columns, rows);
  }
  double norm = 0;
  for (double const v : x) norm += v * v;
  norm = std::max(std::sqrt(norm), 1e-7);
  for (double& v : x) v /= norm;
  for (int iteration = 0; iteration < 5; ++iteration) {
    auto const a = product(x, transposed(x, rows, columns), rows, columns, rows);
    auto b = product(a, a, rows, rows, rows);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    auto const bx = product(b, x, rows, rows, columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  return x;
}

std::vector<float> newton_schulz_of(std::vector<float> const& values, std::int64_t rows,
                                    std::int64_t columns) {
  auto const x = test::to_device(values, rows, columns);
  // NaN, so that a workspace that is read before it is written shows.
  std::vector<float> const garbage(newton_schulz_workspace(rows, columns), std::nanf(""));
  newton_schulz(Execution(), x, test::to_device(garbage));
  return test::to_host(x);
}

// One iteration rounds with a relative error (Frobenius) of about (|a| + |b| + |c|) u = 10 u, where the inner
// products' errors average out. A later iteration multiplies an error by at most max |f'| < 4, f(s) = a s + b
// s^3 + c s^5 on the singular values s <= 1.21 that occur. So 10 u (1 + 4 + ... + 4^4) = 3410 u = 2.1e-4, u =
// 2^-24, of the result's norm.
void expect_near_reference(std::vector<float> const& values, std::int64_t rows, std::int64_t columns) {
  auto const expected = reference(values, rows, columns);
  auto const actual = newton_schulz_of(values, rows, columns);
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  EXPECT_LE(std::sqrt(error), 3410 * 0x1p-24 * std::sqrt(norm)) << rows << " x " << columns;
}

} // namespace

class NewtonSchulzShapes : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(NewtonSchulzShapes, EqualsTheMapInFloat64) {
  auto const [rows, columns] = GetParam();
  expect_near_reference(test::normal_values(rows * columns, 1), rows, columns);
}

TEST_P(NewtonSchulzShapes, EqualsTheMapInFloat64ForTinyAndHugeElements) {
  auto const [rows, columns] = GetParam();
  // Frobenius norms below the clamp of 1e-7, and such that squares are no float.
  expect_near_reference(test::normal_values(rows * columns, 2, 1e-12), rows, columns);
  expect_near_reference(test::normal_values(rows * columns, 3, 1e35), rows, columns);
}

TEST_P(NewtonSchulzShapes, LeavesAZeroMatrixZero) {
  auto const [rows, columns] = GetParam();
  for (float const v : newton_schulz_of(std::vector<float>(rows * columns, 0.0f), rows, columns))
    EXPECT_EQ(v, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NewtonSchulzShapes,
                         testing::Values(std::pair(1, 1), std::pair(1, 7), std::pair(7, 1), std::pair(5, 3),
                                         std::pair(3, 5), std::pair(64, 64), std::pair(96, 32),
                                         std::pair(32, 96), std::pair(130, 50)));

TEST(NewtonSchulz, MapsTheSingularValueOfAVectorByTheQuintic) {
  // A 1 x n matrix has the singular value 1 after the normalisation: five times f(s) = a s + b s^3 + c s^5.
  double s = 1;
  for (int i = 0; i < 5; ++i) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
  auto const y = newton_schulz_of({3, 0, -4}, 1, 3);
  EXPECT_NEAR(y[0], 0.6 * s, 3410 * 0x1p-24);
  EXPECT_EQ(y[1], 0);
  EXPECT_NEAR(y[2], -0.8 * s, 3410 * 0x1p-24);
}

TEST(NewtonSchulz, EmptyMatricesAreLeftAlone) {
  EXPECT_NO_THROW(newton_schulz(Execution(), Matrix<float>("x", 0, 5), Vector<float>()));
  EXPECT_NO_THROW(newton_schulz(Execution(), Matrix<float>("x", 5, 0), Vector<float>()));
}

TEST(NewtonSchulz, ANaNIsNotHidden) {
  auto values = test::normal_values(12, 4);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  for (float const v : newton_schulz_of(values, 3, 4)) EXPECT_TRUE(std::isnan(v));
}

TEST(NewtonSchulz, IsBitwiseRepeatable) {
  auto const values = test::normal_values(48 * 80, 5);
  EXPECT_EQ(newton_schulz_of(values, 48, 80), newton_schulz_of(values, 48, 80));
}

TEST(NewtonSchulz, AWorkspaceTooSmallIsRefused) {
  EXPECT_THROW(newton_schulz(Execution(), Matrix<float>("x", 3, 5),
                             Vector<float>("w", newton_schulz_workspace(3, 5) - 1)),
               Error);
}

TEST(NewtonSchulz, CountsFlopOnTheOrientedMatrix) {
  // 5 iterations: X X^T and B X, 2 r^2 c each, A^2, 2 r^3.
  EXPECT_EQ(newton_schulz_flop(2, 3), 5 * (2 * 2 * 4 * 3 + 2 * 8));
  EXPECT_EQ(newton_schulz_flop(3, 2), newton_schulz_flop(2, 3));
}

// Parts of two or three ranks, summed by hand. Beside the error of the iterations (as above) comes that of A, about 10 u
// beside its trace: it moves the image of a singular value s by 10 u / (2 s^2). A random matrix with c >= 3 r has s^2 above
// (1 - sqrt(1/3))^2 / r = 0.18 / r of the squared norm (Marchenko and Pastur): 28 r u.
TEST(NewtonSchulz, TheGramFormOnPartsIsThatOfTheWhole) {
  Execution const exec;
  for (auto const& [r, c] : {std::pair(1, 3), {3, 10}, {16, 64}, {50, 150}, {64, 200}})
    for (bool tall : {false, true})
      for (int ranks : {1, 2, 3}) {
        auto const values = test::normal_values(std::size_t(r) * c, 6);
        int const rows = tall ? c : r, columns = tall ? r : c;
        auto const expected = reference(values, rows, columns);
        auto const each = (c + ranks - 1) / ranks;
        std::vector<Matrix<float>> parts;
        std::vector<float> sum(std::size_t(r) * r, 0.0f);
        for (int begin = 0; begin < c; begin += each) {
          int const end = std::min(c, begin + each);
          std::vector<float> part;
          for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j)
              if (auto const along = tall ? i : j; along >= begin && along < end)
                part.push_back(values[std::size_t(i * columns + j)]);
          parts.push_back(test::to_device(part, tall ? end - begin : r, tall ? r : end - begin));
          Matrix<float> const gram("gram", r, r);
          newton_schulz_gram(exec, tall, parts.back(), gram);
          auto const host = test::to_host(gram);
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += host[i];
        }
        double error = 0, norm = 0;
        for (std::size_t k = 0; k < parts.size(); ++k) {
          auto const& part = parts[k];
          auto const size =
              newton_schulz_finish_workspace(std::int64_t(part.extent(0)), std::int64_t(part.extent(1)), r);
          std::vector<float> const garbage(std::size_t(size), std::nanf(""));
          newton_schulz_finish(exec, tall, test::to_device(sum, r, r), part, test::to_device(garbage));
          auto const host = test::to_host(part);
          for (std::size_t i = 0; i < part.extent(0); ++i)
            for (std::size_t j = 0; j < part.extent(1); ++j) {
              auto const row = i + (tall ? k * std::size_t(each) : 0),
                         column = j + (tall ? 0 : k * std::size_t(each));
              auto const e = expected[row * std::size_t(columns) + column];
              error += std::pow(host[i * part.extent(1) + j] - e, 2);
              norm += e * e;
            }
        }
        EXPECT_LE(std::sqrt(error), (3410 + 28 * r) * 0x1p-24 * std::sqrt(norm))
            << r << " " << c << " " << tall;
      }
}

TEST(NewtonSchulz, TheGramFormLeavesAZeroMatrixZeroAndRefusesASmallWorkspace) {
  Execution const exec;
  Matrix<float> const x("x", 3, 5), gram("gram", 3, 3);
  newton_schulz_gram(exec, false, x, gram);
  auto const size = newton_schulz_finish_workspace(3, 5, 3);
  newton_schulz_finish(exec, false, gram, x, Vector<float>("w", size));
  for (float const v : test::to_host(x)) EXPECT_EQ(v, 0);
  EXPECT_THROW(newton_schulz_finish(exec, false, gram, x, Vector<float>("w", size - 1)), Error);
}
