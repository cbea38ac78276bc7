/// Where Prowl computes, and the arrays it computes on.
#pragma once

#include <prowl/core/index.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace prowl {

using Execution = Kokkos::DefaultExecutionSpace;
using Memory = Execution::memory_space;
using HostMemory = Kokkos::HostSpace;

/// Dense, contiguous, row-major arrays in the memory of `Execution`. Sizes are elements.
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, Memory>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Memory>;
/// A stack of equally shaped matrices: (index, row, column).
template <class T>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, Memory>;

/// True where the host may dereference a Vector, Matrix or Batch.
inline constexpr bool host_accessible =
    Kokkos::SpaceAccessibility<Kokkos::DefaultHostExecutionSpace, Memory>::accessible;

/// The elements of a contiguous vector seen as rows x columns. The result does not own the memory.
/// Throws Error where they are more than there are.
template <class T>
Matrix<T> as_matrix(Vector<T> const& v, std::int64_t rows, std::int64_t columns) {
  require_matrix(rows, columns, v.size());
  return Matrix<T>(v.data(), rows, columns);
}

/// The elements of a contiguous matrix seen as one vector. The result does not own the memory.
template <class T>
Vector<T> as_vector(Matrix<T> const& m) {
  return Vector<T>(m.data(), m.size());
}

/// Elements [begin, begin + size) of a vector; keeps its memory alive. Throws Error where the vector has not
/// all of them.
template <class T>
Vector<T> slice(Vector<T> const& v, std::int64_t begin, std::int64_t size) {
  require_part(begin, size, v.size());
  return Kokkos::subview(v, Kokkos::pair<std::int64_t, std::int64_t>(begin, begin + size));
}

/// An array whose elements are not set: for buffers that are written whole before they are read.
template <class V, class... Extents>
V uninitialised(char const* label, Extents... extents) {
  return V(Kokkos::view_alloc(std::string(label), Kokkos::WithoutInitializing), extents...);
}

} // namespace prowl
