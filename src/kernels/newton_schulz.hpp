/// The Newton-Schulz map of Muon: five iterations of a quintic that move every singular value near 1.
///
/// X0 = X / max(||X||_F, 1e-7); five times A = X X^T, B = b A + c A^2, X <- a X + B X, with
/// (a, b, c) = (3.4445, -4.7750, 2.0315). Source: K. Jordan, Muon, 2024; arXiv:2608.20818, section 2.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl {

/// Elements of workspace that newton_schulz needs for a rows x columns matrix.
std::int64_t newton_schulz_workspace(std::int64_t rows, std::int64_t columns);

/// Arithmetic of newton_schulz in flop: 20 r^2 c + 10 r^3 with r the smaller and c the larger extent.
double newton_schulz_flop(std::int64_t rows, std::int64_t columns);

/// x <- NS5(x), in place. A tall matrix is not transposed: its Gram matrix is X^T X and X <- a X + X B, which
/// is the same map. A zero matrix stays zero; an empty one is left alone; a NaN or an infinity gives NaNs.
/// The old content of the workspace does not matter. Throws Error if the workspace is too small. Waits for
/// exec once, for the norm.
void newton_schulz(Execution const& exec, Matrix<float> const& x, Vector<float> const& workspace);

/// The Gram form, for a matrix of which each rank of a group has a part, cut along its long side: X <- Q X with Q a
/// polynomial in A = X X^T, where A is the sum of the parts' A and Q is the same on every rank. `tall` is the whole matrix's.
///
/// The squares in A must be floats (elements below 1e18; the map ignores scale), and an error of eps
/// ||X||_F^2 in A moves a singular value s of X by up to eps ||X||_F^2 / (2 s^2): 1% where s is 1/600 of the
/// Frobenius norm.
///
/// First the part's Gram matrix (r x r): X X^T, or X^T X of a tall one; zero for an empty part.
void newton_schulz_gram(Execution const& exec, bool tall, Matrix<float const> const& part,
                        Matrix<float> const& gram);

/// Elements of workspace that newton_schulz_finish needs, r the short side.
std::int64_t newton_schulz_finish_workspace(std::int64_t rows, std::int64_t columns, std::int64_t r);

/// Then, with the sum of all Gram matrices, which is overwritten: the part of NS5 of the whole. Of ten
/// products with X two are left, this one and that before; of r x r there are seventeen in place of five: A_0 = A / tr A, P_k = a I + b A_k + c A_k^2, A_k+1 = P_k A_k P_k, Q = P_4 ... P_0.
void newton_schulz_finish(Execution const& exec, bool tall, Matrix<float> const& gram,
                          Matrix<float> const& part, Vector<float> const& workspace);

} // namespace prowl
