// What the fuzzers share: a file of this process, and HDF5 objects of any kind under the names that the readers look for.
#pragma once

#include <prowl/core/error.hpp>
#include <prowl/io/hdf5.hpp>

#include <fuzzer/FuzzedDataProvider.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace fuzz {

using Bytes = FuzzedDataProvider;

inline std::string scratch(char const* name) {
  static std::string const folder = [] {
    char path[] = "/tmp/prowl-fuzz-XXXXXX";
    if (!mkdtemp(path)) std::abort();
    return std::string(path);
  }();
  return folder + "/" + name;
}

inline void write(std::string const& path, void const* data, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(static_cast<char const*>(data), std::streamsize(size));
}

/// Runs what may refuse its input with an Error, which must say something.
template <class Work>
void expect_error_or_none(Work const& work) {
  try {
    work();
  } catch (prowl::Error const& error) {
    if (!*error.what()) std::abort();
  }
}

inline hid_t any_type(Bytes& bytes) {
  switch (bytes.ConsumeIntegralInRange(0, 10)) {
  case 0:
    return H5Tcopy(H5T_IEEE_F32LE);
  case 1:
    return H5Tcopy(H5T_IEEE_F32BE);
  case 2:
    return H5Tcopy(H5T_IEEE_F64LE);
  case 3:
    return H5Tcopy(H5T_STD_I64LE);
  case 4:
    return H5Tcopy(H5T_STD_U8LE);
  case 5: {
    hid_t const half = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    return half;
  }
  case 6: {
    hid_t const text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text,
                bytes.ConsumeBool() ? H5T_VARIABLE : bytes.ConsumeIntegralInRange<std::size_t>(1, 70000));
    return text;
  }
  case 7: {
    hsize_t const extent = bytes.ConsumeIntegralInRange<hsize_t>(1, 4);
    return H5Tarray_create2(H5T_NATIVE_FLOAT, 1, &extent);
  }
  case 8:
    return H5Tvlen_create(H5T_NATIVE_INT);
  case 9: {
    hid_t const pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "a", 0, H5T_NATIVE_FLOAT);
    return pair;
  }
  default:
    return H5Tcopy(H5T_STD_REF_OBJ);
  }
}

/// Few dimensions, small extents mostly.
inline std::vector<hsize_t> any_shape(Bytes& bytes, std::size_t most) {
  std::vector<hsize_t> shape(bytes.ConsumeIntegralInRange<std::size_t>(0, most));
  for (auto& extent : shape)
    extent = bytes.ConsumeIntegralInRange(0, 15) ? bytes.ConsumeIntegralInRange<hsize_t>(0, 4)
                                                 : hsize_t{1} << bytes.ConsumeIntegralInRange(0, 61);
  return shape;
}

inline void any_attribute(Bytes& bytes, hid_t object, char const* name) {
  hid_t const type = any_type(bytes);
  auto const shape = any_shape(bytes, 1);
  hid_t const space = shape.empty() ? H5Screate(bytes.ConsumeIntegralInRange(0, 9) ? H5S_SCALAR : H5S_NULL)
                                    : H5Screate_simple(1, shape.data(), nullptr);
  hid_t const attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

/// All that is written lies in the scratch folder, external storage too: HDF5 writes through it.
/// A dataset, with all, some or none of its elements written, or something else that has its name.
inline void any_object(Bytes& bytes, hid_t parent, char const* name) {
  switch (bytes.ConsumeIntegralInRange(0, 15)) {
  case 0:
    H5Lcreate_soft("/pooled", parent, name, H5P_DEFAULT, H5P_DEFAULT);
    return;
  case 1:
    H5Lcreate_external(scratch("other.h5").c_str(), "/x", parent, name, H5P_DEFAULT, H5P_DEFAULT);
    return;
  case 2:
    H5Lcreate_hard(parent, ".", parent, name, H5P_DEFAULT, H5P_DEFAULT);
    return;
  case 3:
    return;
  default:
    break;
  }
  hid_t const type = any_type(bytes), plan = H5Pcreate(H5P_DATASET_CREATE);
  auto const shape = any_shape(bytes, 5);
  hid_t const space =
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(int(shape.size()), shape.data(), nullptr);
  switch (bytes.ConsumeIntegralInRange(0, 7)) {
  case 0:
    H5Pset_layout(plan, H5D_COMPACT);
    break;
  case 1:
    H5Pset_external(plan, scratch("external").c_str(), 0, 64);
    break;
  case 2:
    H5Pset_virtual(plan, space, scratch("other.h5").c_str(), "/x", space);
    break;
  case 3:
  case 4: {
    std::vector<hsize_t> chunk(shape.size());
    for (auto& extent : chunk) extent = bytes.ConsumeIntegralInRange<hsize_t>(1, 4);
    if (!chunk.empty()) H5Pset_chunk(plan, int(chunk.size()), chunk.data());
    if (bytes.ConsumeBool()) H5Pset_deflate(plan, 1);
    if (bytes.ConsumeBool()) H5Pset_fletcher32(plan);
    break;
  }
  default:
    break;
  }
  hid_t const dataset = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, plan, H5P_DEFAULT);
  hssize_t const points = H5Sget_simple_extent_npoints(space);
  auto const kind = H5Tget_class(type);
  bool const plain =
      kind == H5T_FLOAT || kind == H5T_INTEGER || (kind == H5T_STRING && H5Tis_variable_str(type) == 0);
  if (dataset >= 0 && plain && points > 0 && points < 4096 &&
      points * hssize_t(H5Tget_size(type)) < (1 << 20) && bytes.ConsumeIntegralInRange(0, 7)) {
    std::string values(std::size_t(points) * H5Tget_size(type), '\0');
    for (auto& c : values) c = char(bytes.ConsumeIntegral<std::uint8_t>());
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  } else if (dataset >= 0 && kind == H5T_STRING && H5Tis_variable_str(type) > 0 && points > 0 &&
             points < 64 && bytes.ConsumeBool()) {
    std::string const text = bytes.ConsumeRandomLengthString(40);
    std::vector<char const*> values(std::size_t(points), text.c_str());
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  if (dataset >= 0 && bytes.ConsumeBool()) any_attribute(bytes, dataset, "checksum");
  if (dataset >= 0) H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(plan);
  H5Tclose(type);
}

} // namespace fuzz
