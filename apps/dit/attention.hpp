/// Joint attention over the tokens of both streams, softmax(q k^T / 8) v, a sample at a time.
///
/// q, k, v and the output are (samples * heads) x tokens x 64; the scores of one sample, heads x tokens x
/// tokens, are scratch: the backward pass computes them again.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

template <class T>
void attention(Execution const& exec, int heads, Batch<T> const& q, Batch<T> const& k, Batch<T> const& v,
               Batch<T> const& scores, Batch<T> const& out);

/// On entry `dout` holds the output's gradient; on return dout, k and v hold those of q, k and v.
template <class T>
void attention_backward(Execution const& exec, int heads, Batch<T> const& q, Batch<T> const& k,
                        Batch<T> const& v, Batch<T> const& scores, Batch<T> const& dscores,
                        Batch<T> const& dout);

} // namespace prowl::dit
