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

} // namespace prowl
