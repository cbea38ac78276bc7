/// Rotary positions on the image's 2-D grid (RoPE: Su et al., "RoFormer", arXiv:2104.09864, an axis for each
/// half of a head).
///
/// The first 32 dimensions of a head turn with the patch's row, the last 32 with its column; pairs (2i, 2i+1)
/// of a half by the angle position * 10000^(-i/16).
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

inline constexpr int rope_frequencies = 16;

/// grid * grid rows of 64: (cos, sin) of the 32 pairs' angles, patches row by row.
template <class T>
void rope_table(Execution const& exec, int grid, Matrix<T> const& table);

/// Turns the pair (a, b) by the angle of cosine c and sine s; by the opposite one with -s.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void rotate(T c, T s, T& a, T& b) {
  T const turned = a * c - b * s;
  b = a * s + b * c;
  a = turned;
}

} // namespace prowl::dit
