/// Arrays between a test, which computes on the host, and the code under test.
#pragma once

#include <prowl/core/random.hpp>
#include <prowl/core/types.hpp>

#include <vector>

namespace prowl::test {

template <class T>
Vector<T> to_device(std::vector<T> const& values) {
  Vector<T> v("values", values.size());
  auto const mirror = Kokkos::create_mirror_view(v);
  for (std::size_t i = 0; i < values.size(); ++i) mirror(i) = values[i];
  Kokkos::deep_copy(v, mirror);
  return v;
}

/// Row-major.
template <class T>
Matrix<T> to_device(std::vector<T> const& values, std::int64_t rows, std::int64_t columns) {
  Matrix<T> m("values", rows, columns);
  Kokkos::deep_copy(as_vector(m), to_device(values));
  return m;
}

template <class T>
std::vector<T> to_host(Vector<T> const& v) {
  auto const mirror = Kokkos::create_mirror_view(v);
  Kokkos::deep_copy(mirror, v);
  std::vector<T> values(v.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = mirror(i);
  return values;
}

template <class T>
std::vector<T> to_host(Matrix<T> const& m) {
  return to_host(as_vector(m));
}

/// Standard normal numbers times a scale.
template <class T = float>
std::vector<T> normal_values(std::size_t size, std::uint64_t stream, double scale = 1) {
  Random const random(42, stream);
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = T(scale * random.normal(i));
  return values;
}

} // namespace prowl::test
