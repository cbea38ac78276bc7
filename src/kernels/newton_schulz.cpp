#include <prowl/kernels/newton_schulz.hpp>

#include <prowl/kernels/detail/elementwise.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/linalg/blas.hpp>

#include <algorithm>
#include <cmath>

namespace prowl {

namespace {

constexpr float a = 3.4445f, b = -4.7750f, c = 2.0315f;

void require_extents(char const* what, std::int64_t rows, std::int64_t columns) {
  if (rows < 0 || columns < 0) throw Error("{}: {} x {}, expected no negative extent", what, rows, columns);
}

void require_gram(char const* what, bool tall, Matrix<float const> const& part,
                  Matrix<float const> const& gram) {
  auto const side = tall ? part.extent(1) : part.extent(0);
  if (gram.extent(0) != gram.extent(1) || gram.extent(0) != side)
    throw Error("{}: a Gram matrix of {} x {} for a {} part of {} x {}", what, gram.extent(0), gram.extent(1),
                tall ? "tall" : "wide", part.extent(0), part.extent(1));
}

// target <- factor source. The factor is a double: 1 / norm need not be a float where every element is one.
void scaled_copy(Execution const& exec, double factor, Vector<float const> const& source,
                 Vector<float> const& target) {
  auto const from = source.data();
  auto const to = target.data();
  detail::elementwise(
      "prowl::newton_schulz_normalise", exec, source.size(),
      KOKKOS_LAMBDA(std::int64_t i) { to[i] = float(factor * double(from[i])); });
}

double trace(Execution const& exec, Matrix<float const> const& x) {
  auto const data = x.data();
  auto const n = std::int64_t(x.extent(0));
  double sum = 0;
  Kokkos::parallel_reduce(
      "prowl::newton_schulz_trace", Kokkos::RangePolicy<Execution>(exec, 0, n),
      KOKKOS_LAMBDA(std::int64_t i, double& part) { part += double(data[i * (n + 1)]); }, sum);
  return sum;
}

// P <- a I + b A + P, where P holds c A^2. The term a X of the iteration so becomes part of the product P X.
void complete_polynomial(Execution const& exec, Matrix<float const> const& gram,
                         Matrix<float> const& polynomial) {
  auto const n = std::int64_t(gram.extent(0));
  auto const from = gram.data();
  auto const to = polynomial.data();
  float const linear = b, constant = a;
  detail::elementwise(
      "prowl::newton_schulz_linear", exec, n * n,
      KOKKOS_LAMBDA(std::int64_t i) { to[i] += linear * from[i]; });
  detail::elementwise(
      "prowl::newton_schulz_constant", exec, n,
      KOKKOS_LAMBDA(std::int64_t i) { to[i * (n + 1)] += constant; });
}

} // namespace

std::int64_t newton_schulz_workspace(std::int64_t rows, std::int64_t columns) {
  require_extents("newton_schulz_workspace", rows, columns);
  auto const r = std::min(rows, columns);
  return rows * columns + 2 * r * r;
}

double newton_schulz_flop(std::int64_t rows, std::int64_t columns) {
  require_extents("newton_schulz_flop", rows, columns);
  auto const r = double(std::min(rows, columns)), n = double(std::max(rows, columns));
  return 20 * r * r * n + 10 * r * r * r;
}

void newton_schulz(Execution const& exec, Matrix<float> const& x, Vector<float> const& workspace) {
  auto const rows = std::int64_t(x.extent(0)), columns = std::int64_t(x.extent(1));
  if (rows == 0 || columns == 0) return;
  if (std::int64_t(workspace.size()) < newton_schulz_workspace(rows, columns))
    throw Error("newton_schulz: the workspace has {} elements, {} x {} needs {}", workspace.size(), rows,
                columns, newton_schulz_workspace(rows, columns));
  bool const tall = rows > columns;
  auto const r = std::min(rows, columns);
  auto const gram = as_matrix(slice(workspace, 0, r * r), r, r);
  auto const polynomial = as_matrix(slice(workspace, r * r, r * r), r, r);
  auto const other = as_matrix(slice(workspace, 2 * r * r, rows * columns), rows, columns);

  double const norm = std::sqrt(sum_squares(exec, as_vector(x)));
  // An odd number of iterations between two buffers: starting in the other one, the result ends in x.
  scaled_copy(exec, 1 / std::max(norm, 1e-7), as_vector(x), as_vector(other));
  auto from = other, to = x;
  for (int iteration = 0; iteration < 5; ++iteration) {
    syrk(exec, tall ? Op::transpose : Op::none, 1.0f, from, 0.0f, gram);
    syrk(exec, Op::none, c, gram, 0.0f, polynomial);
    complete_polynomial(exec, gram, polynomial);
    if (tall)
      gemm(exec, Op::none, Op::none, 1.0f, from, polynomial, 0.0f, to);
    else
      gemm(exec, Op::none, Op::none, 1.0f, polynomial, from, 0.0f, to);
    std::swap(from, to);
  }
}

void newton_schulz_gram(Execution const& exec, bool tall, Matrix<float const> const& part,
                        Matrix<float> const& gram) {
  require_gram("newton_schulz_gram", tall, part, gram);
  if (part.size() == 0)
    Kokkos::deep_copy(exec, gram, 0.0f);
  else
    syrk(exec, tall ? Op::transpose : Op::none, 1.0f, part, 0.0f, gram);
}

std::int64_t newton_schulz_finish_workspace(std::int64_t rows, std::int64_t columns, std::int64_t r) {
  require_extents("newton_schulz_finish_workspace", rows, columns);
  require_extents("newton_schulz_finish_workspace", r, r);
  return std::max(rows * columns, r * r) + 3 * r * r;
}

void newton_schulz_finish(Execution const& exec, bool tall, Matrix<float> const& gram,
                          Matrix<float> const& part, Vector<float> const& workspace) {
  auto const rows = std::int64_t(part.extent(0)), columns = std::int64_t(part.extent(1));
  auto const r = std::int64_t(gram.extent(0));
  require_gram("newton_schulz_finish", tall, part, gram);
  if (std::int64_t(workspace.size()) < newton_schulz_finish_workspace(rows, columns, r))
    throw Error(
        "newton_schulz_finish: the workspace has {} elements, a part of {} x {} with short side {} needs {}",
        workspace.size(), rows, columns, r, newton_schulz_finish_workspace(rows, columns, r));
  auto const square = [&](int i) { return as_matrix(slice(workspace, i * r * r, r * r), r, r); };
  auto const polynomial = square(0);
  auto product = square(1), next = square(2);
  auto const scratch = square(3);

  auto const norm = std::max(std::sqrt(trace(exec, gram)), 1e-7);
  scaled_copy(exec, 1 / (norm * norm), as_vector(gram), as_vector(gram));
  for (int iteration = 0; iteration < 5; ++iteration) {
    syrk(exec, Op::none, c, gram, 0.0f, polynomial);
    complete_polynomial(exec, gram, polynomial);
    if (iteration == 0) {
      Kokkos::deep_copy(exec, product, polynomial);
    } else {
      gemm(exec, Op::none, Op::none, 1.0f, polynomial, product, 0.0f, next);
      std::swap(product, next);
    }
    if (iteration == 4) break;
    gemm(exec, Op::none, Op::none, 1.0f, polynomial, gram, 0.0f, scratch);
    gemm(exec, Op::none, Op::none, 1.0f, scratch, polynomial, 0.0f, gram);
  }
  if (part.size() == 0) return;
  auto const before = as_matrix(slice(workspace, 3 * r * r, rows * columns), rows, columns);
  scaled_copy(exec, 1 / norm, as_vector(part), as_vector(before));
  if (tall)
    gemm(exec, Op::none, Op::none, 1.0f, before, product, 0.0f, part);
  else
    gemm(exec, Op::none, Op::none, 1.0f, product, before, 0.0f, part);
}

} // namespace prowl
