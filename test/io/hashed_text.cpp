#include <prowl/core/error.hpp>
#include <prowl/io/hashed_text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using Words = std::vector<std::string>;

TEST(HashedText, fnv1a_gives_the_published_values) {
  // Test vectors of RFC 9923, appendix C.
  EXPECT_EQ(prowl::fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(prowl::fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(prowl::fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(HashedText, words_are_letters_and_digits_in_lower_case) {
  EXPECT_EQ(prowl::words_of("Family: Man, woman-GIRL 12"), (Words{"family", "man", "woman", "girl", "12"}));
  EXPECT_EQ(prowl::words_of("man’s “piñata” Côte d'Ivoire"),
            (Words{"man", "s", "piñata", "côte", "d", "ivoire"}));
  EXPECT_EQ(prowl::words_of(" #*: "), Words{});
  EXPECT_EQ(prowl::words_of("a\xff"
                            "b\xe2\x80"),
            (Words{"a", "b"}));
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
