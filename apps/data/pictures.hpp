// From pictures of any size to the square pictures of a data set.
#pragma once

#include <common/png.hpp>

#include <array>
#include <string>

namespace prowl::data {

using Colour = std::array<std::uint8_t, 3>;

// "white", "black", "grey" or "#rrggbb".
Colour parse_colour(std::string const& text);

// RGBA with premultiplied alpha, (height, width, 4).
struct Premultiplied {
  int width = 0;
  int height = 0;
  std::vector<float> values; // 0 .. 255
};

Premultiplied premultiply(Picture const& rgba);

// Centred on a transparent square of its longer side.
Premultiplied pad_to_square(Premultiplied const& picture);
// The square of its shorter side from the middle.
Premultiplied crop_to_square(Premultiplied const& picture);

// Each pixel the mean over its area of the picture, which is a square, put on the background. Planes (3,
// size, size), as data sets hold them.
std::vector<std::uint8_t> scale(Premultiplied const& picture, int size, Colour const& background);

} // namespace prowl::data
