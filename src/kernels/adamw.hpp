/// AdamW: Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2, as
/// torch.optim.AdamW computes it.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl {

inline constexpr float adamw_largest_gradient = 0x1p63f;

struct AdamW {
  double rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double decay = 0.01;
};

/// One step, counted from 1 (it sets the bias correction), of the weights w with the gradient g:
///   w <- (1 - rate decay) w;  m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;
///   w <- w - rate / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon).
/// m and v are zero before the first step. Elements of g beyond 2^63, whose squares are no floats, count as
/// 2^63 with their sign: m / sqrt(v) does not depend on the scale of g. Throws Error if step < 1 or the sizes
/// differ.
void adamw(Execution const& exec, AdamW const& options, std::int64_t step, Vector<float const> const& g,
           Vector<float> const& m, Vector<float> const& v, Vector<float> const& w);

} // namespace prowl
