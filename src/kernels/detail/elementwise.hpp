/// One kernel over the elements of vectors.
#pragma once

#include <prowl/core/error.hpp>
#include <prowl/core/types.hpp>

#include <limits>

namespace prowl::detail {

template <class Body>
struct ElementBlocks {
  // A block a work item: on the host a plain loop over local copies, which compilers vectorise; on a device
  // one element.
  static constexpr std::int64_t block = host_accessible ? 4096 : 1;

  Body body;
  std::int64_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t b) const {
    Body const local = body;
    std::int64_t const begin = b * block, end = begin + block < size ? begin + block : size;
    for (std::int64_t i = begin; i < end; ++i) local(i);
  }
};

/// body(i) for i in [0, size), asynchronously. The body captures pointers and numbers.
template <class Body>
void elementwise(char const* name, Execution const& exec, std::int64_t size, Body const& body) {
  using Blocks = ElementBlocks<Body>;
  if (size == 0) return;
  Kokkos::parallel_for(name,
                       Kokkos::RangePolicy<Execution>(exec, 0, (size + Blocks::block - 1) / Blocks::block),
                       Blocks{body, size});
}

/// A number of teams, which Kokkos counts in 32 bits. Throws where they are more.
inline int teams(char const* kernel, std::int64_t count) {
  if (count > std::numeric_limits<int>::max())
    throw Error("{}: {} rows or blocks, expected at most {}", kernel, count, std::numeric_limits<int>::max());
  return int(count);
}

/// Throws unless a vector has the size that the first one of the call has.
inline void require_size(char const* kernel, char const* name, std::size_t size, std::size_t expected) {
  if (size != expected) throw Error("{}: {} has {} elements, expected {}", kernel, name, size, expected);
}

} // namespace prowl::detail
