/// Sums over vectors.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl {

/// The sum of x_i^2 in double; 0 for an empty vector. A NaN or an infinity in x gives a NaN or an infinity.
/// The same input gives the same bits on the same machine. Waits for exec.
double sum_squares(Execution const& exec, Vector<float const> const& x);

/// x <- factor x, in floats, or in double where the factor is too small to be a float of full precision.
void scale(Execution const& exec, double factor, Vector<float> const& x);

} // namespace prowl
