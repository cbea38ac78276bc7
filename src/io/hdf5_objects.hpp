/// Opens what lies in an HDF5 file itself, whole: files come from anywhere.
#pragma once

#include <prowl/io/hdf5.hpp>

#include <cstdint>
#include <vector>

namespace prowl::hdf5 {

/// The names in a group, sorted.
std::vector<std::string> names_in(hid_t group, std::string const& where);

/// Whether the group has such a member. Throws Error where it is a soft or an external link.
bool exists(hid_t group, char const* name, std::string const& where);

/// An object of the file, of the kind asked for. Throws Error where it is another, or a soft or an external link.
Handle open_group(hid_t parent, char const* name, std::string const& where);
Handle open_dataset(hid_t parent, char const* name, std::string const& where);

std::vector<std::int64_t> shape_of(hid_t dataset, std::string const& where);

/// The product of a shape's extents from `first` on and of `factor`. Throws Error where it is above 2^63.
std::int64_t product(std::vector<std::int64_t> const& shape, std::size_t first, std::int64_t factor,
                     std::string const& where);

/// Throws Error unless the elements of the dataset are all in its file, which has `file_bytes` bytes, and can be
/// read: refuses external storage, virtual datasets, filters that are not there, chunks never written.
void require_stored(hid_t dataset, std::int64_t file_bytes, std::string const& where);

} // namespace prowl::hdf5
