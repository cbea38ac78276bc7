/// Conversions between float and bfloat16 vectors.
#pragma once

#include <prowl/core/bfloat16.hpp>
#include <prowl/core/types.hpp>

namespace prowl {

/// target_i <- source_i, rounded to nearest even. Throws Error if the sizes differ.
void to_bfloat16(Execution const& exec, Vector<float const> const& source, Vector<bfloat16> const& target);

/// target_i <- source_i, exactly. Throws Error if the sizes differ.
void to_float(Execution const& exec, Vector<bfloat16 const> const& source, Vector<float> const& target);

} // namespace prowl
