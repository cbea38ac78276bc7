/// Vectors of float to vectors of bfloat16; join_shards is the way back.
#pragma once

#include <prowl/core/bfloat16.hpp>
#include <prowl/core/types.hpp>

namespace prowl {

/// target_i <- source_i, rounded to nearest even; what is finite stays finite, beyond the largest bfloat16 as
/// that. Throws Error if the sizes differ.
void to_bfloat16(Execution const& exec, Vector<float const> const& source, Vector<bfloat16> const& target);

} // namespace prowl
