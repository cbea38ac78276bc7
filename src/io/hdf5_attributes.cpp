#include <prowl/io/hdf5_attributes.hpp>

namespace prowl::hdf5 {

namespace {

std::string about(std::string const& context, char const* name) {
  return fmt::format("{}: attribute \"{}\"", context, name);
}

void write(hid_t object, char const* name, hid_t type, void const* value, std::string const& context) {
  auto const where = about(context, name);
  Handle const space(H5Screate(H5S_SCALAR), where);
  Handle const attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), where);
  check(H5Awrite(attribute.get(), type, value), where);
}

// The opened attribute, which must hold one value of the class; an empty handle where there is none.
Handle open(hid_t object, char const* name, H5T_class_t kind, char const* kind_name,
            std::string const& where) {
  if (check(H5Aexists(object, name), where) == 0) return {};
  Handle attribute(H5Aopen(object, name, H5P_DEFAULT), where);
  Handle const type(H5Aget_type(attribute.get()), where);
  Handle const space(H5Aget_space(attribute.get()), where);
  if (H5Tget_class(type.get()) != kind || H5Sget_simple_extent_npoints(space.get()) != 1)
    throw Error("{}: one {} expected", where, kind_name);
  return attribute;
}

} // namespace

void write_attribute(hid_t object, char const* name, std::int64_t value, std::string const& context) {
  Lock const lock;
  write(object, name, H5T_NATIVE_INT64, &value, context);
}

void write_attribute(hid_t object, char const* name, std::string const& value, std::string const& context) {
  Lock const lock;
  Handle const type(H5Tcopy(H5T_C_S1), about(context, name));
  check(H5Tset_size(type.get(), H5T_VARIABLE), about(context, name));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), about(context, name));
  char const* text = value.c_str();
  write(object, name, type.get(), &text, context);
}

std::optional<std::int64_t> read_integer(hid_t object, char const* name, std::string const& context) {
  Lock const lock;
  auto const where = about(context, name);
  auto const attribute = open(object, name, H5T_INTEGER, "integer", where);
  if (attribute.get() < 0) return {};
  std::int64_t value = 0;
  check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), where);
  return value;
}

std::optional<std::string> read_string(hid_t object, char const* name, std::string const& context) {
  Lock const lock;
  auto const where = about(context, name);
  auto const attribute = open(object, name, H5T_STRING, "string", where);
  if (attribute.get() < 0) return {};
  Handle const type(H5Aget_type(attribute.get()), where);
  if (check(H5Tis_variable_str(type.get()), where) > 0) {
    char* text = nullptr;
    check(H5Aread(attribute.get(), type.get(), &text), where);
    std::string value(text ? text : "");
    H5free_memory(text);
    return value;
  }
  auto const size = H5Tget_size(type.get());
  if (size > std::size_t{1} << 26) throw Error("{}: a string of {} bytes", where, size);
  std::string value(size, '\0');
  check(H5Aread(attribute.get(), type.get(), value.data()), where);
  return std::string(value.c_str());
}

} // namespace prowl::hdf5
