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

} // namespace prowl
