/// The bfloat16 storage type: the upper half of a float. Arithmetic is done in float.
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>

namespace prowl {

struct bfloat16 {
  std::uint16_t bits;

  /// Rounds to nearest, ties to even; beyond the largest finite value to infinity. A NaN stays a NaN of the
  /// same sign.
  KOKKOS_INLINE_FUNCTION static bfloat16 from_float(float value) {
    std::uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    // The carry of the rounding moves into the exponent as it should, but it could turn a NaN into an
    // infinity.
    bool const nan = (u & 0x7FFFFFFFu) > 0x7F800000u;
    std::uint32_t const rounded = u + 0x7FFFu + ((u >> 16) & 1u);
    return {std::uint16_t((nan ? (u | 0x00400000u) : rounded) >> 16)};
  }

  /// Exact.
  KOKKOS_INLINE_FUNCTION float to_float() const {
    std::uint32_t const u = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &u, sizeof value);
    return value;
  }
};

static_assert(sizeof(bfloat16) == 2);

} // namespace prowl
