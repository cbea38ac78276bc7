/// Every parameter's gradient against central differences of the loss, in double.
#include "local_parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>

using namespace prowl;
using namespace prowl::test;

namespace {

/// Elements to try of a parameter of n: the first, the last and some between.
std::vector<std::int64_t> elements(std::int64_t n) {
  std::vector<std::int64_t> result = {0};
  for (std::int64_t const at : {n / 3, 2 * n / 3 + 1, n - 1})
    if (at > result.back() && at < n) result.push_back(at);
  return result;
}

void set(Matrix<double> const& m, std::int64_t at, double value) {
  Kokkos::deep_copy(slice(as_vector(m), at, 1), value);
}

void expect_gradients(dit::ModelConfig const& config, int samples) {
  Execution const exec;
  dit::Model<double> model(config, samples);
  auto p = with_random_weights<double>(config);
  auto const e = example<double>(config, host_input(config, samples));
  double const scale = 0.7; // of the loss
  model.forward_backward(exec, p, e.input, e.target, scale);

  std::vector<std::vector<double>> gradients;
  for (auto const& gradient : p.gradients) gradients.push_back(to_host(gradient));
  // Rounding: 1e-16 * loss / step = 1e-11; truncation: step^2 = 1e-10 times a third derivative of less than 1e3.
  double const step = 1e-5, tolerance = 1e-7;
  for (std::size_t i = 0; i < p.list.size(); ++i) {
    for (double const g : gradients[i])
      ASSERT_TRUE(std::isfinite(g)) << p.list[i].name << ": not written whole";
    auto const values = to_host(p.weights[i]);
    for (auto const at : elements(p.list[i].size())) {
      double const w = values[std::size_t(at)];
      set(p.weights[i], at, w + step);
      double const above = model.loss(exec, p, e.input, e.target);
      set(p.weights[i], at, w - step);
      double const below = model.loss(exec, p, e.input, e.target);
      set(p.weights[i], at, w);
      double const difference = scale * (above - below) / (2 * step), g = gradients[i][std::size_t(at)];
      EXPECT_NEAR(g, difference, tolerance * (1 + std::fabs(difference)))
          << p.list[i].name << " element " << at;
    }
    double largest = 0;
    for (double const g : gradients[i]) largest = std::max(largest, std::fabs(g));
    auto const last = "blocks." + std::to_string(config.layers - 1) + ".txt.attn.q";
    if (p.list[i].name.rfind(last, 0) == 0) {
      EXPECT_EQ(largest, 0) << p.list[i].name << ": the last block's text attends for nothing";
    } else if (config.layers >
               1) { // with one block, text goes through a LayerNorm first: its scalar hardly matters
      EXPECT_GT(largest, 100 * tolerance) << p.list[i].name << ": too small a gradient to tell anything";
    }
  }
}

} // namespace

TEST(Gradients, of_one_head_and_two_samples_match_central_differences) { expect_gradients(tiny(64), 2); }

TEST(Gradients, of_two_heads_and_one_sample_match_central_differences) { expect_gradients(tiny(128), 1); }

TEST(Gradients, of_a_single_block_match_central_differences) { expect_gradients(tiny(64, 1), 1); }

TEST(Gradients, of_more_than_a_chunk_of_tokens_match_central_differences) {
  auto config = tiny(64, 1);
  config.image_size = 14; // 49 image tokens: the norms of heads sum their gradients in chunks of 32
  expect_gradients(config, 1);
}
