/// Sums of squares of floats, as floats: a square may be beyond a float, so the sign, which a sum of squares
/// does not need, says in which unit it is stored.
#pragma once

#include <Kokkos_Core.hpp>

#include <limits>

namespace prowl {

/// Up to the largest float as it is (the bits of a plain float), above that as minus its 2^-200-fold, which
/// reaches to 2^328. A NaN stays one.
KOKKOS_INLINE_FUNCTION float store_square_sum(double sum) {
  constexpr double unit = 0x1p-200, largest = 3.4028234663852886e38;
  return sum <= largest ? float(sum) : -float(unit * sum);
}

KOKKOS_INLINE_FUNCTION double load_square_sum(float stored) {
  return stored < 0 ? -0x1p200 * double(stored) : double(stored);
}

/// Of two that are stored; where all three are floats, their sum as floats add.
inline float add_square_sums(float a, float b) {
  float const sum = a + b;
  bool const plain = a >= 0 && b >= 0 && sum <= std::numeric_limits<float>::max();
  return plain ? sum : store_square_sum(load_square_sum(a) + load_square_sum(b));
}

} // namespace prowl
