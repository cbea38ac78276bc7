#include <prowl/io/atomic_file.hpp>
#include <prowl/io/dataset_writer.hpp>
#include <prowl/io/hdf5_attributes.hpp>
#include <prowl/io/text.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace prowl {

namespace {

// Superblock, headers, attributes.
constexpr std::int64_t metadata_bytes = std::int64_t{1} << 16;

std::int64_t array_bytes(DatasetLayout const& l) {
  constexpr std::int64_t caption_reference = 16;
  return l.size * (l.channels * l.height * l.width + 4 * (l.tokens * l.text_width + l.pooled_width) +
                   caption_reference);
}

// Not less than HDF5's heap of strings takes: it is made of collections of 4 KiB or of one longer string,
// filled by half or more; a string has a header of 16 bytes and ends at a multiple of 8.
std::int64_t heap_bytes(std::vector<std::string> const& strings) {
  std::int64_t bytes = 8192;
  for (auto const& string : strings) bytes += 2 * (std::int64_t(string.size()) + 32);
  return bytes;
}

} // namespace

struct DatasetWriter::Files {
  AtomicFile place;
  hdf5::Handle file, text_group, encoder_group, string, images, captions, text, pooled;

  std::vector<std::string> strings; // the captions, written at the end: only then is their size known

  explicit Files(std::string path) : place(std::move(path)) {}
  std::string const& name() const { return place.path(); }

  hdf5::Handle create(hid_t parent, char const* dataset, hid_t type,
                      std::vector<hsize_t> const& shape) const {
    auto const where = fmt::format("{}: {}", name(), dataset);
    hdf5::Handle const space(H5Screate_simple(int(shape.size()), shape.data(), nullptr), where);
    return {H5Dcreate2(parent, dataset, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), where};
  }

  // Makes the file at least that long, on the disk. HDF5 can neither close nor give up a file that it cannot
  // write out, so it never writes where there is no space.
  void reserve(std::int64_t bytes) const {
    int const descriptor = ::open(name().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int const error = descriptor < 0 ? errno : ::posix_fallocate(descriptor, 0, bytes);
    if (descriptor >= 0) ::close(descriptor);
    if (error != 0)
      throw Error("{}: cannot be written, {:.1f} MiB: {}", place.target(), double(bytes) / (1 << 20),
                  std::strerror(error));
  }

  void write_captions() {
    std::vector<char const*> pointers;
    for (auto const& caption : strings) pointers.push_back(caption.c_str());
    hdf5::check(H5Dwrite(captions.get(), string.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()),
                name());
  }

  // Gives back what was reserved and not used.
  void close() {
    hsize_t size = 0;
    hdf5::check(H5Fflush(file.get(), H5F_SCOPE_LOCAL), name());
    hdf5::check(H5Fget_filesize(file.get(), &size), name());
    for (auto* handle : {&images, &captions, &text, &pooled, &encoder_group, &text_group, &string, &file})
      handle->close(name());
    if (::truncate(name().c_str(), off_t(size)) != 0)
      throw Error("{}: cannot be cut to {} bytes: {}", name(), size, std::strerror(errno));
  }

  void write(hdf5::Handle const& dataset, std::int64_t index, hid_t type, void const* values) const {
    hdf5::Handle const space(H5Dget_space(dataset.get()), name());
    hsize_t start[4] = {}, extent[4] = {};
    int const dimensions = hdf5::check(H5Sget_simple_extent_dims(space.get(), extent, nullptr), name());
    start[0] = hsize_t(index);
    extent[0] = 1;
    hdf5::check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, extent, nullptr), name());
    hdf5::Handle const memory(H5Screate_simple(dimensions, extent, nullptr), name());
    hdf5::check(H5Dwrite(dataset.get(), type, memory.get(), space.get(), H5P_DEFAULT, values), name());
  }
};

DatasetWriter::DatasetWriter(std::string path, DatasetLayout layout)
    : layout_(std::move(layout)), files_(std::make_unique<Files>(std::move(path))) {
  auto const& l = layout_;
  auto& f = *files_;
  auto const bytes = metadata_bytes + array_bytes(l);
  f.reserve(bytes);
  hdf5::Lock const lock;
  f.file = {H5Fcreate(f.name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), f.name()};
  f.reserve(bytes); // once more: HDF5 began with an empty file
  hid_t const root = f.file.get();
  hdf5::write_attribute(root, "format", "prowl data set", f.name());
  hdf5::write_attribute(root, "version", 1, f.name());
  hdf5::write_attribute(root, "training_count", l.training_count, f.name());
  hdf5::write_attribute(root, "text_encoding", l.text_encoding, f.name());
  hdf5::write_attribute(root, "source", printable(l.source), f.name());

  auto const n = hsize_t(l.size);
  f.string = {H5Tcopy(H5T_C_S1), f.name()};
  hdf5::check(H5Tset_size(f.string.get(), H5T_VARIABLE), f.name());
  hdf5::check(H5Tset_cset(f.string.get(), H5T_CSET_UTF8), f.name());
  f.images =
      f.create(root, "images", H5T_STD_U8LE, {n, hsize_t(l.channels), hsize_t(l.height), hsize_t(l.width)});
  f.captions = f.create(root, "captions", f.string.get(), {n});
  f.text_group = {H5Gcreate2(root, "text", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), f.name()};
  f.encoder_group = {H5Gcreate2(f.text_group.get(), l.encoder.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                     f.name()};
  f.text = f.create(f.encoder_group.get(), "features", H5T_IEEE_F32LE,
                    {n, hsize_t(l.tokens), hsize_t(l.text_width)});
  f.pooled = f.create(root, "pooled", H5T_IEEE_F32LE, {n, hsize_t(l.pooled_width)});
}

DatasetWriter::~DatasetWriter() = default;

void DatasetWriter::append(std::vector<std::uint8_t> const& picture, std::string const& caption,
                           std::vector<float> const& text, std::vector<float> const& pooled) {
  auto const& l = layout_;
  auto& f = *files_;
  if (written_ == l.size) throw Error("{}: more than the {} samples announced", f.place.target(), l.size);
  auto const expect = [&](char const* what, std::size_t size, std::int64_t expected) {
    if (std::int64_t(size) != expected)
      throw Error("{}: sample {}: {} of {} values, {} expected", f.place.target(), written_, what, size,
                  expected);
  };
  expect("picture", picture.size(), l.channels * l.height * l.width);
  expect("text", text.size(), l.tokens * l.text_width);
  expect("pooled vector", pooled.size(), l.pooled_width);

  f.strings.push_back(normalised(caption, fmt::format("{}: sample {}: caption", f.place.target(), written_)));
  hdf5::Lock const lock;
  f.write(f.images, written_, H5T_NATIVE_UINT8, picture.data());
  f.write(f.text, written_, H5T_NATIVE_FLOAT, text.data());
  f.write(f.pooled, written_, H5T_NATIVE_FLOAT, pooled.data());
  ++written_;
}

void DatasetWriter::finish() {
  auto& f = *files_;
  if (written_ != layout_.size)
    throw Error("{}: {} samples written, {} announced", f.place.target(), written_, layout_.size);
  f.reserve(metadata_bytes + array_bytes(layout_) + heap_bytes(f.strings));
  hdf5::Lock const lock;
  f.write_captions();
  f.close();
  f.place.commit();
}

} // namespace prowl
