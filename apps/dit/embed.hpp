/// Unit "embed": image patches, text features, pooled text and time, to the two streams and the condition
/// vector.
#pragma once

#include <dit/input.hpp>
#include <dit/layout.hpp>
#include <dit/workspace.hpp>

#include <prowl/store/parameters.hpp>

namespace prowl::dit {

/// Writes w.img[0], w.txt[0] and w.y.
template <class T>
void embed(Execution const& exec, Parameters<T> const& p, EmbedIndex const& index, Input<T> const& input,
           Workspace<T>& w);

/// From the streams' gradients and w.dy.
template <class T>
void embed_backward(Execution const& exec, Parameters<T> const& p, EmbedIndex const& index,
                    Input<T> const& input, Workspace<T>& w);

} // namespace prowl::dit
