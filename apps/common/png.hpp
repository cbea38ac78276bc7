/// 8-bit pictures and PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prowl {

/// (height, width, channels), 3 channels RGB or 4 RGBA (alpha not premultiplied).
struct Picture {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> bytes;

  Picture() = default;
  /// All bytes `value`.
  Picture(int width, int height, int channels, std::uint8_t value = 0);

  std::uint8_t* pixel(int x, int y) {
    return bytes.data() + (std::size_t(y) * std::size_t(width) + std::size_t(x)) * std::size_t(channels);
  }
  std::uint8_t const* pixel(int x, int y) const { return const_cast<Picture*>(this)->pixel(x, y); }
};

/// Writes RGB or RGBA. The file appears whole or not at all. Throws Error naming the file.
void write_png(std::string const& path, Picture const& picture);

/// Any PNG, as RGBA of 8 bits, turned upright by its Exif orientation. Values are sRGB whatever their bits;
/// where gAMA says otherwise (and sRGB does not), they are converted. Colour profiles (iCCP, cHRM) are not
/// applied. Throws Error naming the file where it is missing, no PNG, or broken.
Picture read_png(std::string const& path);

/// Pictures of one size side by side, row by row, `columns` a row, with `margin` white pixels around each.
Picture grid(std::vector<Picture> const& pictures, int columns, int margin);

/// Planes (3, height, width) of values in [-1, 1], others clamped, as an RGB picture.
Picture from_planes(float const* planes, int height, int width);

} // namespace prowl
