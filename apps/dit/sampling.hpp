/// Images from noise: Euler steps along the model's velocity with classifier-free guidance (Ho, Salimans,
/// arXiv:2207.12598).
#pragma once

#include <dit/model.hpp>

namespace prowl::dit {

struct SamplingOptions {
  int steps = 50;
  double guidance = 5.0; ///< w of v = v_uncond + w (v_cond - v_uncond)
};

/// Takes `latents`, noise at t = 1 (b x C x (H * W)), to t = 0 in place. Of `captions` only text and pooled
/// are read. The captioned and the uncaptioned half go through the model together: its capacity must be at
/// least 2 b.
template <class T>
void sample(Execution const& exec, Model<T>& model, Parameters<T>& parameters, Input<T> const& captions,
            SamplingOptions const& options, Batch<T> const& latents);

} // namespace prowl::dit
