/// The update of a weight by a direction, with decoupled weight decay.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl {

/// w <- (1 - rate decay) w - rate scale d, in one pass (arXiv:2608.20818; scale is its shape scale s(W)).
/// Throws Error if the sizes differ.
void decayed_update(Execution const& exec, float rate, float decay, float scale, Vector<float const> const& d,
                    Vector<float> const& w);

/// x <- x + d.
void add(Execution const& exec, Vector<float const> const& d, Vector<float> const& x);

} // namespace prowl
