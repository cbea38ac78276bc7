#include <prowl/io/dataset.hpp>
#include <prowl/io/detail/input_file.hpp>
#include <prowl/io/hdf5_attributes.hpp>
#include <prowl/io/hdf5_objects.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <memory>
#include <tuple>

namespace prowl {

namespace {

enum class Element { uint8, float16, float32 };

float from_float16(std::uint16_t half) {
  std::uint32_t const sign = std::uint32_t(half & 0x8000u) << 16;
  std::uint32_t const exponent = (half >> 10) & 0x1Fu;
  std::uint32_t const fraction = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  float const subnormal = float(fraction) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

// An open dataset whose first dimension counts samples.
struct Array {
  hdf5::Handle handle;
  std::string where;
  Element element = Element::float32;
  std::vector<std::int64_t> shape;
  detail::InputFile const* file = nullptr;

  std::int64_t row() const { return hdf5::product(shape, 1, 1, where); }
  void read(std::int64_t first, std::int64_t count, hid_t type, void* values) const;
  void read(std::int64_t first, std::int64_t count, float* values) const;
  std::string element_name(std::int64_t index) const;
  void read_any(std::int64_t first, std::int64_t count, float* values) const;
};

/// Of an element of a sample, as (1, 2, 3).
std::string Array::element_name(std::int64_t index) const {
  std::vector<std::int64_t> indices;
  for (std::size_t d = shape.size() - 1; d > 0; index /= shape[d--]) indices.push_back(index % shape[d]);
  std::ranges::reverse(indices);
  return fmt::format("({})", fmt::join(indices, ", "));
}

void Array::read(std::int64_t first, std::int64_t count, hid_t type, void* values) const {
  if (first < 0 || count < 0 || first > shape[0] || count > shape[0] - first)
    throw Error("{}: {} samples from {} on asked for, it has {}", where, count, first, shape[0]);
  if (count == 0) return;
  hdf5::Lock const lock;
  std::vector<hsize_t> start(shape.size(), 0), extent(shape.begin(), shape.end());
  start[0] = hsize_t(first);
  extent[0] = hsize_t(count);
  hdf5::Handle const space(H5Dget_space(handle.get()), where);
  hdf5::check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
              where);
  hdf5::Handle const memory(H5Screate_simple(int(extent.size()), extent.data(), nullptr), where);
  hdf5::check(H5Dread(handle.get(), type, memory.get(), space.get(), H5P_DEFAULT, values), where);
  file->require_unchanged(); // of a file that has become shorter HDF5 reads zeros
}

void Array::read(std::int64_t first, std::int64_t count, float* values) const {
  read_any(first, count, values);
  if (element == Element::uint8 || count == 0) return;
  auto const size = count * row();
  auto const* const bad = std::find_if(values, values + size, [](float x) { return !std::isfinite(x); });
  if (bad == values + size) return;
  auto const index = bad - values;
  throw Error("{}: sample {}: element {} is {}, a finite number expected", where, first + index / row(),
              element_name(index % row()), *bad);
}

void Array::read_any(std::int64_t first, std::int64_t count, float* values) const {
  auto const size = std::size_t(std::max<std::int64_t>(count, 0) * row());
  switch (element) {
  case Element::uint8: {
    std::vector<std::uint8_t> bytes(size);
    read(first, count, H5T_NATIVE_UINT8, bytes.data());
    for (std::size_t i = 0; i < size; ++i) values[i] = float(bytes[i]) / 127.5f - 1.0f;
    break;
  }
  case Element::float16: {
    // Read unconverted: HDF5's own conversion is slow, and would hold its lock meanwhile.
    std::vector<std::uint16_t> halves(size);
    hdf5::Handle const type = [&] {
      hdf5::Lock const lock;
      return hdf5::Handle(H5Dget_type(handle.get()), where);
    }();
    read(first, count, type.get(), halves.data());
    std::transform(halves.begin(), halves.end(), values, from_float16);
    break;
  }
  case Element::float32:
    read(first, count, H5T_NATIVE_FLOAT, values);
    break;
  }
}

char const* expected_type(bool pictures) { return pictures ? "uint8" : "float16 or float32"; }

Element element_of(hid_t dataset, bool pictures, std::string const& where) {
  hdf5::Handle const type(H5Dget_type(dataset), where);
  auto const kind = H5Tget_class(type.get());
  auto const size = H5Tget_size(type.get());
  if (pictures && kind == H5T_INTEGER && size == 1 && H5Tget_sign(type.get()) == H5T_SGN_NONE)
    return Element::uint8;
  if (!pictures && kind == H5T_FLOAT && size == 4) return Element::float32;
  if (!pictures && kind == H5T_FLOAT && size == 2 && H5Tget_ebias(type.get()) == 15 &&
      H5Tget_order(type.get()) == H5T_ORDER_LE)
    return Element::float16;
  throw Error("{}: {} numbers of {} bytes, {} expected", where,
              kind == H5T_FLOAT     ? "floating-point"
              : kind == H5T_INTEGER ? "integer"
                                    : "other than",
              size, expected_type(pictures));
}

hdf5::Handle open_dataset(hid_t parent, char const* name, std::string const& where, char const* expected) {
  if (!hdf5::exists(parent, name, where)) throw Error("{}: missing, {} expected", where, expected);
  return hdf5::open_dataset(parent, name, where);
}

// Opens a dataset of `dimensions` dimensions, none empty; its first is N where `samples` is not 0.
Array open_array(hid_t parent, char const* name, std::string const& where, std::string const& expected,
                 std::size_t dimensions, std::int64_t samples, bool pictures,
                 detail::InputFile const& input) {
  Array array;
  array.where = where;
  array.file = &input;
  array.handle = open_dataset(parent, name, where, expected.c_str());
  array.shape = hdf5::shape_of(array.handle.get(), where);
  bool good =
      array.shape.size() == dimensions && std::ranges::all_of(array.shape, [](auto n) { return n > 0; });
  if (good && samples > 0) good = array.shape[0] == samples;
  if (!good) throw Error("{}: shape ({}), {} expected", where, fmt::join(array.shape, ", "), expected);
  array.element = element_of(array.handle.get(), pictures, where);
  hdf5::require_stored(array.handle.get(), input.bytes(), where);
  return array;
}

} // namespace

struct Dataset::Files {
  std::unique_ptr<detail::InputFile> input;
  hdf5::Handle file;
  Array samples, pooled, captions;
  std::vector<Array> text;

