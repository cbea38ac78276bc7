#include <dit/noise.hpp>

#include "local_parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>

using namespace prowl;
using namespace prowl::test;

namespace {

struct Noisy {
  std::vector<double> time, noisy, velocity;
};

Noisy make(std::uint64_t first, int samples, int size, std::vector<double> const& clean) {
  Vector<double> time("time", samples);
  Batch<double> noisy("noisy", samples, 1, size), velocity("velocity", samples, 1, size);
  dit::make_noisy<double>(Execution(), 7, first, batch<double>(clean, samples, 1, size), time, noisy,
                          velocity);
  return {to_host(time), to_host(noisy), to_host(velocity)};
}

} // namespace

TEST(Noise, lies_on_the_line_from_data_to_noise) {
  auto const clean = normal_values<double>(3 * 50, 1);
  auto const n = make(0, 3, 50, clean);
  for (std::size_t i = 0; i < clean.size(); ++i) // x_t = x + t v, for v = e - x
    EXPECT_NEAR(n.noisy[i], clean[i] + n.time[i / 50] * n.velocity[i], 1e-14);
}

TEST(Noise, depends_on_the_sample_s_number_only) {
  std::vector<double> const clean(8 * 10, 0.0);
  auto const whole = make(100, 8, 10, clean), part = make(103, 2, 10, std::vector<double>(20, 0.0));
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(part.time[s], whole.time[3 + s]);
    for (std::size_t i = 0; i < 10; ++i)
      EXPECT_EQ(part.velocity[s * 10 + i], whole.velocity[(3 + s) * 10 + i]);
  }
  EXPECT_NE(whole.time[0], whole.time[1]);
  EXPECT_NE(whole.velocity[0], whole.velocity[10]);
}

TEST(Noise, is_standard_normal_and_the_logit_of_time_too) {
  int const samples = 10000, size = 20;
  auto const n = make(0, samples, size, std::vector<double>(samples * size, 0.0));
  auto const expect_standard = [](std::vector<double> const& x) {
    double mean = 0, square = 0, fourth = 0, count = double(x.size());
    for (double const v : x) {
      mean += v / count;
      square += v * v / count;
      fourth += v * v * v * v / count;
    }
    // Five standard errors: of the mean 1, of x^2 sqrt(2), of x^4 sqrt(96), all over sqrt(n).
    EXPECT_NEAR(mean, 0, 5 / std::sqrt(count));
    EXPECT_NEAR(square, 1, 5 * std::sqrt(2 / count));
    EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96 / count));
  };
  expect_standard(n.velocity); // e - 0
  std::vector<double> logits;
  for (double const t : n.time) logits.push_back(std::log(t / (1 - t)));
  expect_standard(logits);
  double covariance = 0; // of time and the first noise of its sample
  for (std::size_t s = 0; s < std::size_t(samples); ++s)
    covariance += logits[s] * n.velocity[s * size] / samples;
  EXPECT_NEAR(covariance, 0, 5 / std::sqrt(double(samples)));
}

TEST(Noise, of_sampling_is_not_that_of_training) {
  Batch<double> start("start", 1, 1, 10);
  dit::fill_normal<double>(Execution(), 7, 0, start);
  auto const e = make(0, 1, 10, std::vector<double>(10, 0.0)).velocity;
  auto const s = to_host(start);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NE(s[i], e[i]);
}

TEST(Captions, are_dropped_whole_and_as_often_as_asked) {
  int const samples = 10000;
  dit::Input<float> input;
  input.text = {Batch<float>("a", samples, 2, 3), Batch<float>("b", samples, 1, 5)};
  input.pooled = Matrix<float>("pooled", samples, 4);
  for (auto const& text : input.text) Kokkos::deep_copy(text, 1.0F);
  Kokkos::deep_copy(input.pooled, 1.0F);
  dit::drop_captions<float>(Execution(), 7, 0, 0.1, input);
  auto const a = to_host(input.text[0]), b = to_host(input.text[1]);
  auto const pooled = to_host(input.pooled);
  int dropped = 0;
  for (std::size_t s = 0; s < std::size_t(samples); ++s) {
    float const kept = pooled[s * 4];
    dropped += kept == 0;
    for (std::size_t i = 0; i < 6; ++i) ASSERT_EQ(a[s * 6 + i], kept);
    for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(b[s * 5 + i], kept);
    for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(pooled[s * 4 + i], kept);
  }
  EXPECT_NEAR(dropped, 1000, 5 * std::sqrt(samples * 0.1 * 0.9)); // five standard deviations
}
