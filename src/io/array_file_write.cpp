#include <prowl/comm/agree.hpp>
#include <prowl/io/array_file.hpp>
#include <prowl/io/detail/array_format.hpp>
#include <prowl/io/detail/seal.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

namespace prowl {

using namespace detail;
using hdf5::check;
using hdf5::Handle;

namespace {

void validate(std::string const& path, ArrayFileContents const& contents) {
  std::set<std::string> names;
  for (auto const& a : contents.arrays) {
    if (a.name.empty() || !names.insert(a.name).second)
      throw Error("{}: array name '{}' is empty or given twice", path, a.name);
    if (a.shape.empty() || a.shape.size() > H5S_MAX_RANK ||
        *std::min_element(a.shape.begin(), a.shape.end()) < 1)
      throw Error("{}: array {} has shape {}; every extent must be at least 1", path, a.name,
                  shape_name(a.shape));
    if (a.begin < 0 || a.end < a.begin || a.end > a.shape[0])
      throw Error("{}: array {} of {} rows: rows {} to {} do not exist", path, a.name, a.shape[0], a.begin,
                  a.end);
    if (a.begin < a.end && std::visit([](auto const* data) { return !data; }, a.data))
      throw Error("{}: array {}: no data for rows {} to {}", path, a.name, a.begin, a.end);
  }
  for (auto const& [name, value] : contents.attributes) {
    auto const* text = std::get_if<std::string>(&value);
    if (text && (text->size() >= 32768 || text->find('\0') != std::string::npos))
      throw Error("{}: attribute {} must be shorter than 32 KiB and without NUL", path, name);
    if (name == "format") throw Error("{}: the attribute name {} is reserved", path, name);
  }
  for (auto const& [name, value] : contents.texts)
    if (value.find('\0') != std::string::npos) throw Error("{}: text {} contains NUL", path, name);
}

/// The same list on every rank, by a digest of it.
void require_same_list(MPI_Comm comm, std::string const& path, std::vector<ArrayRows> const& arrays) {
  std::vector<HeaderArray> list;
  for (auto const& a : arrays) list.push_back({a.name, a.shape, type_of(a.data), 0});
  std::uint64_t const own = checksum_of_list(list);
  std::uint64_t first = own;
  MPI_Bcast(&first, 1, MPI_UINT64_T, 0, comm);
  together(comm, [&] {
    if (own != first) throw Error("{}: the ranks do not give the same list of arrays", path);
  });
}

/// This rank's rows of an array: their part of its checksum, and the index in the array of the first element
/// that is not finite.
struct RowsSummary {
  std::uint64_t checksum = 0;
  std::int64_t not_finite = INT64_MAX;
  double value = 0;
};

RowsSummary summary_of(ArrayRows const& a) {
  std::int64_t const c = columns(a.shape), first = a.begin * c, size = (a.end - a.begin) * c;
  return std::visit(
      [&]<class T>(T const* data) {
        RowsSummary s;
        constexpr std::int64_t piece = 4096; // is still in the cache when it is read again
        for (std::int64_t begin = 0; begin < size; begin += piece) {
          std::int64_t const end = std::min(size, begin + piece);
          s.checksum += checksum(data + begin, first + begin, end - begin);
          if constexpr (std::is_floating_point_v<T>) {
            if (s.not_finite != INT64_MAX) continue;
            auto const* const bad =
                std::find_if(data + begin, data + end, [](T x) { return !std::isfinite(x); });
            if (bad != data + end) s.not_finite = first + (bad - data), s.value = double(*bad);
          }
        }
        return s;
      },
      a.data);
}

/// The name of the first array with an element that is not finite, which is refused where the contents must be
/// finite; empty where there is none.
std::string first_not_finite(MPI_Comm comm, std::string const& path, ArrayFileContents const& contents,
                             std::vector<RowsSummary> const& own) {
  std::vector<std::int64_t> first;
  for (auto const& s : own) first.push_back(s.not_finite);
  MPI_Allreduce(MPI_IN_PLACE, first.data(), int(first.size()), MPI_INT64_T, MPI_MIN, comm);
  auto const found = std::ranges::find_if(first, [](auto index) { return index != INT64_MAX; });
  if (found == first.end()) return {};
  auto const i = std::size_t(found - first.begin());
  auto const& array = contents.arrays[i];
  together(comm, [&] {
    if (!contents.finite || own[i].not_finite != *found) return;
    auto const c = columns(array.shape);
    throw Error("{}: is not written: {} is not finite: row {}, column {} is {}", path, array.name, *found / c,
                *found % c, own[i].value);
  });
  return array.name;
}

/// Each array's whole checksum; throws where the ranks' rows are not a partition.
std::vector<std::uint64_t> whole_checksums(MPI_Comm comm, std::string const& path,
                                           std::vector<ArrayRows> const& arrays,
                                           std::vector<RowsSummary> const& own) {
  std::size_t const n = arrays.size();
  std::vector<std::uint64_t> sums;
  for (auto const& s : own) sums.push_back(s.checksum);
  for (auto const& a : arrays) sums.push_back(cover(a.begin, a.end));
  sum_over_ranks(comm, sums);
  for (std::size_t i = 0; i < n; ++i)
    if (sums[n + i] != cover(0, arrays[i].shape[0]))
      throw Error("{}: array {}: the ranks do not give each of its {} rows exactly once", path,
                  arrays[i].name, arrays[i].shape[0]);
  sums.resize(n);
  return sums;
}

Handle string_type(std::string const& value) {
  Handle type(H5Tcopy(H5T_C_S1), "string type");
  check(H5Tset_size(type.get(), std::max<std::size_t>(1, value.size())), "string type");
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "string type");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "string type");
  return type;
}

