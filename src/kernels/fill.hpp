/// Vectors of random numbers.
#pragma once

#include <prowl/core/random.hpp>
#include <prowl/core/types.hpp>

namespace prowl {

/// x_i <- standard_deviation * (the normal number of index first_index + i). So a part of a vector, filled
/// alone with its own first index, gets what it gets within the whole.
void fill_normal(Execution const& exec, Random const& random, std::uint64_t first_index,
                 float standard_deviation, Vector<float> const& x);

} // namespace prowl
