#include "../arrays.hpp"

#include <prowl/core/error.hpp>
#include <prowl/linalg/blas.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace prowl;

namespace {

template <class T>
std::vector<T> values(std::size_t size, std::uint64_t stream) {
  return test::normal_values<T>(size, stream);
}

// Checks C = alpha op(A) op(B) + beta C0, with C0 unread if beta = 0. The bound of an inner product of k
// terms in any order: (k + 3) u times the sum of the magnitudes (k for the sum and products, 3 for alpha,
// beta and the last addition).
template <class T>
void expect_product(T const* c, Op op_a, Op op_b, int m, int n, int k, double alpha, T const* a, T const* b,
                    double beta, T const* c0) {
  double const u = std::numeric_limits<T>::epsilon() / 2;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (int l = 0; l < k; ++l) {
        double const term = double(op_a == Op::none ? a[i * k + l] : a[l * m + i]) *
                            double(op_b == Op::none ? b[l * n + j] : b[j * k + l]);
        sum += alpha * term;
        magnitude += std::abs(alpha * term);
      }
      if (beta != 0) {
        sum += beta * c0[i * n + j];
        magnitude += std::abs(beta * c0[i * n + j]);
      }
      // Twice, because for T = double the reference rounds as well.
      ASSERT_NEAR(double(c[i * n + j]), sum, 2 * (k + 3) * u * magnitude) << i << ", " << j;
    }
}

template <class T>
Matrix<T> matrix(std::vector<T> const& v, Op op, int rows, int columns) {
  return op == Op::none ? test::to_device(v, rows, columns) : test::to_device(v, columns, rows);
}

struct Shape {
  int m, n, k;
};

constexpr Shape shapes[] = {{1, 1, 1}, {1, 7, 5},    {7, 1, 5},    {5, 7, 1},
                            {4, 6, 8}, {33, 65, 17}, {130, 50, 64}};
constexpr Op ops[] = {Op::none, Op::transpose};

} // namespace

template <class T>
class Blas : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Blas, Types);

TYPED_TEST(Blas, GemmEqualsPlainLoopsForEveryOperation) {
  using T = TypeParam;
  for (auto const [m, n, k] : shapes)
    for (Op const op_a : ops)
      for (Op const op_b : ops) {
        auto const a = values<T>(m * k, 1), b = values<T>(k * n, 2), c0 = values<T>(m * n, 3);
        auto const c = test::to_device(c0, m, n);
        gemm(Execution(), op_a, op_b, T(0.75), matrix(a, op_a, m, k), matrix(b, op_b, k, n), T(-1.5), c);
        expect_product(test::to_host(c).data(), op_a, op_b, m, n, k, 0.75, a.data(), b.data(), -1.5,
                       c0.data());
      }
}

TYPED_TEST(Blas, WithBetaZeroTheOldResultIsNotRead) {
  using T = TypeParam;
  for (auto const [m, n, k] : shapes) {
    auto const a = values<T>(m * k, 1), b = values<T>(k * n, 2);
    std::vector<T> const nan(m * n, std::numeric_limits<T>::quiet_NaN());
    auto const c = test::to_device(nan, m, n);
    gemm(Execution(), Op::none, Op::none, T(1), test::to_device(a, m, k), test::to_device(b, k, n), T(0), c);
    expect_product(test::to_host(c).data(), Op::none, Op::none, m, n, k, 1, a.data(), b.data(), 0,
                   nan.data());

    auto const square = test::to_device(std::vector<T>(m * m, nan[0]), m, m);
    syrk(Execution(), Op::none, T(1), test::to_device(a, m, k), T(0), square);
    expect_product(test::to_host(square).data(), Op::none, Op::transpose, m, m, k, 1, a.data(), a.data(), 0,
                   nan.data());
  }
}

TYPED_TEST(Blas, BatchedGemmEqualsPlainLoopsForEveryMatrix) {
  using T = TypeParam;
  int const batch = 3, m = 5, n = 4, k = 6;
  for (Op const op_a : ops)
    for (Op const op_b : ops) {
      auto const va = values<T>(batch * m * k, 1), vb = values<T>(batch * k * n, 2),
                 vc = values<T>(batch * m * n, 3);
      auto const stack = [](std::vector<T> const& v, int rows, int columns) {
        Batch<T> s("stack", batch, rows, columns);
        Kokkos::deep_copy(Vector<T>(s.data(), s.size()), test::to_device(v));
        return s;
      };
      auto const a = op_a == Op::none ? stack(va, m, k) : stack(va, k, m);
      auto const b = op_b == Op::none ? stack(vb, k, n) : stack(vb, n, k);
      auto const c = stack(vc, m, n);
      gemm(Execution(), op_a, op_b, T(2), a, b, T(0.5), c);
      auto const result = test::to_host(Vector<T>(c.data(), c.size()));
      for (int i = 0; i < batch; ++i)
        expect_product(result.data() + i * m * n, op_a, op_b, m, n, k, 2, va.data() + i * m * k,
                       vb.data() + i * k * n, 0.5, vc.data() + i * m * n);
    }
}

