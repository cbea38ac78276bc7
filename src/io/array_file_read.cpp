#include <prowl/comm/agree.hpp>
#include <prowl/io/array_file.hpp>
#include <prowl/io/detail/array_format.hpp>

#include <algorithm>
#include <set>

namespace prowl {

using namespace detail;
using hdf5::check;
using hdf5::Handle;

namespace {

// Files are read without MPI-IO, each rank by itself: no error on one rank can leave another waiting in HDF5.
Handle open_file(std::string const& path) {
  return Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                path + ": cannot be opened as an HDF5 file");
}

std::string read_string(hid_t object, hid_t type, herr_t (*read)(hid_t, hid_t, void*),
                        std::string const& context) {
  if (check(H5Tis_variable_str(type), context) > 0) throw Error("{}: not a string of fixed length", context);
  std::string value(H5Tget_size(type), '\0');
  check(read(object, type, value.data()), context);
  value.resize(std::min(value.size(), value.find('\0')));
  return value;
}

std::string read_string_attribute(hid_t attribute, hid_t type, std::string const& context) {
  return read_string(attribute, type, H5Aread, context);
}

std::string read_string_dataset(hid_t dataset, hid_t type, std::string const& context) {
  auto const read = [](hid_t d, hid_t t, void* out) {
    return H5Dread(d, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
  };
  return read_string(dataset, type, read, context);
}

herr_t collect_link(hid_t, char const* name, H5L_info_t const*, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(name);
  return 0;
}

herr_t collect_attribute(hid_t, char const* name, H5A_info_t const*, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(name);
  return 0;
}

std::uint64_t read_checksum(hid_t object, char const* attribute, std::string const& context) {
  Handle const a(H5Aopen(object, attribute, H5P_DEFAULT), context + " has no " + attribute);
  Handle const space(H5Aget_space(a.get()), context);
  if (H5Sget_simple_extent_npoints(space.get()) != 1)
    throw Error("{}: {} is not one number", context, attribute);
  std::uint64_t value = 0;
  check(H5Aread(a.get(), H5T_NATIVE_UINT64, &value), context + ": " + attribute);
  return value;
}

std::variant<std::int64_t, std::string> read_attribute(hid_t file, std::string const& name,
                                                       std::string const& context) {
  Handle const a(H5Aopen(file, name.c_str(), H5P_DEFAULT), context);
  Handle const type(H5Aget_type(a.get()), context);
  Handle const space(H5Aget_space(a.get()), context);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) throw Error("{}: not one value", context);
  if (H5Tget_class(type.get()) == H5T_STRING) return read_string_attribute(a.get(), type.get(), context);
  std::int64_t value = 0;
  check(H5Aread(a.get(), H5T_NATIVE_INT64, &value), context);
  return value;
}

ElementType element_type(hid_t type, std::string const& context) {
  for (auto const t : {ElementType::float32, ElementType::float64, ElementType::int64})
    if (H5Tequal(type, file_type(t)) > 0) return t;
  throw Error("{}: not of float32, float64 or int64, little-endian", context);
}

std::vector<std::int64_t> extents(hid_t dataset, std::string const& context) {
  Handle const space(H5Dget_space(dataset), context);
  int const rank = check(H5Sget_simple_extent_ndims(space.get()), context);
  std::vector<hsize_t> sizes(std::size_t(rank), 0);
  check(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), context);
  std::vector<std::int64_t> const shape(sizes.begin(), sizes.end());
  if (shape.empty() || *std::min_element(shape.begin(), shape.end()) < 1)
    throw Error("{}: without elements", context);
  return shape;
}

/// Reads rows [begin, end), all of one dataset's pieces in turn: use(first element's index, elements, data).
template <class T, class Use>
void read_pieces(std::string const& path, std::string const& name, std::vector<std::int64_t> const& shape,
                 ElementType type, std::int64_t begin, std::int64_t end, T* out, Use const& use) {
  std::string const context = path + ": dataset " + name;
  hdf5::Lock const lock;
  Handle const file = open_file(path);
  Handle const data(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), context);
  std::vector<T> buffer;
  for_pieces(shape, type, begin, end, [&](std::int64_t first, std::int64_t last) {
    std::int64_t const c = columns(shape), size = (last - first) * c;
    if (!out) buffer.resize(std::size_t(size));
    T* const to = out ? out + (first - begin) * c : buffer.data();
    RowSelection const rows(shape, first, last);
    check(H5Dread(data.get(), memory_type(type), rows.memory.get(), rows.file.get(), H5P_DEFAULT, to),
          context);
    use(first * c, size, to);
  });
}