  void open_file(std::string const& path);
  void open_captions(std::string const& path, std::int64_t size);
  std::vector<TextEncoder> open_text(std::string const& path, std::int64_t size);
};

void Dataset::Files::open_file(std::string const& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) throw Error("{}: no such data set", path);
  input = std::make_unique<detail::InputFile>(path);
  file = hdf5::Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path);
  auto const format = hdf5::read_string(file.get(), "format", path);
  if (!format || *format != "prowl data set")
    throw Error("{}: attribute \"format\" is {}, \"prowl data set\" expected", path,
                format ? '"' + *format + '"' : "missing");
  auto const version = hdf5::read_integer(file.get(), "version", path);
  if (version != 1)
    throw Error("{}: data set version {}, 1 expected", path, version ? std::to_string(*version) : "missing");
}

void Dataset::Files::open_captions(std::string const& path, std::int64_t size) {
  captions.where = path + ": /captions";
  auto const expected = fmt::format("{} strings of variable length (UTF-8)", size);
  captions.handle = open_dataset(file.get(), "captions", captions.where, expected.c_str());
  captions.file = input.get();
  captions.shape = hdf5::shape_of(captions.handle.get(), captions.where);
  hdf5::Handle const type(H5Dget_type(captions.handle.get()), captions.where);
  if (captions.shape.size() != 1 || captions.shape[0] != size || H5Tget_class(type.get()) != H5T_STRING ||
      H5Tis_variable_str(type.get()) <= 0)
    throw Error("{}: {}shape ({}), {} expected", captions.where,
                H5Tget_class(type.get()) == H5T_STRING ? "" : "no strings, ", fmt::join(captions.shape, ", "),
                expected);
  hdf5::require_stored(captions.handle.get(), input->bytes(), captions.where);
}

