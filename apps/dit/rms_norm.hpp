/// RMSNorm of rows with a weight, times a learned scalar: what the features of a text encoder go through
/// first.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

/// The eps of every RMSNorm and LayerNorm.
inline constexpr double norm_eps = 1e-6;

/// y = s w x / rms(x) for each row; `inverse_rms` (one a row) is kept for the backward pass. w is columns x
/// 1, s 1 x 1.
template <class T>
void rms_norm(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w,
              Matrix<T const> const& scalar, Matrix<T> const& y, Vector<T> const& inverse_rms);

/// The gradients of w and s from dy; x itself is frozen.
template <class T>
void rms_norm_backward(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w,
                       Matrix<T const> const& scalar, Vector<T> const& inverse_rms, Matrix<T const> const& dy,
                       Matrix<T> const& dw, Matrix<T> const& dscalar);

} // namespace prowl::dit
