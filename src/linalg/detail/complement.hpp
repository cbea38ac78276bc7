/// Small kernels that a BLAS lacks, for T = float and double.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::detail {

/// c_ij <- c_ji below the diagonal of a square matrix.
template <class T>
void mirror_upper(Execution const& exec, Matrix<T> const& c);

/// c <- beta c; with beta = 0 the old c is not read.
template <class T>
void scale_matrix(Execution const& exec, T beta, Matrix<T> const& c);

} // namespace prowl::detail
