#include <prowl/io/text.hpp>

#include <prowl/core/error.hpp>

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace prowl {

namespace {

utf8proc_uint8_t const* pointer(std::string_view bytes) {
  return reinterpret_cast<utf8proc_uint8_t const*>(bytes.data());
}

// Bytes of the character at the beginning of `bytes`, which is not empty; 0 where it is not UTF-8.
std::size_t character(std::string_view bytes) {
  utf8proc_int32_t code = 0;
  // Without a shorter view, a terminating NUL would be needed.
  auto const size =
      utf8proc_iterate(pointer(bytes), utf8proc_ssize_t(std::min<std::size_t>(bytes.size(), 4)), &code);
  return size > 0 ? std::size_t(size) : 0;
}

std::string_view without_mark(std::string_view bytes, std::string const& where) {
  for (auto const mark :
       {std::string_view("\xff\xfe"), std::string_view("\xfe\xff"), std::string_view("\0\0\xfe\xff", 4)})
    if (bytes.starts_with(mark))
      throw Error("{}: UTF-16 or UTF-32 by its byte-order mark, UTF-8 expected", where);
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  return bytes;
}

std::string mapped(std::string_view bytes, int options, std::string const& where) {
  auto const text = without_mark(bytes, where);
  for (std::size_t i = 0; i < text.size();) {
    auto const size = character(text.substr(i));
    auto const offset = i + bytes.size() - text.size();
    auto const byte = static_cast<unsigned char>(text[i]);
    if (size == 0) throw Error("{}: byte {:#04x} at offset {} is not UTF-8", where, byte, offset);
    if (byte == 0) throw Error("{}: NUL at offset {}, text in UTF-8 expected", where, offset);
    i += size;
  }
  utf8proc_uint8_t* out = nullptr;
  auto const length =
      utf8proc_map(pointer(text), utf8proc_ssize_t(text.size()), &out, utf8proc_option_t(options));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> const owner(out, &std::free);
  if (length < 0) throw Error("{}: cannot be normalised: {}", where, utf8proc_errmsg(length));
  return {reinterpret_cast<char const*>(out), std::size_t(length)};
}

} // namespace

std::string normalised(std::string_view bytes, std::string const& where) {
  return mapped(bytes, UTF8PROC_STABLE | UTF8PROC_COMPOSE, where);
}

std::string case_folded(std::string_view bytes, std::string const& where) {
  return mapped(bytes, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE, where);
}

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    auto const size = character(bytes);
    text += size > 0 ? bytes.substr(0, size) : std::string_view("\xef\xbf\xbd");
    bytes.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return text;
}

} // namespace prowl
