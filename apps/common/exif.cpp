#include <common/exif.hpp>
#include <prowl/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>

namespace prowl {

namespace {

// Bytes with an order; reads beyond their end throw.
struct Tiff {
  std::string_view bytes;
  bool little = false;
  std::string const& where;

  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes.size() || bytes.size() - at < size)
      throw Error("{}: ends before offset {}", where, at + size);
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = (value << 8) | static_cast<unsigned char>(bytes[at + (little ? size - 1 - i : i)]);
    return value;
  }
};

int orientation(std::string_view exif, std::string const& where) {
  if (exif.starts_with(std::string_view("Exif\0\0", 6)))
    exif.remove_prefix(6); // as in JPEG; some programs leave it
  bool const little = exif.starts_with(std::string_view("II*\0", 4));
  if (!little && !exif.starts_with(std::string_view("MM\0*", 4)))
    throw Error("{}: begins with neither II nor MM", where);
  Tiff const tiff{exif, little, where};
  std::size_t const directory = tiff.number(4, 4), entries = tiff.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    auto const entry = directory + 2 + 12 * i;
    if (tiff.number(entry, 2) != 0x0112) continue;
    auto const type = tiff.number(entry + 2, 2), count = tiff.number(entry + 4, 4),
               value = tiff.number(entry + 8, 2);
    if (type != 3 || count != 1 || value < 1 || value > 8)
      throw Error("{}: orientation {} (type {}, {} of it), one SHORT from 1 to 8 expected", where, value,
                  type, count);
    return int(value);
  }
  return 1;
}

std::optional<std::string> exif_chunk(std::ifstream& file) {
  file.seekg(8);
  for (char head[8]; file.read(head, 8);) {
    std::uint32_t size = 0;
    for (int i = 0; i < 4; ++i) size = (size << 8) | static_cast<unsigned char>(head[i]);
    std::string_view const type(head + 4, 4);
    if (type == "IEND") break;
    if (type != "eXIf") {
      file.seekg(std::streamoff(size) + 4, std::ios::cur);
      continue;
    }
    std::string exif;
    // In pieces: a damaged length is no reason to take 4 GiB.
    for (char piece[4096]; exif.size() < size;) {
      file.read(piece, std::streamsize(std::min<std::size_t>(sizeof piece, size - exif.size())));
      if (file.gcount() == 0) break;
      exif.append(piece, std::size_t(file.gcount()));
    }
    return exif;
  }
  return {};
}

} // namespace

int png_orientation(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  auto const exif = exif_chunk(file);
  return exif ? orientation(*exif, path + ": eXIf chunk") : 1;
}

} // namespace prowl