void write_attribute(hid_t object, std::string const& name, hid_t type, hid_t in_memory, void const* value) {
  Handle const space(H5Screate(H5S_SCALAR), name);
  Handle const attribute(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         "attribute " + name);
  check(H5Awrite(attribute.get(), in_memory, value), "attribute " + name);
}

/// Creation properties of an object without the times that HDF5 would stamp into it: equal contents are equal bytes.
Handle without_times(hid_t kind) {
  Handle plan(H5Pcreate(kind), "creation properties");
  check(H5Pset_obj_track_times(plan.get(), false), "creation properties");
  return plan;
}

/// Creates the groups that `name` lies in.
void create_groups(hid_t file, std::string const& name) {
  Handle const plan = without_times(H5P_GROUP_CREATE);
  for (auto end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    auto const group = name.substr(0, end);
    if (check(H5Lexists(file, group.c_str(), H5P_DEFAULT), group) == 0)
      Handle(H5Gcreate2(file, group.c_str(), H5P_DEFAULT, plan.get(), H5P_DEFAULT), "group " + group);
  }
}

void write_text(hid_t file, std::string const& name, std::string const& value) {
  Handle const type = string_type(value);
  Handle const space(H5Screate(H5S_SCALAR), name);
  Handle const plan = without_times(H5P_DATASET_CREATE);
  create_groups(file, name);
  Handle const data(
      H5Dcreate2(file, name.c_str(), type.get(), space.get(), H5P_DEFAULT, plan.get(), H5P_DEFAULT), name);
  check(H5Dwrite(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.c_str()), name);
}

void create_array(hid_t file, HeaderArray const& a) {
  std::vector<hsize_t> const extents(a.shape.begin(), a.shape.end());
  Handle const space(H5Screate_simple(int(extents.size()), extents.data(), nullptr), a.name);
  Handle const plan = without_times(H5P_DATASET_CREATE);
  create_groups(file, a.name);
  check(H5Pset_alloc_time(plan.get(), H5D_ALLOC_TIME_EARLY), a.name);
  check(H5Pset_fill_time(plan.get(), H5D_FILL_TIME_NEVER), a.name);
  Handle const data(
      H5Dcreate2(file, a.name.c_str(), file_type(a.type), space.get(), H5P_DEFAULT, plan.get(), H5P_DEFAULT),
      "array " + a.name);
  write_attribute(data.get(), "checksum", H5T_STD_U64LE, H5T_NATIVE_UINT64, &a.checksum);
}

