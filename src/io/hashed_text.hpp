/// Text features from hashed words: a text encoder that needs no trained weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prowl {

/// What data sets made this way say in their attribute `text_encoding`. Older ones may have been made without
/// normalising and with only ASCII's capitals folded; the name is the same, as nearly all words' features
/// are.
inline constexpr char const* hashed_words = "hashed words";

/// 64-bit FNV-1a (Fowler, Noll, Vo; RFC 9923) of the bytes; given the hash of what precedes them, of both.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t before = 0xcbf29ce484222325u);

/// The words of a UTF-8 text: runs of letters and digits, normalised (NFC) and case folded (`case_folded` in
/// prowl/io/text.hpp). Everything else separates: ASCII punctuation, Latin-1 and general punctuation, symbols
/// (U+0080..U+00BF, U+2000..U+2BFF, U+3000..U+303F). Throws Error where the text is not UTF-8 or has a NUL,
/// as do the functions below.
std::vector<std::string> words_of(std::string_view text);

/// Maps the words of a caption to fixed random vectors: element i of a word's vector is the standard normal
/// number i of the stream "word" of the seed fnv1a(word) (prowl/core/random.hpp). The same words give the
/// same features everywhere.
class HashedText {
public:
  /// At most `tokens` words, each `width` numbers.
  HashedText(std::int64_t tokens, std::int64_t width);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t width() const { return width_; }

  /// (tokens, width): the vectors of the first `tokens` words in order, then zeros.
  std::vector<float> features(std::string_view caption) const;
  /// (width): the sum of all words' vectors over the square root of their number; zeros without a word.
  std::vector<float> pooled(std::string_view caption) const;

private:
  void add_word(std::string const& word, double scale, float* vector) const;

  std::int64_t tokens_, width_;
};

} // namespace prowl
