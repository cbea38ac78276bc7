/// What the writer and the reader of array files share: types, checksums, header.
#pragma once

#include <prowl/io/array_file.hpp>
#include <prowl/io/hdf5.hpp>

#include <algorithm>
#include <bit>

namespace prowl::detail {

inline constexpr std::int64_t array_format = 2;

hid_t file_type(ElementType type);
hid_t memory_type(ElementType type);
char const* type_name(ElementType type);
std::int64_t type_size(ElementType type);

template <class Pointers>
ElementType type_of(Pointers const& data) {
  return ElementType(data.index());
}

std::int64_t columns(std::vector<std::int64_t> const& shape);
std::string shape_name(std::vector<std::int64_t> const& shape);

constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// The part of the checksum of the elements [begin, begin + size).
template <class T>
std::uint64_t checksum(T const* data, std::int64_t begin, std::int64_t size) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    std::uint64_t bits;
    if constexpr (sizeof(T) == 8)
      bits = std::bit_cast<std::uint64_t>(data[i]);
    else if constexpr (sizeof(T) == 4)
      bits = std::bit_cast<std::uint32_t>(data[i]);
    else
      bits = std::uint8_t(data[i]);
    sum += mix(0x9E3779B97F4A7C15u * std::uint64_t(begin + i) + 0xD1B54A32D192ED03u * bits);
  }
  return sum;
}

/// Summed over the ranks, zero exactly (but for a chance of 2^-64) where their ranges cover [0, rows) `times`
/// times: every begin but 0 and every end but `rows` then cancel.
inline std::uint64_t cover(std::int64_t begin, std::int64_t end) {
  return mix(std::uint64_t(end) + 0x5851F42D4C957F2Du) - mix(std::uint64_t(begin) + 0x5851F42D4C957F2Du);
}

struct HeaderArray {
  std::string name;
  std::vector<std::int64_t> shape;
  ElementType type;
  std::uint64_t checksum;
};

/// Of names, types and shapes, not of the elements' checksums.
std::uint64_t checksum_of_list(std::vector<HeaderArray> const& arrays);

/// The selection of rows [begin, end) in the file's dataset, and the memory that holds them.
struct RowSelection {
  RowSelection(std::vector<std::int64_t> const& shape, std::int64_t begin, std::int64_t end);
  hdf5::Handle file, memory;
};

/// Calls work(first row, last row + 1) for pieces of [begin, end).
template <class Work>
void for_pieces(std::vector<std::int64_t> const& shape, ElementType type, std::int64_t begin,
                std::int64_t end, Work const& work) {
  std::int64_t const rows =
      std::max<std::int64_t>(1, array_file_piece_bytes / (columns(shape) * type_size(type)));
  for (std::int64_t row = begin; row < end; row += rows) work(row, std::min(end, row + rows));
}

void sum_over_ranks(MPI_Comm comm, std::vector<std::uint64_t>& sums);

} // namespace prowl::detail
