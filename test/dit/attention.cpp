#include <dit/attention.hpp>

#include "local_parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>

using namespace prowl;
using namespace prowl::test;

namespace {

constexpr int samples = 2, heads = 3, tokens = 5;

struct Arrays {
  Batch<double> q, k, v, scores, dscores, out;
};

Arrays arrays(double scale = 1) {
  auto const make = [](std::uint64_t stream, double s) {
    return batch<double>(normal_values<double>(samples * heads * tokens * 64, stream, s), samples * heads,
                         tokens, 64);
  };
  return {make(1, scale),
          make(2, scale),
          make(3, 1),
          Batch<double>("scores", heads, tokens, tokens),
          Batch<double>("dscores", heads, tokens, tokens),
          Batch<double>("out", samples * heads, tokens, 64)};
}

void attend(Arrays const& a) { dit::attention<double>(Execution(), heads, a.q, a.k, a.v, a.scores, a.out); }

} // namespace

TEST(Attention, is_the_softmax_of_products_over_eight) {
  auto const a = arrays();
  attend(a);
  auto const q = to_host(a.q), k = to_host(a.k), v = to_host(a.v), out = to_host(a.out);
  for (std::size_t h = 0; h < samples * heads; ++h)
    for (std::size_t i = 0; i < tokens; ++i) {
      double p[tokens], sum = 0;
      for (std::size_t j = 0; j < tokens; ++j) {
        double dot = 0;
        for (std::size_t c = 0; c < 64; ++c)
          dot += q[(h * tokens + i) * 64 + c] * k[(h * tokens + j) * 64 + c];
        sum += p[j] = std::exp(dot / 8);
      }
      for (std::size_t c = 0; c < 64; ++c) {
        double expected = 0;
        for (std::size_t j = 0; j < tokens; ++j) expected += p[j] / sum * v[(h * tokens + j) * 64 + c];
        EXPECT_NEAR(out[(h * tokens + i) * 64 + c], expected, 1e-13);
      }
    }
}

TEST(Attention, of_large_scores_is_finite) {
  auto const a = arrays(100); // scores of some 1e5: exp would overflow
  attend(a);
  for (double const x : to_host(a.out)) EXPECT_TRUE(std::isfinite(x));
}

TEST(Attention, gradients_match_central_differences) {
  auto const a = arrays();
  auto const upstream = normal_values<double>(a.out.size(), 9);
  auto const objective = [&] {
    attend(a);
    auto const out = to_host(a.out);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * upstream[i];
    return sum;
  };
  double const step = 1e-5;
  std::vector<double> expected;
  std::vector<std::int64_t> const places = {0, 63, 64 * 7 + 5, 64 * 5 * 4 + 17,
                                            samples * heads * tokens * 64 - 1};
  for (auto const& x : {a.q, a.k, a.v})
    for (auto const at : places) {
      auto const element = slice(Vector<double>(x.data(), x.size()), at, 1);
      double const value = to_host(element)[0];
      Kokkos::deep_copy(element, value + step);
      double const above = objective();
      Kokkos::deep_copy(element, value - step);
      double const below = objective();
      Kokkos::deep_copy(element, value);
      expected.push_back((above - below) / (2 * step));
    }
  auto const dout = batch<double>(upstream, samples * heads, tokens, 64);
  dit::attention_backward<double>(Execution(), heads, a.q, a.k, a.v, a.scores, a.dscores, dout);
  std::size_t i = 0;
  for (auto const& gradient : {dout, a.k, a.v}) {
    auto const g = to_host(gradient);
    // Rounding of 1e-16 * 1e2 / step.
    for (auto const at : places) EXPECT_NEAR(g[std::size_t(at)], expected[i++], 1e-8);
  }
}
