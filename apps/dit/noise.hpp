/// Noisy training samples for flow matching, as pure functions of (seed, sample number): no result depends on
/// the ranks.
#pragma once

#include <dit/input.hpp>

#include <prowl/core/types.hpp>

#include <cstdint>

namespace prowl::dit {

/// Sample i of the batch has the number first + i, counted over the whole training and all ranks. From clean
/// latents x (b x C x (H * W)): t = sigmoid(a standard normal number), noisy = (1 - t) x + t e, velocity = e
/// - x.
template <class T>
void make_noisy(Execution const& exec, std::uint64_t seed, std::uint64_t first, Batch<T const> const& clean,
                Vector<T> const& time, Batch<T> const& noisy, Batch<T> const& velocity);

/// Sets all text features and the pooled ones of a sample to zero with the given probability.
template <class T>
void drop_captions(Execution const& exec, std::uint64_t seed, std::uint64_t first, double probability,
                   Input<T> const& input);

/// Standard normal numbers, a stream a sample: where sampling starts.
template <class T>
void fill_normal(Execution const& exec, std::uint64_t seed, std::uint64_t first, Batch<T> const& latents);

} // namespace prowl::dit
