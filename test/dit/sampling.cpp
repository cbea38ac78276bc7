#include <dit/sampling.hpp>

#include <prowl/core/error.hpp>

#include "local_parameters.hpp"

#include <gtest/gtest.h>

using namespace prowl;
using namespace prowl::test;

TEST(Sampling, follows_a_constant_field_exactly) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  std::vector<double> bias;
  for (std::size_t i = 0; i < p.list.size();
       ++i) { // the velocity is the last layer's bias, whatever the input
    if (p.list[i].name == "final.linear.weight") Kokkos::deep_copy(p.weights[i], 0.0);
    if (p.list[i].name == "final.linear.bias") bias = to_host(p.weights[i]);
  }
  dit::Model<double> model(config, 4);
  auto const e = example<double>(config, host_input(config, 2));
  auto const start = to_host(e.input.latent);
  dit::sample<double>(Execution(), model, p, e.input, {7, 3.0}, e.input.latent);
  auto const end = to_host(e.input.latent);
  for (std::size_t i = 0; i < start.size(); ++i) {
    std::size_t const channel = i / 36 % 3, row = i / 6 % 6,
                      column = i % 6; // 3 channels of 6 x 6, patches of 2 x 2
    EXPECT_NEAR(end[i], start[i] - bias[(channel * 2 + row % 2) * 2 + column % 2], 1e-13);
  }
}

TEST(Sampling, takes_guided_steps_from_time_one) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  dit::Model<double> model(config, 2);
  auto const e = example<double>(config, host_input(config, 1));
  auto expected = to_host(e.input.latent);
  Batch<double> x("x", 1, config.channels, config.pixels()), v("v", 1, config.channels, config.pixels());
  Kokkos::deep_copy(x, e.input.latent);
  auto with = e.input;
  with.latent = x;
  auto without = example<double>(config, host_input(config, 1)).input;
  without.latent = x;
  without.time = with.time;
  for (auto const& text : without.text) Kokkos::deep_copy(text, 0.0);
  Kokkos::deep_copy(without.pooled, 0.0);
  for (double const t : {1.0, 0.5}) {
    Kokkos::deep_copy(with.time, t);
    model.predict(Execution(), p, with, v);
    auto const captioned = to_host(v);
    model.predict(Execution(), p, without, v);
    auto const free = to_host(v);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] -= 0.5 * (free[i] + 5.0 * (captioned[i] - free[i]));
    Kokkos::deep_copy(x, batch<double>(expected, 1, config.channels, config.pixels()));
  }
  dit::sample<double>(Execution(), model, p, e.input, {2, 5.0}, e.input.latent);
  auto const got = to_host(e.input.latent);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-10);
}

TEST(Sampling, needs_room_for_both_halves) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  dit::Model<double> model(config, 1);
  auto const e = example<double>(config, host_input(config, 1));
  EXPECT_THROW(dit::sample<double>(Execution(), model, p, e.input, {2, 5.0}, e.input.latent), Error);
}
