// Bytes read as a PNG file. Checksums of chunks are put right after each mutation, or none would get past them.
#include "scratch.hpp"

#include <common/png.hpp>

#include <png.h>
#include <zlib.h>

#include <cstring>
#include <vector>

namespace {

std::uint32_t big_endian(std::uint8_t const* p) {
  return std::uint32_t(p[0]) << 24 | std::uint32_t(p[1]) << 16 | std::uint32_t(p[2]) << 8 | p[3];
}

void put_big_endian(std::uint8_t* p, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) p[i] = std::uint8_t(value >> (24 - 8 * i));
}

void mend_checksums(std::uint8_t* data, std::size_t size) {
  for (std::size_t at = 8; at + 12 <= size;) {
    auto const length = big_endian(data + at);
    if (length > size - at - 12) return;
    put_big_endian(data + at + 8 + length, std::uint32_t(crc32(0, data + at + 4, uInt(length + 4))));
    at += 12 + std::size_t(length);
  }
}

/// A picture with an orientation in a chunk eXIf before IDAT.
std::vector<std::uint8_t> turned(std::vector<std::uint8_t> file) {
  std::uint8_t const exif[] = {0,  0, 0, 26, 'e', 'X', 'I', 'f', 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1,
                               18, 0, 3, 0,  0,   0,   1,   0,   6,   0,   0, 0,  0, 0, 0, 0, 0, 0, 0};
  file.insert(file.begin() + 33, std::begin(exif), std::end(exif)); // after the signature and IHDR
  mend_checksums(file.data(), file.size());
  return file;
}

void write_seeds(std::string const& folder) {
  constexpr std::uint32_t width = 5, height = 3;
  std::vector<std::uint8_t> pixels(width * height * 8), colours(256 * 4);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::uint8_t(37 * i);
  for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = std::uint8_t(91 * i);
  int number = 0;
  png_uint_32 const formats[] = {PNG_FORMAT_GRAY,         PNG_FORMAT_GA,       PNG_FORMAT_RGB,
                                 PNG_FORMAT_RGBA,         PNG_FORMAT_LINEAR_Y, PNG_FORMAT_LINEAR_RGB_ALPHA,
                                 PNG_FORMAT_RGBA_COLORMAP};
  for (auto format : formats) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = format;
    image.colormap_entries = 4;
    auto shown = pixels;
    if (format & PNG_FORMAT_FLAG_COLORMAP)
      for (auto& p : shown) p %= 4;
    std::vector<std::uint8_t> file(4096);
    png_alloc_size_t size = file.size();
    if (!png_image_write_to_memory(&image, file.data(), &size, 0, shown.data(), 0, colours.data()))
      std::abort();
    file.resize(size);
    auto const exif = turned(file);
    fuzz::write(folder + "/" + std::to_string(number) + ".png", file.data(), file.size());
    fuzz::write(folder + "/" + std::to_string(number++) + "-exif.png", exif.data(), exif.size());
  }
}

} // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned) {
  auto const now = LLVMFuzzerMutate(data, size, most);
  mend_checksums(data, now);
  return now;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (char const* const seeds = std::getenv("PROWL_FUZZ_SEEDS")) write_seeds(seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const path = fuzz::scratch("x.png");
  fuzz::write(path, data, size);
  fuzz::expect_error_or_none([&] {
    auto const picture = prowl::read_png(path);
    if (picture.bytes.size() != std::size_t(picture.width) * std::size_t(picture.height) * 4) std::abort();
  });
  return 0;
}
