#include <prowl/comm/agree.hpp>
#include <prowl/io/array_file.hpp>
#include <prowl/io/detail/array_format.hpp>
#include <prowl/io/detail/seal.hpp>
#include <prowl/io/hdf5_objects.hpp>

#include <algorithm>
#include <set>
#include <string_view>

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

/// A string of fixed length, NUL-terminated or filled up with NUL.
std::string read_string(hid_t object, hid_t type, std::int64_t most, herr_t (*read)(hid_t, hid_t, void*),
                        std::string const& context) {
  if (check(H5Tis_variable_str(type), context) > 0) throw Error("{}: not a string of fixed length", context);
  std::size_t const size = H5Tget_size(type);
  if (size > std::size_t(most)) throw Error("{}: a string of {} bytes", context, size);
  std::string value(size, '\0');
  check(read(object, type, value.data()), context);
  value.resize(std::min(value.size(), value.find('\0')));
  return value;
}

herr_t read_whole(hid_t dataset, hid_t type, void* out) {
  return H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
}

herr_t collect_attribute(hid_t, char const* name, H5A_info_t const*, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(name);
  return 0;
}

void require_one_value(hid_t space, std::string const& context) {
  if (H5Sget_simple_extent_type(space) != H5S_SCALAR) throw Error("{}: not one value", context);
}

std::uint64_t read_checksum(hid_t object, std::string const& context) {
  Handle const a(H5Aopen(object, "checksum", H5P_DEFAULT), context + " has no checksum");
  Handle const type(H5Aget_type(a.get()), context), space(H5Aget_space(a.get()), context);
  require_one_value(space.get(), context + ": checksum");
  if (H5Tget_class(type.get()) != H5T_INTEGER) throw Error("{}: checksum: not an integer", context);
  std::uint64_t value = 0;
  check(H5Aread(a.get(), H5T_NATIVE_UINT64, &value), context + ": checksum");
  return value;
}

std::variant<std::int64_t, std::string> read_attribute(hid_t file, std::string const& name,
                                                       std::string const& context) {
  Handle const a(H5Aopen(file, name.c_str(), H5P_DEFAULT), context);
  Handle const type(H5Aget_type(a.get()), context), space(H5Aget_space(a.get()), context);
  require_one_value(space.get(), context);
  auto const kind = H5Tget_class(type.get());
  if (kind == H5T_STRING) return read_string(a.get(), type.get(), 1 << 16, H5Aread, context);
  if (kind != H5T_INTEGER) throw Error("{}: neither an integer nor a string", context);
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
  auto const shape = hdf5::shape_of(dataset, context);
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

/// What is wrong with the file by its seal; empty where every byte is as it was written. Collective.
std::string find_damage(MPI_Comm comm, InputFile const& file, Seal& found) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::string damage;
  std::optional<Seal> seal;
  std::vector<std::uint64_t> sums(1);
  together(comm, [&] {
    seal = read_seal(file);
    if (!seal) {
      // As HDF5 files of others, and those that Prowl wrote before there were seals, begin.
      char signature[8] = {};
      if (file.read(0, 8, signature) && std::string_view(signature, 8) == "\x89HDF\r\n\x1a\n")
        throw Error("{}: not a file of Prowl's, format {}: an HDF5 file of others, or of format 1",
                    file.path(), array_format);
      damage = fmt::format("its first {} bytes are no seal", seal_bytes);
    } else if (seal->format != array_format) {
      throw Error("{}: is of format {}; this version of Prowl reads format {}", file.path(), seal->format,
                  array_format);
    } else if (seal->bytes != file.bytes()) {
      damage = fmt::format("it has {} bytes, not the {} that were written", file.bytes(), seal->bytes);
    } else if (auto const sum = checksum_of_share(file, rank, size)) {
      sums[0] = *sum;
    } else {
      damage = "it ends early";
    }
  });
  try {
    agree(comm, damage);
  } catch (Error const& first) {
    return first.what();
  }
  sum_over_ranks(comm, sums);
  found = *seal;
  if (sums[0] == seal->checksum) return {};
  return fmt::format("the checksum of its bytes is {:016x}, not {:016x} as when it was written", sums[0],
                     seal->checksum);
}

} // namespace