TYPED_TEST(Blas, SyrkWritesBothTrianglesAlike) {
  using T = TypeParam;
  for (auto const [m, n, k] : shapes)
    for (Op const op : ops) {
      auto const a = values<T>(n * k, 1);
      auto c0 = values<T>(n * n, 2);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) c0[i * n + j] = c0[j * n + i];
      auto const c = test::to_device(c0, n, n);
      syrk(Execution(), op, T(0.75), matrix(a, op, n, k), T(-1.5), c);
      auto const result = test::to_host(c);
      expect_product(result.data(), op, op == Op::none ? Op::transpose : Op::none, n, n, k, 0.75, a.data(),
                     a.data(), -1.5, c0.data());
    }
}

TYPED_TEST(Blas, SyrkOfASymmetricMatrixIsItsSquare) {
  using T = TypeParam;
  int const n = 67;
  auto a = values<T>(n * n, 1);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) a[i * n + j] = a[j * n + i];
  Matrix<T> c("c", n, n);
  syrk(Execution(), Op::none, T(1), test::to_device(a, n, n), T(0), c);
  expect_product(test::to_host(c).data(), Op::none, Op::none, n, n, n, 1, a.data(), a.data(), 0, a.data());
}

TYPED_TEST(Blas, AnEmptySumScalesTheResult) {
  using T = TypeParam;
  Execution const exec;
  Matrix<T> const a("a", 2, 0), b("b", 0, 2);
  T const nan = std::numeric_limits<T>::quiet_NaN();
  auto const c = test::to_device(std::vector<T>{2, 4, 6, 8}, 2, 2),
             d = test::to_device(std::vector<T>(4, nan), 2, 2);
  gemm(exec, Op::none, Op::none, T(1), a, b, T(0.5), c);
  gemm(exec, Op::none, Op::none, T(1), a, b, T(0), d);
  EXPECT_EQ(test::to_host(c), (std::vector<T>{1, 2, 3, 4}));
  EXPECT_EQ(test::to_host(d), (std::vector<T>{0, 0, 0, 0}));
  syrk(exec, Op::none, T(1), a, T(2), c);
  EXPECT_EQ(test::to_host(c), (std::vector<T>{2, 4, 6, 8}));
}

TYPED_TEST(Blas, EmptyResultsAreNoWork) {
  using T = TypeParam;
  Execution const exec;
  EXPECT_NO_THROW(gemm(exec, Op::none, Op::none, T(1), Matrix<T>("a", 0, 3), Matrix<T>("b", 3, 2), T(0),
                       Matrix<T>("c", 0, 2)));
  EXPECT_NO_THROW(gemm(exec, Op::none, Op::none, T(1), Matrix<T>("a", 2, 3), Matrix<T>("b", 3, 0), T(0),
                       Matrix<T>("c", 2, 0)));
  EXPECT_NO_THROW(syrk(exec, Op::none, T(1), Matrix<T>("a", 0, 3), T(0), Matrix<T>("c", 0, 0)));
  EXPECT_NO_THROW(gemm(exec, Op::none, Op::none, T(1), Batch<T>("a", 0, 2, 3), Batch<T>("b", 0, 3, 2), T(0),
                       Batch<T>("c", 0, 2, 2)));
}

TYPED_TEST(Blas, ShapesThatDoNotFitAreRefused) {
  using T = TypeParam;
  Execution const exec;
  Matrix<T> const two_three("a", 2, 3), three_two("b", 3, 2), two_two("c", 2, 2), three_three("d", 3, 3);
  EXPECT_THROW(gemm(exec, Op::none, Op::none, T(1), two_three, two_three, T(0), two_three), Error);
  EXPECT_THROW(gemm(exec, Op::none, Op::none, T(1), two_three, three_two, T(0), three_three), Error);
  EXPECT_THROW(gemm(exec, Op::transpose, Op::none, T(1), two_three, three_two, T(0), two_two), Error);
  EXPECT_THROW(syrk(exec, Op::none, T(1), two_three, T(0), three_three), Error);
  EXPECT_THROW(syrk(exec, Op::transpose, T(1), two_three, T(0), two_two), Error);
  EXPECT_THROW(syrk(exec, Op::none, T(1), two_three, T(0), two_three), Error);
  EXPECT_THROW(gemm(exec, Op::none, Op::none, T(1), Batch<T>("a", 2, 2, 2), Batch<T>("b", 3, 2, 2), T(0),
                    Batch<T>("c", 3, 2, 2)),
               Error);
}

TYPED_TEST(Blas, ExtentsBeyondInt) {
  using T = TypeParam;
  // One element's address stands for all: the extents are refused before anything is read.
  T element = 0;
  auto const long_side = std::size_t(1) << 31;
  Matrix<T const> const row(&element, 1, long_side), column(&element, long_side, 1);
  Matrix<T> const one("c", 1, 1);
  Execution const exec;
  EXPECT_THROW(gemm(exec, Op::none, Op::none, T(1), row, column, T(0), one), Error);
  EXPECT_THROW(syrk(exec, Op::none, T(1), row, T(0), one), Error);
}
