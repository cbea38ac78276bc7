/// Checks of what a caller passes as an index or a size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prowl {

/// Throws Error, "unit 7, expected 0 to 3", unless index < count. One that was negative before it became a std::size_t is
/// shown as it was.
void require_index(char const* what, std::size_t index, std::size_t count);

/// Throws Error, "ranks: 0, expected 1 to 16777216", unless first <= value <= last.
void require_between(char const* what, std::int64_t value, std::int64_t first, std::int64_t last);

} // namespace prowl
