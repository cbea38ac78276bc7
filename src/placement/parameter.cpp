#include <prowl/placement/parameter.hpp>

#include <prowl/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>

namespace prowl {

void require_shape(Parameter const& p) {
  if (p.shape.empty() || p.shape.size() > 2 || std::ranges::any_of(p.shape, [](auto n) { return n < 1; }))
    throw Error("parameter {}: shape [{}], expected one or two dimensions of at least 1", p.name,
                fmt::join(p.shape, ", "));
  if (p.shape[0] > largest_parameter / (p.is_matrix() ? p.shape[1] : 1))
    throw Error("parameter {}: shape [{}], expected at most {} elements", p.name, fmt::join(p.shape, ", "),
                largest_parameter);
}

} // namespace prowl
