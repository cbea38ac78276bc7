/// Adaptive normalisation: LN(x) (1 + scale) + shift before a branch, x + gate * branch after it.
///
/// Rows are tokens, `tokens` to a sample; shift, scale and gate have one row a sample.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

/// The statistics of each row that the backward pass needs.
template <class T>
struct RowStatistics {
  Vector<T> mean, inverse_deviation;
};

/// a = LN(x) (1 + scale) + shift.
template <class T>
void modulate(Execution const& exec, int tokens, Matrix<T const> const& x, Matrix<T const> const& shift,
              Matrix<T const> const& scale, Matrix<T> const& a, RowStatistics<T> const& statistics);

/// dx += the gradient through x; dshift and dscale are overwritten.
template <class T>
void modulate_backward(Execution const& exec, int tokens, Matrix<T const> const& x,
                       Matrix<T const> const& scale, RowStatistics<T> const& statistics,
                       Matrix<T const> const& da, Matrix<T> const& dx, Matrix<T> const& dshift,
                       Matrix<T> const& dscale);

/// out = x + gate * branch.
template <class T>
void gated_residual(Execution const& exec, int tokens, Matrix<T const> const& x, Matrix<T const> const& gate,
                    Matrix<T const> const& branch, Matrix<T> const& out);

/// dgate is overwritten; `branch` becomes its own gradient, dout * gate. That of x is dout.
template <class T>
void gated_residual_backward(Execution const& exec, int tokens, Matrix<T const> const& gate,
                             Matrix<T const> const& dout, Matrix<T> const& branch, Matrix<T> const& dgate);

} // namespace prowl::dit
