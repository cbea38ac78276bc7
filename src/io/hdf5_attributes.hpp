/// Attributes of HDF5 objects: strings and integers.
#pragma once

#include <prowl/io/hdf5.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace prowl::hdf5 {

/// Creates a scalar attribute of `object`, a 64-bit integer or a UTF-8 string of variable length. `context`
/// names the object in errors.
void write_attribute(hid_t object, char const* name, std::int64_t value, std::string const& context);
void write_attribute(hid_t object, char const* name, std::string const& value, std::string const& context);

/// The attribute's value; none where the object has no such attribute. Throws Error where it is of another
/// type.
std::optional<std::int64_t> read_integer(hid_t object, char const* name, std::string const& context);
/// Strings of fixed or of variable length.
std::optional<std::string> read_string(hid_t object, char const* name, std::string const& context);

} // namespace prowl::hdf5
