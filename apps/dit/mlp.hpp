/// SwiGLU: down(SiLU(gate) * up), gate and up the halves of one linear layer's output (Shazeer,
/// arXiv:2002.05202).
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

template <class T>
struct MlpWeights {
  Matrix<T const> gate_up, gate_up_bias; ///< 8d x d and 8d x 1; the first 4d outputs are the gate
  Matrix<T const> down, down_bias;       ///< d x 4d and d x 1
};
template <class T>
struct MlpGradients {
  Matrix<T> gate_up, gate_up_bias, down, down_bias;
};
template <class T>
struct MlpSpace {
  Matrix<T> gate_up; ///< N x 8d
  Matrix<T> hidden;  ///< N x 4d
};

template <class T>
void mlp(Execution const& exec, MlpWeights<T> const& w, Matrix<T const> const& x, MlpSpace<T> const& space,
         Matrix<T> const& y);

/// `space` as the forward pass left it; on return it is used up. `dy` holds the gradient of y and becomes
/// that of x.
template <class T>
void mlp_backward(Execution const& exec, MlpWeights<T> const& w, Matrix<T const> const& x,
                  MlpSpace<T> const& space, Matrix<T> const& dy, MlpGradients<T> const& gradients);

} // namespace prowl::dit