/// Everything but the arrays' elements, for which there is space. By one rank: no metadata is written in
/// parallel.
void create(std::string const& file_name, ArrayFileContents const& contents,
            std::vector<std::uint64_t> const& checksums) {
  std::vector<HeaderArray> list;
  for (std::size_t i = 0; i < contents.arrays.size(); ++i) {
    auto const& a = contents.arrays[i];
    list.push_back({a.name, a.shape, type_of(a.data), checksums[i]});
  }
  std::sort(list.begin(), list.end(), [](auto const& a, auto const& b) { return a.name < b.name; });

  hdf5::Lock const lock;
  // Version 1.8 of the format: HDF5's own metadata carry checksums too, and every reader still in use knows
  // it.
  Handle const access(H5Pcreate(H5P_FILE_ACCESS), file_name);
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), file_name);
  Handle const plan = without_times(H5P_FILE_CREATE);
  check(H5Pset_userblock(plan.get(), seal_bytes), file_name);
  Handle file(H5Fcreate(file_name.c_str(), H5F_ACC_TRUNC, plan.get(), access.get()),
              "cannot write " + file_name);
  for (auto const& [name, value] : contents.texts) write_text(file.get(), name, value);
  for (auto const& a : list) create_array(file.get(), a);
  for (auto const& [name, value] : contents.attributes) {
    if (auto const* integer = std::get_if<std::int64_t>(&value)) {
      write_attribute(file.get(), name, H5T_STD_I64LE, H5T_NATIVE_INT64, integer);
    } else {
      auto const& text = std::get<std::string>(value);
      Handle const type = string_type(text);
      write_attribute(file.get(), name, type.get(), type.get(), text.c_str());
    }
  }
  write_attribute(file.get(), "format", H5T_STD_I64LE, H5T_NATIVE_INT64, &array_format);
  file.close("cannot write " + file_name);
}

/// A POSIX file or folder, open; for what HDF5 does not do.
class Descriptor {
public:
  Descriptor(std::string const& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail("cannot open");
  }
  Descriptor(Descriptor const&) = delete;
  ~Descriptor() { ::close(fd_); }

  void flush() const {
    if (::fsync(fd_) != 0) fail("cannot flush to disk");
  }

  void write(std::string const& block) const {
    if (::pwrite(fd_, block.data(), block.size(), 0) != ssize_t(block.size())) fail("cannot write");
  }

  /// Makes the file's first `bytes` bytes surely writable, or throws.
  void reserve(std::int64_t bytes) const {
    if (::fallocate(fd_, 0, 0, bytes) == 0) return;
    if (errno != EOPNOTSUPP && errno != ENOSYS) fail("cannot reserve its space on disk");
    struct stat info {};
    struct statvfs disk {};
    if (::fstat(fd_, &info) != 0 || ::fstatvfs(fd_, &disk) != 0) fail("cannot inspect");
    if (double(disk.f_bavail) * double(disk.f_frsize) + 512.0 * double(info.st_blocks) < double(bytes))
      throw Error("{}: cannot reserve its space on disk: {} bytes are not free", path_, bytes);
  }

private:
  [[noreturn]] void fail(char const* what) const {
    throw Error("{}: {}: {}", path_, what, std::strerror(errno));
  }

  std::string path_;
  int fd_;
};

/// Not less than the file will have.
std::int64_t estimated_size(ArrayFileContents const& contents) {
  std::int64_t bytes = std::int64_t{1} << 16;
  for (auto const& a : contents.arrays)
    bytes += a.shape[0] * columns(a.shape) * type_size(type_of(a.data)) + 2048;
  for (auto const& [name, value] : contents.attributes)
    bytes += 2048 + (value.index() == 1 ? std::int64_t(std::get<std::string>(value).size()) : 0);
  for (auto const& [name, value] : contents.texts) bytes += 2048 + std::int64_t(value.size());
  return bytes;
}

void write_rows(hid_t file, ArrayRows const& a) {
  ElementType const type = type_of(a.data);
  Handle const data(H5Dopen2(file, a.name.c_str(), H5P_DEFAULT), a.name);
  for_pieces(a.shape, type, a.begin, a.end, [&](std::int64_t begin, std::int64_t end) {
    RowSelection const rows(a.shape, begin, end);
    void const* const source = std::visit(
        [&](auto const* p) -> void const* { return p + (begin - a.begin) * columns(a.shape); }, a.data);
    check(H5Dwrite(data.get(), memory_type(type), rows.memory.get(), rows.file.get(), H5P_DEFAULT, source),
          "array " + a.name);
  });
}

/// ROMIO takes what is before a colon for the kind of file system, unless it is given one; Open MPI 5 has its own MPI-IO,
/// which knows no kinds.
std::string mpi_io_name(std::string const& file_name) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
  return file_name;
#else
  return file_name.find(':') != std::string::npos ? "ufs:" + file_name : file_name;
#endif
}

