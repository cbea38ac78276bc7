/// Momentum in the form of torch.optim.Muon: an exponential mean of the gradients. Sizes that differ throw
/// Error.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl {

/// m <- mu m + (1 - mu) g.
void momentum(Execution const& exec, float mu, Vector<float const> const& g, Vector<float> const& m);

/// u <- (1 - mu) g + mu m, with the m that momentum() has already updated. u may be g or m.
void nesterov(Execution const& exec, float mu, Vector<float const> const& g, Vector<float const> const& m,
              Vector<float> const& u);

} // namespace prowl