template <class T>
std::uint64_t read_rows(std::string const& path, std::string const& name,
                        std::vector<std::int64_t> const& shape, ElementType type, std::int64_t begin,
                        std::int64_t end, T* out) {
  std::uint64_t sum = 0;
  if (begin < end)
    read_pieces(
        path, name, shape, type, begin, end, out,
        [&](std::int64_t index, std::int64_t size, T const* data) { sum += checksum(data, index, size); });
  return sum;
}

[[noreturn]] void fail_checksum(std::string const& path, std::string const& name) {
  throw Error("{}: dataset {} is damaged: its checksum differs from the stored one", path, name);
}

} // namespace

ArrayFileReader::ArrayFileReader(MPI_Comm comm, std::string path) : comm_(comm), path_(std::move(path)) {
  together(comm_, [&] { open(); });
}

void ArrayFileReader::open() {
  hdf5::Lock const lock;
  Handle const file = open_file(path_);
  std::vector<std::string> names;
  hsize_t from = 0;
  check(H5Aiterate2(file.get(), H5_INDEX_NAME, H5_ITER_INC, &from, collect_attribute, &names), path_);
  for (auto const& name : names)
    if (name != "header_checksum")
      attributes_[name] = read_attribute(file.get(), name, path_ + ": attribute " + name);
  if (!attributes_.contains("format") || integer("format") != array_format)
    throw Error("{}: not a file of Prowl's, format {}", path_, array_format);
  attributes_.erase("format");

  names.clear();
  check(H5Lvisit(file.get(), H5_INDEX_NAME, H5_ITER_INC, collect_link, &names), path_);
  for (auto const& name : names) {
    std::string const context = path_ + ": dataset " + name;
    Handle const object(H5Oopen(file.get(), name.c_str(), H5P_DEFAULT), context);
    if (H5Iget_type(object.get()) != H5I_DATASET) continue;
    Handle const type(H5Dget_type(object.get()), context);
    if (H5Tget_class(type.get()) == H5T_STRING)
      texts_[name] = read_string_dataset(object.get(), type.get(), context);
    else
      entries_[name] = {extents(object.get(), context), element_type(type.get(), context),
                        read_checksum(object.get(), "checksum", context)};
  }
  std::vector<HeaderArray> list;
  for (auto const& [name, entry] : entries_) list.push_back({name, entry.shape, entry.type, entry.checksum});
  if (header_checksum(attributes_, texts_, list) != read_checksum(file.get(), "header_checksum", path_))
    throw Error("{}: is damaged: its attributes, its texts or the list of its datasets have changed", path_);
}

std::int64_t ArrayFileReader::integer(std::string const& attribute) const {
  auto const found = attributes_.find(attribute);
  if (found == attributes_.end() || !std::holds_alternative<std::int64_t>(found->second))
    throw Error("{}: has no integer attribute {}", path_, attribute);
  return std::get<std::int64_t>(found->second);
}

std::string const& ArrayFileReader::string(std::string const& attribute) const {
  auto const found = attributes_.find(attribute);
  if (found == attributes_.end() || !std::holds_alternative<std::string>(found->second))
    throw Error("{}: has no string attribute {}", path_, attribute);
  return std::get<std::string>(found->second);
}

std::string const& ArrayFileReader::text(std::string const& name) const {
  auto const found = texts_.find(name);
  if (found == texts_.end()) throw Error("{}: has no text {}", path_, name);
  return found->second;
}

std::vector<ArrayShape> ArrayFileReader::arrays() const {
  std::vector<ArrayShape> list;
  for (auto const& [name, entry] : entries_) list.push_back({name, entry.shape, entry.type});
  return list;
}

