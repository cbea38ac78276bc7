#include <prowl/io/detail/array_format.hpp>

#include <fmt/ranges.h>

#include <array>

namespace prowl::detail {

hid_t file_type(ElementType type) {
  switch (type) {
  case ElementType::float32:
    return H5T_IEEE_F32LE;
  case ElementType::float64:
    return H5T_IEEE_F64LE;
  default:
    return H5T_STD_I64LE;
  }
}

hid_t memory_type(ElementType type) {
  switch (type) {
  case ElementType::float32:
    return H5T_NATIVE_FLOAT;
  case ElementType::float64:
    return H5T_NATIVE_DOUBLE;
  default:
    return H5T_NATIVE_INT64;
  }
}

char const* type_name(ElementType type) {
  char const* const names[] = {"float32", "float64", "int64"};
  return names[int(type)];
}

std::int64_t type_size(ElementType type) { return type == ElementType::float32 ? 4 : 8; }

std::int64_t columns(std::vector<std::int64_t> const& shape) {
  std::int64_t product = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) product *= shape[d];
  return product;
}

std::string shape_name(std::vector<std::int64_t> const& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::uint64_t checksum_of_list(std::vector<HeaderArray> const& arrays) {
  std::string bytes;
  for (auto const& a : arrays)
    bytes += fmt::format("{} {} {} {}\n", a.name.size(), a.name, type_name(a.type), shape_name(a.shape));
  return checksum(bytes.data(), 0, std::int64_t(bytes.size()));
}

RowSelection::RowSelection(std::vector<std::int64_t> const& shape, std::int64_t begin, std::int64_t end) {
  std::array<hsize_t, H5S_MAX_RANK> extents{}, start{}, count{};
  for (std::size_t d = 0; d < shape.size(); ++d) extents[d] = count[d] = hsize_t(shape[d]);
  start[0] = hsize_t(begin);
  count[0] = hsize_t(end - begin);
  file = hdf5::Handle(H5Screate_simple(int(shape.size()), extents.data(), nullptr), "dataspace");
  memory = hdf5::Handle(H5Screate_simple(int(shape.size()), count.data(), nullptr), "dataspace");
  hdf5::check(H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
              "rows");
}

void sum_over_ranks(MPI_Comm comm, std::vector<std::uint64_t>& sums) {
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), int(sums.size()), MPI_UINT64_T, MPI_SUM, comm);
}

} // namespace prowl::detail
