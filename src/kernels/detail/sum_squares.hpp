/// The sum of the squares of contiguous elements, by one thread.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::detail {

/// Elements that one call of sum_squares should be given: long runs on the host, coalesced short ones on a
/// device.
inline constexpr std::int64_t sum_run = host_accessible ? 512 : 4;

/// In double, with independent partial sums on the host so that the loop vectorises; the order is fixed.
KOKKOS_INLINE_FUNCTION double sum_squares(float const* x, std::int64_t count) {
  constexpr int lanes = host_accessible ? 8 : 4;
  double partial[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int l = 0; l < lanes; ++l) partial[l] += double(x[i + l]) * double(x[i + l]);
  for (; i < count; ++i) partial[0] += double(x[i]) * double(x[i]);
  double sum = 0;
  for (int l = 0; l < lanes; ++l) sum += partial[l];
  return sum;
}

} // namespace prowl::detail
