#include <prowl/io/hdf5_objects.hpp>

#include <fmt/ranges.h>

#include <algorithm>

namespace prowl::hdf5 {

namespace {

/// Deflate makes 1032 bytes of one, at most.
constexpr std::int64_t largest_compression = 1032;

herr_t add_name(hid_t, char const* name, H5L_info_t const*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

Handle open_object(hid_t parent, char const* name, H5I_type_t kind, char const* kind_name,
                   std::string const& where) {
  if (!exists(parent, name, where)) throw Error("{}: missing, a {} expected", where, kind_name);
  Handle object(H5Oopen(parent, name, H5P_DEFAULT), where);
  if (H5Iget_type(object.get()) != kind) throw Error("{}: is no {}", where, kind_name);
  return object;
}

void require_filters(hid_t plan, std::string const& where) {
  int const filters = check(H5Pget_nfilters(plan), where);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = {};
    auto const filter =
        check(H5Pget_filter2(plan, unsigned(i), &flags, &values, nullptr, sizeof name, name, nullptr), where);
    if (H5Zfilter_avail(filter) <= 0)
      throw Error("{}: is stored with filter {} ({}), which this HDF5 does not have", where, int(filter),
                  name);
  }
}

void require_chunks(hid_t dataset, hid_t plan, std::string const& where) {
  auto const shape = shape_of(dataset, where);
  std::vector<hsize_t> chunk(shape.size(), 0);
  if (check(H5Pget_chunk(plan, int(chunk.size()), chunk.data()), where) != int(shape.size()) ||
      std::ranges::count(chunk, hsize_t{0}) > 0)
    throw Error("{}: has chunks of another rank", where);
  std::vector<std::int64_t> counts;
  for (std::size_t d = 0; d < shape.size(); ++d)
    counts.push_back((shape[d] - 1) / std::int64_t(chunk[d]) + 1);
  std::int64_t const expected = product(counts, 0, 1, where);
  Handle const space(H5Dget_space(dataset), where);
  hsize_t found = 0;
  check(H5Dget_num_chunks(dataset, space.get(), &found), where);
  if (std::int64_t(found) != expected)
    throw Error("{}: was not written whole: it has {} of {} chunks", where, found, expected);
}

} // namespace

std::vector<std::string> names_in(hid_t group, std::string const& where) {
  std::vector<std::string> names;
  // In the file's own order: HDF5 1.10 sorts what it has not read where a group is damaged.
  check(H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_name, &names), where);
  std::ranges::sort(names);
  return names;
}

bool exists(hid_t group, char const* name, std::string const& where) {
  if (check(H5Lexists(group, name, H5P_DEFAULT), where) == 0) return false;
  H5L_info_t info;
  check(H5Lget_info(group, name, &info, H5P_DEFAULT), where);
  if (info.type != H5L_TYPE_HARD)
    throw Error("{}: is a soft or an external link, which are not followed", where);
  return true;
}

Handle open_group(hid_t parent, char const* name, std::string const& where) {
  return open_object(parent, name, H5I_GROUP, "group", where);
}

Handle open_dataset(hid_t parent, char const* name, std::string const& where) {
  return open_object(parent, name, H5I_DATASET, "dataset", where);
}

std::vector<std::int64_t> shape_of(hid_t dataset, std::string const& where) {
  Handle const space(H5Dget_space(dataset), where);
  std::vector<hsize_t> extents(std::size_t(check(H5Sget_simple_extent_ndims(space.get()), where)));
  check(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), where);
  for (auto const extent : extents)
    if (extent > hsize_t(INT64_MAX)) throw Error("{}: has an extent of {}", where, extent);
  return {extents.begin(), extents.end()};
}

std::int64_t product(std::vector<std::int64_t> const& shape, std::size_t first, std::int64_t factor,
                     std::string const& where) {
  for (std::size_t d = first; d < shape.size(); ++d)
    if (__builtin_mul_overflow(factor, shape[d], &factor))
      throw Error("{}: {} elements are more than a file can hold", where, fmt::join(shape, " x "));
  return factor;
}

void require_stored(hid_t dataset, std::int64_t file_bytes, std::string const& where) {
  Handle const plan(H5Dget_create_plist(dataset), where), type(H5Dget_type(dataset), where);
  auto const layout = check(H5Pget_layout(plan.get()), where);
  if (layout == H5D_VIRTUAL)
    throw Error("{}: is virtual: its elements would be read from other files", where);
  if (check(H5Pget_external_count(plan.get()), where) > 0)
    throw Error("{}: has external storage: its elements would be read from other files", where);
  require_filters(plan.get(), where);
  auto const shape = shape_of(dataset, where);
  auto const bytes = product(shape, 0, std::int64_t(H5Tget_size(type.get())), where);
  if (bytes == 0) return;
  if (layout == H5D_CHUNKED) {
    std::int64_t const most = H5Pget_nfilters(plan.get()) > 0 ? largest_compression : 1;
    if (bytes / most > file_bytes)
      throw Error("{}: says that it has {} bytes, {}, in a file of {}", where, bytes, fmt::join(shape, " x "),
                  file_bytes);
    return require_chunks(dataset, plan.get(), where);
  }
  auto const stored = std::int64_t(H5Dget_storage_size(dataset));
  if (stored == 0) throw Error("{}: was never written", where);
  if (bytes > file_bytes || stored < bytes)
    throw Error("{}: says that it has {} bytes, {}, of which {} are stored in a file of {}", where, bytes,
                fmt::join(shape, " x "), stored, file_bytes);
  if (layout != H5D_CONTIGUOUS) return;
  auto const offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF || offset > haddr_t(file_bytes - bytes))
    throw Error("{}: its elements are outside of the file", where);
}

} // namespace prowl::hdf5
