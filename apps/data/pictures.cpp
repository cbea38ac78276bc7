#include <data/pictures.hpp>
#include <prowl/core/error.hpp>

#include <algorithm>
#include <cmath>

namespace prowl::data {

namespace {

// Moves the picture's middle to the middle of a transparent square.
Premultiplied centre(Premultiplied const& picture, int side) {
  Premultiplied result{side, side, std::vector<float>(std::size_t(side) * std::size_t(side) * 4)};
  // Rounded down, also where negative.
  int const dx = (side - picture.width) >> 1, dy = (side - picture.height) >> 1;
  for (int y = std::max(0, dy); y < std::min(side, dy + picture.height); ++y)
    for (int x = std::max(0, dx); x < std::min(side, dx + picture.width); ++x)
      std::copy_n(
          &picture.values[(std::size_t(y - dy) * std::size_t(picture.width) + std::size_t(x - dx)) * 4], 4,
          &result.values[(std::size_t(y) * std::size_t(side) + std::size_t(x)) * 4]);
  return result;
}

// The parts of source pixels that an output pixel of one axis covers.
struct Cover {
  int first = 0;
  std::vector<float> weights; // sum to 1
};

std::vector<Cover> covers(int from, int to) {
  std::vector<Cover> result(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    // In units of 1 / to source pixels, so that the bounds are exact.
    std::int64_t const begin = std::int64_t(i) * from, end = begin + from;
    auto& cover = result[std::size_t(i)];
    cover.first = int(begin / to);
    for (std::int64_t p = cover.first; p * to < end; ++p)
      cover.weights.push_back(float(std::min(end, (p + 1) * to) - std::max(begin, p * to)) / float(from));
  }
  return result;
}

} // namespace

Colour parse_colour(std::string const& text) {
  if (text == "white") return {255, 255, 255};
  if (text == "black") return {0, 0, 0};
  if (text == "grey") return {128, 128, 128};
  if (text.size() == 7 && text[0] == '#' &&
      text.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos) {
    auto const value = std::stoul(text.substr(1), nullptr, 16);
    return {std::uint8_t(value >> 16), std::uint8_t(value >> 8), std::uint8_t(value)};
  }
  throw Error("background \"{}\": white, black, grey or #rrggbb expected", text);
}

Premultiplied premultiply(Picture const& rgba) {
  Premultiplied result{rgba.width, rgba.height, std::vector<float>(rgba.bytes.begin(), rgba.bytes.end())};
  for (std::size_t i = 0; i < result.values.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c) result.values[i + c] *= result.values[i + 3] / 255;
  return result;
}

Premultiplied pad_to_square(Premultiplied const& picture) {
  return centre(picture, std::max(picture.width, picture.height));
}

Premultiplied crop_to_square(Premultiplied const& picture) {
  return centre(picture, std::min(picture.width, picture.height));
}

std::vector<std::uint8_t> scale(Premultiplied const& picture, int size, Colour const& background) {
  auto const cover = covers(picture.width, size);
  auto const n = std::size_t(size);
  std::vector<std::uint8_t> planes(3 * n * n);
  for (std::size_t y = 0; y < n; ++y)
    for (std::size_t x = 0; x < n; ++x) {
      float sum[4] = {};
      for (std::size_t j = 0; j < cover[y].weights.size(); ++j)
        for (std::size_t i = 0; i < cover[x].weights.size(); ++i) {
          auto const row = std::size_t(cover[y].first) + j, column = std::size_t(cover[x].first) + i;
          float const* pixel = &picture.values[(row * std::size_t(picture.width) + column) * 4];
          for (int c = 0; c < 4; ++c) sum[c] += cover[y].weights[j] * cover[x].weights[i] * pixel[c];
        }
      for (std::size_t c = 0; c < 3; ++c) {
        float const value = sum[c] + (1 - sum[3] / 255) * float(background[c]);
        planes[c * n * n + y * n + x] = std::uint8_t(std::lround(std::clamp(value, 0.0f, 255.0f)));
      }
    }
  return planes;
}

} // namespace prowl::data