std::vector<TextEncoder> Dataset::Files::open_text(std::string const& path, std::int64_t size) {
  std::vector<TextEncoder> encoders;
  auto const where = path + ": /text";
  if (!hdf5::exists(file.get(), "text", where))
    throw Error("{}: missing, a group for each text encoder expected", where);
  auto const group = hdf5::open_group(file.get(), "text", where);
  for (auto const& name : hdf5::names_in(group.get(), where)) {
    auto const here = fmt::format("{}/{}", where, name);
    auto const encoder = hdf5::open_group(group.get(), name.c_str(), here);
    text.push_back(open_array(encoder.get(), "features", here + "/features",
                              fmt::format("({}, tokens, width)", size), 3, size, false, *input));
    encoders.push_back({name, text.back().shape[1], text.back().shape[2]});
  }
  if (encoders.empty()) throw Error("{}: empty, a group for each text encoder expected", where);
  return encoders;
}

Dataset::Dataset(std::string path) : path_(std::move(path)), files_(std::make_unique<Files>()) {
  hdf5::Lock const lock;
  files_->open_file(path_);
  hid_t const file = files_->file.get();
  latents_ = hdf5::exists(file, "latents", path_);
  if (latents_ == hdf5::exists(file, "images", path_))
    throw Error("{}: {}, exactly one of them expected", path_,
                latents_ ? "holds both /images and /latents" : "neither /images nor /latents");
  char const* name = latents_ ? "latents" : "images";
  files_->samples = open_array(file, name, fmt::format("{}: /{}", path_, name),
                               "(samples, channels, height, width)", 4, 0, !latents_, *files_->input);
  auto const& shape = files_->samples.shape;
  std::tie(size_, channels_, height_, width_) = std::tie(shape[0], shape[1], shape[2], shape[3]);
  files_->open_captions(path_, size_);
  encoders_ = files_->open_text(path_, size_);
  files_->pooled = open_array(file, "pooled", path_ + ": /pooled", fmt::format("({}, width)", size_), 2,
                              size_, false, *files_->input);
  pooled_width_ = files_->pooled.row();

  auto const training = hdf5::read_integer(file, "training_count", path_);
  if (!training || *training < 1 || *training > size_)
    throw Error("{}: attribute \"training_count\" is {}, 1 to {} expected", path_,
                training ? std::to_string(*training) : "missing", size_);
  training_count_ = *training;
  source_ = hdf5::read_string(file, "source", path_).value_or("");
  text_encoding_ = hdf5::read_string(file, "text_encoding", path_).value_or("");
}

Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

void Dataset::read_samples(std::int64_t first, std::int64_t count, float* values) const {
  files_->samples.read(first, count, values);
}

void Dataset::read_text(std::int64_t encoder, std::int64_t first, std::int64_t count, float* values) const {
  files_->text.at(std::size_t(encoder)).read(first, count, values);
}

void Dataset::read_pooled(std::int64_t first, std::int64_t count, float* values) const {
  files_->pooled.read(first, count, values);
}

std::string Dataset::caption(std::int64_t index) const {
  hdf5::Lock const lock;
  auto const& captions = files_->captions;
  hdf5::Handle const type(H5Dget_type(captions.handle.get()), captions.where);
  char* text = nullptr;
  captions.read(index, 1, type.get(), &text);
  std::string result(text ? text : "");
  H5free_memory(text);
  return result;
}

} // namespace prowl
