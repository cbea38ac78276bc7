/// What a model reads for a batch of b samples.
#pragma once

#include <prowl/core/types.hpp>

#include <vector>

namespace prowl::dit {

template <class T>
struct Input {
  Batch<T> latent;            ///< x_t: b x C x (H * W)
  Vector<T> time;             ///< t: b
  std::vector<Batch<T>> text; ///< of each encoder: b x T_e x D_e
  Matrix<T> pooled;           ///< b x P
};

} // namespace prowl::dit
