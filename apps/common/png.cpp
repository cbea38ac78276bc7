#include <common/exif.hpp>
#include <common/png.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <png.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace prowl {

namespace {

// libpng's simplified interface keeps its message and its memory in this.
struct Image : png_image {
  Image() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(this); }
};

// libpng's interface with transformations: the simplified one gives interlaced pictures of 16 bits with wrong
// rows. Errors come by longjmp, which passes no destructor: `attempt` calls what holds nothing but
// references.
class PngReader {
public:
  explicit PngReader(std::string const& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) throw Error("{}: cannot be read: {}", path_, std::strerror(errno));
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      close();
      throw Error("{}: libpng cannot be started", path_);
    }
  }
  PngReader(PngReader const&) = delete;
  PngReader& operator=(PngReader const&) = delete;
  ~PngReader() { close(); }

  Picture read() {
    attempt([&] {
      png_init_io(png_, file_);
      png_read_info(png_, info_);
    });
    auto const width = png_get_image_width(png_, info_), height = png_get_image_height(png_, info_);
    // 64 Mpixels: more is a broken header, or no picture to train on.
    if (std::uint64_t(width) * height > (std::uint64_t{1} << 26))
      throw Error("{}: {} x {} pixels, at most 2^26 expected", path_, width, height);
    attempt([&] { to_rgba(); });
    Picture picture(int(width), int(height), 4);
    std::vector<png_bytep> rows(height);
    for (int y = 0; y < picture.height; ++y) rows[std::size_t(y)] = picture.pixel(0, y);
    attempt([&] {
      png_read_image(png_, rows.data());
      png_read_end(png_, nullptr);
    });
    return picture;
  }

private:
  template <class Work>
  void attempt(Work const& work) {
    if (setjmp(png_jmpbuf(png_)) != 0) throw Error("{}: cannot be read as PNG: {}", path_, message_);
    work();
  }

  void to_rgba() {
    // A file without gAMA and sRGB is sRGB, and so is what is read.
    png_set_alpha_mode(png_, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
    png_set_expand(png_); // palettes, fewer than 8 bits, transparent colours
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_add_alpha(png_, 255, PNG_FILLER_AFTER);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  static void on_error(png_structp png, char const* text) {
    static_cast<PngReader*>(png_get_error_ptr(png))->message_ = text;
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, char const*) {}

  void close() {
    png_destroy_read_struct(&png_, &info_, nullptr);
    std::fclose(file_);
  }

  std::string path_, message_;
  std::FILE* file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// Upright, from a picture stored with that orientation (Exif).
Picture turned(Picture const& stored, int orientation) {
  int const w = stored.width, h = stored.height;
  bool const on_its_side = orientation >= 5;
  Picture upright(on_its_side ? h : w, on_its_side ? w : h, stored.channels);
  for (int y = 0; y < upright.height; ++y)
    for (int x = 0; x < upright.width; ++x) {
      int column = on_its_side ? y : x, row = on_its_side ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = w - 1 - column;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) row = h - 1 - row;
      std::copy_n(stored.pixel(column, row), stored.channels, upright.pixel(x, y));
    }
  return upright;
}

} // namespace

Picture::Picture(int width_, int height_, int channels_, std::uint8_t value)
    : width(width_), height(height_), channels(channels_),
      bytes(std::size_t(width_) * std::size_t(height_) * std::size_t(channels_), value) {}

void write_png(std::string const& path, Picture const& picture) {
  AtomicFile file(path);
  Image image;
  image.width = png_uint_32(picture.width);
  image.height = png_uint_32(picture.height);
  image.format = picture.channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  if (!png_image_write_to_file(&image, file.path().c_str(), 0, picture.bytes.data(), 0, nullptr))
    throw Error("{}: cannot be written: {}", path, image.message);
  file.commit();
}

Picture read_png(std::string const& path) {
  if (!std::filesystem::exists(path)) throw Error("{}: no such picture", path);
  auto const picture = PngReader(path).read();
  auto const orientation = png_orientation(path);
  return orientation == 1 ? picture : turned(picture, orientation);
}

Picture grid(std::vector<Picture> const& pictures, int columns, int margin) {
  if (pictures.empty() || columns < 1)
    throw Error("a grid of {} pictures in {} columns", pictures.size(), columns);
  auto const& first = pictures.front();
  columns = std::min(columns, int(pictures.size()));
  int const rows = (int(pictures.size()) + columns - 1) / columns;
  Picture result(columns * (first.width + margin) + margin, rows * (first.height + margin) + margin,
                 first.channels, 255);
  for (int i = 0; i < int(pictures.size()); ++i) {
    auto const& picture = pictures[std::size_t(i)];
    if (picture.width != first.width || picture.height != first.height || picture.channels != first.channels)
      throw Error("a grid of pictures of {} x {} and {} x {} pixels, one size expected", first.width,
                  first.height, picture.width, picture.height);
    int const left = margin + i % columns * (first.width + margin),
              top = margin + i / columns * (first.height + margin);
    for (int y = 0; y < first.height; ++y)
      std::memcpy(result.pixel(left, top + y), picture.pixel(0, y),
                  std::size_t(first.width * first.channels));
  }
  return result;
}

Picture from_planes(float const* planes, int height, int width) {
  Picture picture(width, height, 3);
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        picture.pixel(x, y)[c] = std::uint8_t(
            std::lround((std::clamp(planes[(c * height + y) * width + x], -1.0f, 1.0f) + 1.0f) * 127.5f));
  return picture;
}

} // namespace prowl
