/// Linear layers over rows of tokens, Y = X W^T + b, and the small functions of rows around them.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

/// Y <- X W^T + beta Y; X is N x in, W out x in, Y N x out.
template <class T>
void linear(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w, Matrix<T> const& y,
            T beta = 0);

/// Y <- X W^T + b; b is out x 1.
template <class T>
void linear(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& w,
            Matrix<T const> const& bias, Matrix<T> const& y);

/// dW <- dY^T X.
template <class T>
void linear_weight_gradient(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& dy,
                            Matrix<T> const& dw);

/// dX <- dY W + beta dX.
template <class T>
void linear_input_gradient(Execution const& exec, Matrix<T const> const& w, Matrix<T const> const& dy,
                           Matrix<T> const& dx, T beta = 0);

/// out <- the sum of the rows of x: the gradient of a bias. out is columns x 1.
template <class T>
void sum_rows(Execution const& exec, Matrix<T const> const& x, Matrix<T> const& out);

/// y <- x sigmoid(x), element by element.
template <class T>
void silu(Execution const& exec, Matrix<T const> const& x, Matrix<T> const& y);

/// dx <- dy d(silu)/dx; dx may be dy.
template <class T>
void silu_backward(Execution const& exec, Matrix<T const> const& x, Matrix<T const> const& dy,
                   Matrix<T> const& dx);

} // namespace prowl::dit
