#include "../arrays.hpp"

#include <prowl/core/error.hpp>
#include <prowl/kernels/convert.hpp>
#include <prowl/kernels/shards.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

using namespace prowl;

TEST(Bfloat16, EveryPatternSurvivesTheRoundTrip) {
  std::vector<bfloat16> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = std::uint16_t(i);
  auto const source = test::to_device(all);
  Vector<float> wide("wide", all.size());
  Vector<bfloat16> back("back", all.size());
  join_shards(Execution(), {1, 65536, 1, 65536, 0}, source, wide);
  to_bfloat16(Execution(), wide, back);
  auto const w = test::to_host(wide);
  auto const b = test::to_host(back);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    // The value from sign, exponent and fraction.
    int const exponent = (i >> 7) & 0xFF, fraction = i & 0x7F;
    if (exponent == 255 && fraction != 0) {
      ASSERT_TRUE(std::isnan(w[i])) << i;
      ASSERT_TRUE(std::isnan(b[i].to_float())) << i;
      ASSERT_EQ(b[i].bits >> 15, i >> 15);
      continue;
    }
    double const magnitude = exponent == 255 ? std::numeric_limits<double>::infinity()
                             : exponent == 0 ? std::ldexp(fraction, -133)
                                             : std::ldexp(128 + fraction, exponent - 134);
    ASSERT_EQ(w[i], i >> 15 ? -magnitude : magnitude) << i;
    ASSERT_EQ(b[i].bits, i);
  }
}

TEST(Bfloat16, RoundsToNearestAndTiesToEven) {
  auto const round = [](double x) { return double(bfloat16::from_float(float(x)).to_float()); };
  double const ulp = 0x1p-7; // of numbers in [1, 2)
  EXPECT_EQ(round(1 + ulp / 2), 1);
  EXPECT_EQ(round(1 + 3 * ulp / 2), 1 + 2 * ulp);
  EXPECT_EQ(round(1 + 5 * ulp / 2), 1 + 2 * ulp);
  EXPECT_EQ(round(-1 - 3 * ulp / 2), -1 - 2 * ulp);
  EXPECT_EQ(round(1 + ulp / 2 + 0x1p-23), 1 + ulp);
  EXPECT_EQ(round(1 + ulp / 2 - 0x1p-23), 1);
  EXPECT_EQ(round(2 - 0x1p-23), 2);
  EXPECT_EQ(round(0x1p-134), 0); // half the smallest subnormal number: a tie with zero
  EXPECT_EQ(round(0x1.8p-133), 0x1p-132);
  EXPECT_EQ(round(std::numeric_limits<float>::max()), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round(-std::numeric_limits<float>::infinity()), -std::numeric_limits<double>::infinity());
}

TEST(Bfloat16, KeepsANaNWhoseUpperBitsWouldBeAnInfinity) {
  EXPECT_TRUE(std::isnan(bfloat16::from_float(std::bit_cast<float>(0x7F800001u)).to_float()));
  EXPECT_TRUE(std::isnan(bfloat16::from_float(std::bit_cast<float>(0xFFFFFFFFu)).to_float()));
}

TEST(Bfloat16, OnTheWireWhatIsFiniteStaysFinite) {
  float const largest = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  Vector<bfloat16> const sent("sent", 4);
  to_bfloat16(Execution(), test::to_device(std::vector<float>{largest, -largest, infinity, -infinity}), sent);
  auto const values = test::to_host(sent);
  double const most = 255 * 0x1p120; // eight significant bits
  EXPECT_EQ(values[0].to_float(), most);
  EXPECT_EQ(values[1].to_float(), -most);
  EXPECT_EQ(values[2].to_float(), infinity);
  EXPECT_EQ(values[3].to_float(), -infinity);
}

TEST(Bfloat16, SizesThatDifferAreRefused) {
  EXPECT_THROW(to_bfloat16(Execution(), Vector<float>("a", 3), Vector<bfloat16>("b", 2)), Error);
}
