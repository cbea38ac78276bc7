#include <prowl/core/index.hpp>

#include <prowl/core/error.hpp>

namespace prowl {

void require_index(char const* what, std::size_t index, std::size_t count) {
  if (index < count) return;
  if (count == 0) throw Error("{} {}, but there is none", what, std::int64_t(index));
  throw Error("{} {}, expected 0 to {}", what, std::int64_t(index), count - 1);
}

void require_between(char const* what, std::int64_t value, std::int64_t first, std::int64_t last) {
  if (value < first || value > last) throw Error("{}: {}, expected {} to {}", what, value, first, last);
}

void require_part(std::int64_t begin, std::int64_t count, std::size_t size) {
  if (begin < 0 || count < 0 || begin > std::int64_t(size) || count > std::int64_t(size) - begin)
    throw Error("{} elements from element {} on, expected a part of {}", count, begin, size);
}

void require_matrix(std::int64_t rows, std::int64_t columns, std::size_t size) {
  if (rows < 0 || columns < 0 || (rows > 0 && columns > std::int64_t(size) / rows))
    throw Error("a matrix of {} x {} in {} elements", rows, columns, size);
}

} // namespace prowl