/// Every rank's rows, independently, into the file that `create` made.
void write_elements(MPI_Comm comm, std::string const& file_name, std::vector<ArrayRows> const& arrays) {
  Handle file;
  together(comm, [&] {
    hdf5::Lock const lock;
    Handle const access(H5Pcreate(H5P_FILE_ACCESS), file_name);
    check(H5Pset_fapl_mpio(access.get(), comm, MPI_INFO_NULL), file_name);
    file = Handle(H5Fopen(mpi_io_name(file_name).c_str(), H5F_ACC_RDWR, access.get()),
                  "cannot open " + file_name);
  });
  std::string failure;
  try {
    hdf5::Lock const lock;
    for (auto const& a : arrays)
      if (a.begin < a.end) write_rows(file.get(), a);
  } catch (std::exception const& e) {
    failure = "cannot write " + file_name + ": " + e.what();
  }
  // Closing is collective: also the ranks that failed take part, before they say so.
  together(comm, [&] { file.close("cannot write " + file_name); });
  agree(comm, failure);
}

/// Completes the file with the seal over all its bytes.
void seal_file(MPI_Comm comm, std::string const& path, std::string const& not_finite) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::int64_t bytes = 0;
  std::vector<std::uint64_t> sum(1);
  together(comm, [&] {
    InputFile const file(path);
    bytes = file.bytes();
    auto const share = checksum_of_share(file, rank, size);
    if (!share) throw Error("{}: has become shorter while it was written", path);
    sum[0] = *share;
  });
  sum_over_ranks(comm, sum);
  together_on(0, comm, [&] {
    Descriptor const file(path, O_RDWR);
    file.write(to_block({array_format, bytes, sum[0], not_finite}));
    file.flush();
  });
}

} // namespace

std::string temporary_name(std::string const& path) {
  std::filesystem::path const p(path);
  return (p.parent_path() / fmt::format(".{}.tmp", p.filename().string())).string();
}

void ArrayFileReader::require_written(ArrayFileContents const& contents,
                                      std::vector<std::uint64_t> const& own) const {
  if (attributes_ != contents.attributes || texts_ != contents.texts)
    throw Error("{}: the attributes and texts in the file are not what was written", path_);
  for (std::size_t i = 0; i < contents.arrays.size(); ++i) {
    auto const& a = contents.arrays[i];
    require_shape({a.name, a.shape, type_of(a.data)});
    if (sum_of_rows(a.name, a.begin, a.end) != own[i])
      throw Error("{}: array {}: what is in the file is not what was written", path_, a.name);
  }
}

void write_array_file(MPI_Comm comm, std::string const& path, ArrayFileContents const& contents) {
  std::string const temporary = temporary_name(path);
  auto const folder = std::filesystem::path(path).parent_path();
  auto const& arrays = contents.arrays;
  together(comm, [&] { validate(path, contents); });
  require_same_list(comm, path, arrays);
  std::vector<RowsSummary> own;
  std::vector<std::uint64_t> sums;
  for (auto const& a : arrays) sums.push_back(own.emplace_back(summary_of(a)).checksum);
  auto const whole = whole_checksums(comm, path, arrays, own);
  auto const not_finite = first_not_finite(comm, path, contents, own);
  try {
    together_on(0, comm, [&] {
      // HDF5 cannot close a file whose metadata do not fit on the disk: whether all will fit is found out
      // before it starts, and again for the exact size before the ranks write in parallel.
      Descriptor(temporary, O_RDWR | O_CREAT | O_TRUNC).reserve(estimated_size(contents));
      create(temporary, contents, whole);
      Descriptor(temporary, O_RDWR).reserve(std::int64_t(std::filesystem::file_size(temporary)));
    });
    write_elements(comm, temporary, arrays);
    together(comm, [&] { Descriptor(temporary, O_RDWR).flush(); });
    std::shared_ptr<InputFile const> input;
    together(comm, [&] { input = std::make_shared<InputFile const>(temporary); });
    ArrayFileReader const reader(comm, input);
    together(comm, [&] { reader.require_written(contents, sums); });
    seal_file(comm, temporary, not_finite);
    together_on(0, comm, [&] {
      std::filesystem::rename(temporary, path);
      Descriptor(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY).flush();
    });
  } catch (Error const&) {
    // The same Error on every rank. Not a temporary that another rank may still have to open: agreed on
    // before.
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::error_code ignored;
    if (rank == 0) std::filesystem::remove(temporary, ignored);
    throw;
  }
}

} // namespace prowl
