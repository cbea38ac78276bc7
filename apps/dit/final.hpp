/// Unit "final": LayerNorm modulated by the condition vector, then the linear layer to patches of velocity.
#pragma once

#include <dit/layout.hpp>
#include <dit/workspace.hpp>

#include <prowl/store/parameters.hpp>

namespace prowl::dit {

/// From the last of w.img and w.y to w.prediction.
template <class T>
void final_layer(Execution const& exec, Parameters<T> const& p, FinalIndex const& index, Workspace<T>& w);

/// From w.prediction, which holds its gradient, to w.img_space.dx and w.dy, both overwritten. Follows
/// final_layer().
template <class T>
void final_layer_backward(Execution const& exec, Parameters<T> const& p, FinalIndex const& index,
                          Workspace<T>& w);

} // namespace prowl::dit
