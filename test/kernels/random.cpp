#include "../arrays.hpp"

#include <prowl/kernels/fill.hpp>

#include <gtest/gtest.h>

#include <cmath>

using namespace prowl;

namespace {

struct Known {
  Philox::Words counter;
  std::uint32_t key0, key1;
  Philox::Words expected;
};

} // namespace

// kat_vectors of Random123, philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedKnownAnswers) {
  auto constexpr f = 0xFFFFFFFFu;
  Known const known[] = {{{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}}},
                         {{{f, f, f, f}}, f, f, {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}}},
                         {{{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}},
                          0xa4093822u,
                          0x299f31d0u,
                          {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}}}};
  for (auto const& k : known) {
    auto const words = Philox::block(k.counter, k.key0, k.key1);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words.w[i], k.expected.w[i]) << "word " << i;
  }
}

// The known answer for counter 0 and key 0, as bits() packs it.
TEST(Random, IsPhiloxOfSeedStreamAndIndex) { EXPECT_EQ(Random(0, 0).bits(0), 0xe169c58d6627e8d5u); }

// Sampling errors of n independent numbers: 1/sqrt(n) of the mean, sqrt(2/n) of the variance, sqrt(15/n) of
// the third moment, sqrt(96/n) of the fourth. Five of them: a right generator fails with probability 2e-6, a
// fixed seed never again.
TEST(Random, NormalNumbersHaveTheMomentsOfTheNormalDistribution) {
  int const n = 1 << 18;
  Random const random(7, 3);
  double m[5] = {};
  for (int i = 0; i < n; ++i) {
    double const x = random.normal(i);
    for (int k = 1; k <= 4; ++k) m[k] += std::pow(x, k) / n;
  }
  EXPECT_NEAR(m[1], 0, 5 / std::sqrt(n));
  EXPECT_NEAR(m[2], 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(m[3], 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(m[4], 3, 5 * std::sqrt(96.0 / n));
}

TEST(Random, StreamsSeedsAndNeighboursAreUncorrelated) {
  int const n = 1 << 16;
  Random const base(1, 0), stream(1, 1), seed(2, 0);
  double with_stream = 0, with_seed = 0, with_next = 0;
  for (int i = 0; i < n; ++i) {
    with_stream += base.normal(i) * stream.normal(i) / n;
    with_seed += base.normal(i) * seed.normal(i) / n;
    with_next += base.normal(i) * base.normal(i + 1) / n;
  }
  // A product of independent standard normal numbers has variance 1.
  for (double const correlation : {with_stream, with_seed, with_next})
    EXPECT_NEAR(correlation, 0, 5 / std::sqrt(n));
}

TEST(Random, UniformNumbersAreInsideTheUnitIntervalWithMeanOneHalf) {
  int const n = 1 << 16;
  Random const random(11, 5);
  double mean = 0;
  for (int i = 0; i < n; ++i) {
    double const x = random.uniform(i);
    ASSERT_GT(x, 0);
    ASSERT_LT(x, 1);
    mean += x / n;
  }
  EXPECT_NEAR(mean, 0.5, 5 / std::sqrt(12.0 * n));
}

TEST(FillNormal, APartFilledAloneIsThePartOfTheWhole) {
  Random const random(3, 9);
  Vector<float> whole("whole", 10000), part("part", 5000);
  fill_normal(Execution(), random, 100, 0.5f, whole);
  fill_normal(Execution(), random, 100 + 4097, 0.5f, part);
  auto const w = test::to_host(whole), p = test::to_host(part);
  for (std::size_t i = 0; i < p.size(); ++i) ASSERT_EQ(p[i], w[i + 4097]);
  // The mathematical functions of a device may differ from the host's in the last bits of a double.
  for (std::size_t i = 0; i < w.size(); ++i) ASSERT_FLOAT_EQ(w[i], float(0.5 * random.normal(100 + i)));
  fill_normal(Execution(), random, 0, 1, Vector<float>());
}

TEST(FillNormal, IndicesBeyondThirtyTwoBitsAreDistinct) {
  Random const random(3, 9);
  EXPECT_NE(random.bits(5), random.bits(5 + (std::uint64_t{1} << 32)));
}
