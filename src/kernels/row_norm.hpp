/// The row-wise direction of arXiv:2608.20818: gamma * RowNorm, RowNorm(X)_i = X_i / max(||X_i||, 1e-8), over
/// the rows of the oriented matrix: for wide and square matrices their rows, for tall ones (rows > columns)
/// their columns.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl {

inline constexpr double row_norm_epsilon = 1e-8;

/// In place, for wide and square matrices: every row x_i <- gamma / max(||x_i||, 1e-8) x_i, the norm in
/// double. Rows are independent, so x may be the local rows of a sharded matrix. An empty matrix is left
/// alone.
void row_norm(Execution const& exec, float gamma, Matrix<float> const& x);

/// For wide matrices of which each rank has some columns, the part of a rank: sums_i <- sum_j x_ij^2 over
/// them (none: 0), added in double, rounded once and stored as square_sum.hpp says: they add up with
/// add_square_sums. Throws Error unless sums has an element a row.
void row_sum_squares(Execution const& exec, Matrix<float const> const& x, Vector<float> const& sums);

/// In place, with the sums over all columns: x_ij <- gamma / max(sqrt(sums_i), 1e-8) x_ij. Throws Error unless sums has an
/// element a row.
void row_norm_finish(Execution const& exec, float gamma, Vector<float const> const& sums,
                     Matrix<float> const& x);

/// For tall matrices, the part of a rank: sums_j <- sum_i x_ij^2 over the local rows (none: 0), added in
/// double, rounded once and stored likewise. Throws Error unless sums has an element a column.
void column_sum_squares(Execution const& exec, Matrix<float const> const& x, Vector<float> const& sums);

/// For tall matrices, in place, with the sums over all rows: x_ij <- gamma / max(sqrt(sums_j), 1e-8) x_ij.
/// Throws Error unless sums has an element a column.
void column_norm_finish(Execution const& exec, float gamma, Vector<float const> const& sums,
                        Matrix<float> const& x);

} // namespace prowl