void ArrayFileReader::require_shape(ArrayShape const& expected) const {
  auto const found = entries_.find(expected.name);
  if (found == entries_.end())
    throw Error("{}: comes from another model: it has no dataset {} (expected: {} of {})", path_,
                expected.name, shape_name(expected.shape), type_name(expected.type));
  auto const& entry = found->second;
  if (entry.shape != expected.shape || entry.type != expected.type)
    throw Error("{}: comes from another model: dataset {} is {} of {}, expected {} of {}", path_,
                expected.name, shape_name(entry.shape), type_name(entry.type), shape_name(expected.shape),
                type_name(expected.type));
}

void ArrayFileReader::require_arrays(std::vector<ArrayShape> const& expected,
                                     std::string const& prefix) const {
  together(comm_, [&] {
    std::set<std::string> names;
    for (auto const& e : expected) {
      require_shape(e);
      names.insert(e.name);
    }
    for (auto const& [name, entry] : entries_)
      if (name.starts_with(prefix) && !names.contains(name))
        throw Error("{}: comes from another model: dataset {} ({} of {}) is not expected", path_, name,
                    shape_name(entry.shape), type_name(entry.type));
  });
}

std::uint64_t ArrayFileReader::sum_of_rows(std::string const& name, std::int64_t begin,
                                           std::int64_t end) const {
  auto const& entry = entries_.at(name);
  auto const sum = [&]<class T>(T* none) {
    return read_rows(path_, name, entry.shape, entry.type, begin, end, none);
  };
  switch (entry.type) {
  case ElementType::float32:
    return sum(static_cast<float*>(nullptr));
  case ElementType::float64:
    return sum(static_cast<double*>(nullptr));
  default:
    return sum(static_cast<std::int64_t*>(nullptr));
  }
}

std::uint64_t ArrayFileReader::sum_of_share(std::string const& name) const {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &size);
  std::int64_t const rows = entries_.at(name).shape[0];
  return sum_of_rows(name, rows * rank / size, rows * (rank + 1) / size);
}

void ArrayFileReader::read(std::vector<ArrayTarget> const& targets) const {
  std::size_t const n = targets.size();
  // For each target: its checksum's part, its rows, whether they cover the array evenly.
  std::vector<std::uint64_t> sums(3 * n);
  together(comm_, [&] {
    for (std::size_t i = 0; i < n; ++i) {
      auto const& t = targets[i];
      ElementType const type = type_of(t.data);
      require_shape({t.name, t.shape, type});
      if (t.begin < 0 || t.end < t.begin || t.end > t.shape[0])
        throw Error("{}: dataset {} of {} rows: rows {} to {} do not exist", path_, t.name, t.shape[0],
                    t.begin, t.end);
      sums[i] = std::visit(
          [&](auto* out) { return read_rows(path_, t.name, t.shape, type, t.begin, t.end, out); }, t.data);
      sums[n + i] = std::uint64_t(t.end - t.begin);
      sums[2 * n + i] = cover(t.begin, t.end);
    }
  });
  sum_over_ranks(comm_, sums);
  // Where the ranks' rows are the whole array `times` times (replicas), so is the sum; else it is read once
  // more.
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < n; ++i) {
    auto const& t = targets[i];
    std::uint64_t const rows = std::uint64_t(t.shape[0]), times = sums[n + i] / rows;
    if (times == 0 || sums[2 * n + i] != times * cover(0, t.shape[0]))
      again.push_back(i);
    else if (sums[i] != times * entries_.at(t.name).checksum)
      fail_checksum(path_, t.name);
  }
  if (again.empty()) return;
  std::vector<std::uint64_t> shares(again.size());
  together(comm_, [&] {
    for (std::size_t j = 0; j < again.size(); ++j) shares[j] = sum_of_share(targets[again[j]].name);
  });
  sum_over_ranks(comm_, shares);
  for (std::size_t j = 0; j < again.size(); ++j)
    if (shares[j] != entries_.at(targets[again[j]].name).checksum)
      fail_checksum(path_, targets[again[j]].name);
}

void ArrayFileReader::verify() const {
  std::vector<std::uint64_t> sums;
  together(comm_, [&] {
    for (auto const& [name, entry] : entries_) sums.push_back(sum_of_share(name));
  });
  sum_over_ranks(comm_, sums);
  std::size_t i = 0;
  for (auto const& [name, entry] : entries_)
    if (sums[i++] != entry.checksum) fail_checksum(path_, name);
}

} // namespace prowl
