#include <prowl/core/error.hpp>
#include <prowl/core/random.hpp>
#include <prowl/io/hashed_text.hpp>
#include <prowl/io/text.hpp>

#include <algorithm>
#include <cmath>

namespace prowl {

namespace {

constexpr std::uint64_t word_stream = 0x776f7264; // "word"

struct CodePoint {
  std::uint32_t value;
  std::size_t bytes;
};

// Of the first character of a text in UTF-8 that is not empty.
CodePoint decode(std::string_view text) {
  auto const byte = [&](std::size_t i) { return std::uint32_t(static_cast<unsigned char>(text[i])); };
  std::uint32_t const first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t const bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  std::uint32_t value = first & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) value = (value << 6) | (byte(i) & 0x3F);
  return {value, bytes};
}

bool in_word(std::uint32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  return c > 0xBF && !(c >= 0x2000 && c <= 0x2BFF) && !(c >= 0x3000 && c <= 0x303F);
}

} // namespace

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t before) {
  for (char const c : bytes) before = (before ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return before;
}

std::vector<std::string> words_of(std::string_view text) {
  auto const folded = case_folded(text, "text");
  std::vector<std::string> words;
  bool inside = false;
  for (std::string_view rest = folded; !rest.empty();) {
    auto const c = decode(rest);
    bool const word = in_word(c.value);
    if (word && !inside) words.emplace_back();
    if (word) words.back() += rest.substr(0, c.bytes);
    inside = word;
    rest.remove_prefix(c.bytes);
  }
  return words;
}

HashedText::HashedText(std::int64_t tokens, std::int64_t width) : tokens_(tokens), width_(width) {
  if (tokens < 1 || width < 1)
    throw Error("hashed words: {} tokens of width {} asked for, at least 1 of each expected", tokens, width);
}

void HashedText::add_word(std::string const& word, double scale, float* vector) const {
  Random const random(fnv1a(word), word_stream);
  for (std::int64_t i = 0; i < width_; ++i) vector[i] += float(scale * random.normal(std::uint64_t(i)));
}

std::vector<float> HashedText::features(std::string_view caption) const {
  std::vector<float> result(std::size_t(tokens_ * width_));
  auto const words = words_of(caption);
  auto const count = std::min(std::int64_t(words.size()), tokens_);
  for (std::int64_t t = 0; t < count; ++t) add_word(words[std::size_t(t)], 1.0, result.data() + t * width_);
  return result;
}

std::vector<float> HashedText::pooled(std::string_view caption) const {
  std::vector<float> result(static_cast<std::size_t>(width_));
  auto const words = words_of(caption);
  for (auto const& word : words) add_word(word, 1.0 / std::sqrt(double(words.size())), result.data());
  return result;
}

} // namespace prowl
