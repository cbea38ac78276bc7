/// Checks of what a caller passes as an index or a size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prowl {

/// Throws Error, "unit 7, expected 0 to 3", unless index < count. One that was negative before it became a
/// std::size_t is shown as it was.
void require_index(char const* what, std::size_t index, std::size_t count);

/// Throws Error, "ranks: 0, expected 1 to 16777216", unless first <= value <= last.
void require_between(char const* what, std::int64_t value, std::int64_t first, std::int64_t last);

/// Throws Error unless [begin, begin + count) is a part of `size` elements.
void require_part(std::int64_t begin, std::int64_t count, std::size_t size);

/// Throws Error unless rows x columns have a place in `size` elements.
void require_matrix(std::int64_t rows, std::int64_t columns, std::size_t size);

} // namespace prowl
