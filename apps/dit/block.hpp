/// A block: modulated joint attention and MLP on both streams, conditioned by y.
#pragma once

#include <dit/layout.hpp>
#include <dit/workspace.hpp>

#include <prowl/store/parameters.hpp>

namespace prowl::dit {

/// From w.img[l], w.txt[l] and w.y to w.img[l + 1] and, but for the last block, w.txt[l + 1].
template <class T>
void block(Execution const& exec, Parameters<T> const& p, BlockIndex const& index, int l, Workspace<T>& w);

/// Computes the block again from its input streams, then its gradients: w.img_space.dx and w.txt_space.dx go
/// from the block's output to its input, and w.dy gains the block's part. In the last block, the text's is
/// overwritten.
template <class T>
void block_backward(Execution const& exec, Parameters<T> const& p, BlockIndex const& index, int l,
                    Workspace<T>& w);

} // namespace prowl::dit
