#include <common/png.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace prowl {

namespace {

// libpng's simplified interface keeps its message and its memory in this.
struct Image : png_image {
  Image() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(this); }
};

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
  Image image;
  if (!png_image_begin_read_from_file(&image, path.c_str()))
    throw Error("{}: cannot be read as PNG: {}", path, image.message);
  image.format = PNG_FORMAT_RGBA;
  // 64 Mpixels: more is a broken header, or no picture to train on.
  if (std::uint64_t(image.width) * image.height > (std::uint64_t{1} << 26))
    throw Error("{}: {} x {} pixels, at most 2^26 expected", path, image.width, image.height);
  Picture picture(int(image.width), int(image.height), 4);
  if (!png_image_finish_read(&image, nullptr, picture.bytes.data(), 0, nullptr))
    throw Error("{}: cannot be read as PNG: {}", path, image.message);
  return picture;
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