bool is_sealed_and_finite(std::string const& path) {
  try {
    InputFile const file(path);
    auto const seal = read_seal(file);
    return seal && seal->format == array_format && seal->bytes == file.bytes() && seal->not_finite.empty();
  } catch (Error const&) {
    return false; // it cannot be read
  }
}

ArrayFileReader::ArrayFileReader(MPI_Comm comm, std::shared_ptr<InputFile const> input)
    : comm_(comm), path_(input->path()), input_(std::move(input)) {
  together(comm_, [&] { open(); });
}

ArrayFileReader::ArrayFileReader(MPI_Comm comm, std::string path) : comm_(comm), path_(std::move(path)) {
  std::string damage;
  auto intact = open_intact(comm, path_, damage);
  if (!intact) throw Error("{}: is damaged: {}", path_, damage);
  *this = std::move(*intact);
}

std::optional<ArrayFileReader> ArrayFileReader::open_intact(MPI_Comm comm, std::string const& path,
                                                            std::string& damage) {
  std::shared_ptr<InputFile const> input;
  together(comm, [&] { input = std::make_shared<InputFile const>(path); });
  Seal seal;
  damage = find_damage(comm, *input, seal);
  if (!damage.empty()) return {};
  ArrayFileReader reader(comm, std::move(input));
  reader.not_finite_ = seal.not_finite;
  return reader;
}

void ArrayFileReader::open() {
  hdf5::Lock const lock;
  Handle const file = open_file(path_);
  std::vector<std::string> names;
  hsize_t from = 0;
  check(H5Aiterate2(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, &from, collect_attribute, &names), path_);
  for (auto const& name : names)
    attributes_[name] = read_attribute(file.get(), name, path_ + ": attribute " + name);
  if (!attributes_.contains("format") || integer("format") != array_format)
    throw Error("{}: not a file of Prowl's, format {}", path_, array_format);
  attributes_.erase("format");
  open_group(file.get(), "", 0);
}

/// Of every dataset in the group and those in it what is there, of texts the value.
void ArrayFileReader::open_group(std::int64_t group, std::string const& prefix, int depth) {
  if (depth > 64) throw Error("{}: group {}: groups lie in each other", path_, prefix);
  for (auto const& member : hdf5::names_in(group, path_)) {
    std::string const name = prefix + member, context = path_ + ": dataset " + name;
    hdf5::exists(group, member.c_str(), context);
    Handle const object(H5Oopen(group, member.c_str(), H5P_DEFAULT), context);
    auto const kind = H5Iget_type(object.get());
    if (kind == H5I_GROUP) {
      open_group(object.get(), name + "/", depth + 1);
      continue;
    }
    if (kind != H5I_DATASET) throw Error("{}: neither a dataset nor a group", context);
    hdf5::require_stored(object.get(), input_->bytes(), context);
    Handle const type(H5Dget_type(object.get()), context);
    if (H5Tget_class(type.get()) == H5T_STRING) {
      Handle const space(H5Dget_space(object.get()), context);
      require_one_value(space.get(), context);
      texts_[name] = read_string(object.get(), type.get(), input_->bytes(), read_whole, context);
    } else {
      entries_[name] = {extents(object.get(), context), element_type(type.get(), context),
                        read_checksum(object.get(), context)};
    }
  }
}

void ArrayFileReader::require_finite() const {
  if (!not_finite_.empty()) throw Error("{}: is not finite: {}", path_, not_finite_);
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
    input_->require_unchanged();
  });
  sum_over_ranks(comm_, sums);
  // Where the ranks' rows are the whole array `times` times (replicas), so is the sum.
  for (std::size_t i = 0; i < n; ++i) {
    auto const& t = targets[i];
    std::uint64_t const rows = std::uint64_t(t.shape[0]), times = sums[n + i] / rows;
    if (times > 0 && sums[2 * n + i] == times * cover(0, t.shape[0]) &&
        sums[i] != times * entries_.at(t.name).checksum)
      throw Error("{}: dataset {} is damaged: its checksum differs from the stored one", path_, t.name);
  }
}

} // namespace prowl
