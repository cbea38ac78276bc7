/// Sizes from files, decks and command lines, checked where they become smaller types or are multiplied.
#pragma once

#include <prowl/core/error.hpp>

#include <fmt/ranges.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace prowl {

/// The value as an int. Throws Error naming `what` and the value where it is not in [0, 2147483647].
inline int checked_int(std::int64_t value, std::string_view what) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (value < 0 || value > most) throw Error("{}: {}, expected 0 to {}", what, value, most);
  return int(value);
}

/// Of factors that are 0 or more. Throws Error naming `what` where the product needs more than 63 bits.
inline std::int64_t checked_product(std::initializer_list<std::int64_t> factors, std::string_view what) {
  std::int64_t product = 1;
  for (auto factor : factors)
    if (__builtin_mul_overflow(product, factor, &product))
      throw Error("{}: {}, expected a product below 2^63", what, fmt::join(factors, " x "));
  return product;
}

} // namespace prowl
