#include <prowl/core/error.hpp>
#include <prowl/core/random.hpp>
#include <prowl/io/hashed_text.hpp>
#include <prowl/io/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using Words = std::vector<std::string>;

TEST(HashedText, fnv1a_gives_the_published_values) {
  // Test vectors of RFC 9923, appendix C.
  EXPECT_EQ(prowl::fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(prowl::fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(prowl::fnv1a("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(prowl::fnv1a("bar", prowl::fnv1a("foo")), 0x85944171f73967e8u);
}

TEST(HashedText, words_are_letters_and_digits_in_lower_case) {
  EXPECT_EQ(prowl::words_of("Family: Man, woman-GIRL 12"), (Words{"family", "man", "woman", "girl", "12"}));
  EXPECT_EQ(prowl::words_of("man’s “piñata” Côte d'Ivoire"),
            (Words{"man", "s", "piñata", "côte", "d", "ivoire"}));
  EXPECT_EQ(prowl::words_of(" #*: "), Words{});
}

TEST(HashedText, words_do_not_depend_on_case_composition_or_what_is_never_seen) {
  // Precomposed, decomposed (U+0301, U+0308), full case folding, both final and other sigma.
  for (char const* text :
       {"CAF\u00c9", "caf\u00e9", "CAFE\u0301", "Cafe\u0301", "\ufeffcaf\u00e9", "ca\u00adf\u00e9"})
    EXPECT_EQ(prowl::words_of(text), Words{"caf\u00e9"}) << text;
  EXPECT_EQ(prowl::words_of("\u00c5land \u0410\u041f\u041f\u041b\u0415"),
            (Words{"\u00e5land", "\u0430\u043f\u043f\u043b\u0435"}));
  EXPECT_EQ(prowl::words_of("STRASSE stra\u00dfe stra\u1e9ee"), (Words{"strasse", "strasse", "strasse"}));
  EXPECT_EQ(prowl::words_of("\u03a3\u0399\u03a3 \u03c3\u03b9\u03c2"),
            (Words{"\u03c3\u03b9\u03c3", "\u03c3\u03b9\u03c3"}));
  EXPECT_EQ(prowl::words_of("red\ufe0f heart\u200d"), (Words{"red", "heart"}));
}

TEST(HashedText, ascii_words_have_the_vectors_of_their_hashes) {
  prowl::HashedText const text(2, 16);
  auto const features = text.features("RED, apple!");
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_EQ(features[t * 16 + i],
                float(prowl::Random(prowl::fnv1a(t == 0 ? "red" : "apple"), 0x776f7264).normal(i)));
}

TEST(HashedText, what_is_not_text_in_utf8_is_refused_at_its_offset) {
  auto const message = [](std::string_view bytes) -> std::string {
    try {
      prowl::words_of(bytes);
    } catch (prowl::Error const& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("a\xff"), "text: byte 0xff at offset 1 is not UTF-8");
  EXPECT_EQ(message("caf\xe9 noir"), "text: byte 0xe9 at offset 3 is not UTF-8");         // Latin-1
  EXPECT_EQ(message("\xef\xbb\xbf\xe2\x80"), "text: byte 0xe2 at offset 3 is not UTF-8"); // cut short
  EXPECT_EQ(message("\xc0\xaf"), "text: byte 0xc0 at offset 0 is not UTF-8");             // overlong
  EXPECT_EQ(message("ab\xed\xa0\x80"), "text: byte 0xed at offset 2 is not UTF-8");       // a surrogate
  EXPECT_EQ(message({"red\0apple", 9}), "text: NUL at offset 3, text in UTF-8 expected");
  for (std::string_view const mark : {std::string_view("\xff\xfe"
                                                       "a\0",
                                                       4),
                                      std::string_view("\xfe\xff\0"
                                                       "a",
                                                       4)})
    EXPECT_EQ(message(mark), "text: UTF-16 or UTF-32 by its byte-order mark, UTF-8 expected");
}

TEST(Text, normalised_text_is_composed_and_loses_its_mark_alone) {
  EXPECT_EQ(prowl::normalised("\xef\xbb\xbf"
                              "Cafe\u0301 \u200dX",
                              "a"),
            "Caf\u00e9 \u200dX");
  EXPECT_EQ(prowl::printable("a\xe9/\u00e9\xe2\x82"), "a\ufffd/\u00e9\ufffd\ufffd");
}

TEST(HashedText, a_word_has_one_vector_of_unit_variance_in_every_caption) {
  prowl::HashedText const text(3, 4096);
  auto const one = text.features("Apple"), two = text.features("red apple");
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 4096, two.begin() + 4096));
  EXPECT_TRUE(std::all_of(one.begin() + 4096, one.end(), [](float x) { return x == 0; }));
  double sum = 0, squares = 0, product = 0;
  for (std::size_t i = 0; i < 4096; ++i) {
    sum += one[i];
    squares += one[i] * one[i];
    product += double(one[i]) * two[i];
  }
  // Five standard deviations of the means of 4096 numbers: 5/64 for x and x y, 5 sqrt(2)/64 for x^2.
  EXPECT_NEAR(sum / 4096, 0, 5.0 / 64);
  EXPECT_NEAR(product / 4096, 0, 5.0 / 64);
  EXPECT_NEAR(squares / 4096, 1, 7.1 / 64);
}

TEST(HashedText, words_beyond_the_tokens_are_in_the_pooled_vector_only) {
  prowl::HashedText const text(1, 8);
  EXPECT_EQ(text.features("red apple"), text.features("red"));
  auto const red = text.pooled("red"), apple = text.pooled("apple"), both = text.pooled("red apple");
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(both[i], (red[i] + apple[i]) / std::sqrt(2.0f), 1e-6f);
  EXPECT_EQ(red, text.features("red"));
  EXPECT_EQ(text.pooled(""), std::vector<float>(8));
  EXPECT_THROW(prowl::HashedText(0, 8), prowl::Error);
}
