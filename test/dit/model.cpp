#include "local_parameters.hpp"

#include <prowl/core/error.hpp>

#include <gtest/gtest.h>

#include <cmath>

using namespace prowl;
using namespace prowl::test;

namespace {

/// Counts the allocations of views.
struct Allocations {
  static inline std::int64_t bytes = 0;
  static inline int count = 0;
  Allocations() {
    bytes = count = 0;
    Kokkos::Tools::Experimental::set_allocate_data_callback(
        [](Kokkos_Profiling_SpaceHandle, char const*, void const*, std::uint64_t size) {
          bytes += std::int64_t(size);
          ++count;
        });
  }
  ~Allocations() { Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr); }
};

template <class T>
std::vector<std::vector<T>> gradients(LocalParameters<T> const& p) {
  std::vector<std::vector<T>> result;
  for (auto const& gradient : p.gradients) result.push_back(to_host(gradient));
  return result;
}

} // namespace

TEST(Model, allocates_the_stated_bytes_once_and_nothing_in_a_step) {
  auto const config = tiny(64);
  auto p = with_random_weights<float>(config);
  auto const e = example<float>(config, host_input(config, 2)),
             one = example<float>(config, host_input(config, 1));
  Execution const exec;
  Allocations const allocations;
  dit::Model<float> model(config, 2);
  // Kokkos adds a header of 128 bytes to an allocation; whether a tool sees it depends on its version.
  EXPECT_GE(Allocations::bytes, dit::activation_bytes<float>(config, 2));
  EXPECT_LE(Allocations::bytes, dit::activation_bytes<float>(config, 2) + 128);
  EXPECT_EQ(Allocations::count, 1);
  model.forward_backward(exec, p, e.input, e.target, 1); // the execution space may grow its own scratch once
  int const before = Allocations::count;
  model.forward_backward(exec, p, e.input, e.target, 1);
  model.forward_backward(exec, p, one.input, one.target, 1);
  EXPECT_EQ(Allocations::count, before);
}

TEST(Model, brackets_units_forward_then_backward) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  dit::Model<double> model(config, 1);
  auto const e = example<double>(config, host_input(config, 1));
  std::string const forward = "f+0 f-0 f+1 f-1 f+2 f-2 f+3 f-3 ",
                    backward = "b+3 b-3 b+2 b-2 b+1 b-1 b+0 b-0 ";
  model.forward_backward(Execution(), p, e.input, e.target, 1);
  EXPECT_EQ(p.brackets, forward + backward);
  p.brackets.clear();
  model.loss(Execution(), p, e.input, e.target);
  EXPECT_EQ(p.brackets, forward);
}

TEST(Model, without_samples_brackets_the_same_units_and_writes_zero_gradients) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config), q = with_random_weights<double>(config);
  dit::Model<double> model(config, 1);
  auto const e = example<double>(config, host_input(config, 1));
  model.forward_backward(Execution(), p, e.input, e.target, 1);
  EXPECT_EQ(model.forward_backward(Execution(), q, {}, {}, 1), 0.0);
  EXPECT_EQ(q.brackets, p.brackets);
  for (auto const& gradient : gradients(q))
    for (double const g : gradient) ASSERT_EQ(g, 0.0);
}

TEST(Model, gradients_of_a_batch_are_the_sums_over_its_samples) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  dit::Model<double> model(config, 2);
  auto const host = host_input(config, 2);
  auto const both = example<double>(config, host);
  double const loss = model.forward_backward(Execution(), p, both.input, both.target, 0.5);
  auto const together = gradients(p);
  double sum = 0;
  std::vector<std::vector<double>> apart;
  for (std::size_t s = 0; s < 2; ++s) {
    auto const part = [&](std::vector<double> const& all) {
      auto const half = long(all.size() / 2);
      return std::vector<double>(all.begin() + long(s) * half, all.begin() + long(s + 1) * half);
    };
    HostInput single{part(host.latent), part(host.time), part(host.pooled), part(host.target), {}};
    for (auto const& text : host.text) single.text.push_back(part(text));
    auto const e = example<double>(config, single);
    sum += model.forward_backward(Execution(), p, e.input, e.target, 0.5);
    auto const mine = gradients(p);
    if (apart.empty()) apart.resize(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      apart[i].resize(mine[i].size());
      for (std::size_t j = 0; j < mine[i].size(); ++j) apart[i][j] += mine[i][j];
    }
  }
  EXPECT_NEAR(loss, sum, 1e-12 * sum);
  for (std::size_t i = 0; i < together.size(); ++i)
    for (std::size_t j = 0; j < together[i].size(); ++j)
      ASSERT_NEAR(together[i][j], apart[i][j], 1e-11) << p.list[i].name << " element " << j;
}

TEST(Model, in_float_agrees_with_double) {
  auto const config = tiny(128);
  auto p = with_random_weights<double>(config);
  auto q = with_random_weights<float>(config);
  dit::Model<double> wide(config, 2);
  dit::Model<float> narrow(config, 2);
  auto const host = host_input(config, 2);
  auto const e = example<double>(config, host);
  auto const f = example<float>(config, host);
  double const expected = wide.forward_backward(Execution(), p, e.input, e.target, 1);
  double const got = narrow.forward_backward(Execution(), q, f.input, f.target, 1);
  // t in float makes an angle of 1000 t wrong by 3e-5, so the condition vector is no better than that.
  EXPECT_NEAR(got, expected, 3e-4 * expected);
  auto const g = gradients(p);
  auto const h = gradients(q);
  for (std::size_t i = 0; i < g.size(); ++i) {
    double error = 0, norm = 0;
    for (std::size_t j = 0; j < g[i].size(); ++j) {
      error += std::pow(double(h[i][j]) - g[i][j], 2);
      norm += g[i][j] * g[i][j];
    }
    EXPECT_LE(std::sqrt(error), 1e-3 * std::sqrt(norm)) << p.list[i].name;
  }
}

TEST(Model, repeats_bit_for_bit) {
  auto const config = tiny(64);
  auto p = with_random_weights<float>(config);
  dit::Model<float> model(config, 2);
  auto const e = example<float>(config, host_input(config, 2));
  double const first = model.forward_backward(Execution(), p, e.input, e.target, 1);
  auto const g = gradients(p);
  EXPECT_EQ(model.forward_backward(Execution(), p, e.input, e.target, 1), first);
  EXPECT_EQ(gradients(p), g);
}

TEST(Model, at_initial_weights_predicts_zero_and_only_the_last_layer_has_a_gradient) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  for (std::size_t i = 0; i < p.list.size(); ++i)
    if (dit::initial_value(p.list[i]) == dit::Initial::zero) Kokkos::deep_copy(p.weights[i], 0.0);
  dit::Model<double> model(config, 1);
  auto const host = host_input(config, 1);
  auto const e = example<double>(config, host);
  double squares = 0;
  for (double const v : host.target) squares += v * v / double(host.target.size());
  EXPECT_NEAR(model.forward_backward(Execution(), p, e.input, e.target, 1), squares, 1e-13 * squares);
  auto const g = gradients(p);
  for (std::size_t i = 0; i < g.size(); ++i) {
    double largest = 0;
    for (double const v : g[i]) largest = std::max(largest, std::fabs(v));
    bool const last = p.list[i].name.rfind("final.linear", 0) == 0;
    EXPECT_EQ(largest > 0, last) << p.list[i].name;
    EXPECT_TRUE(std::isfinite(largest)) << p.list[i].name;
  }
}

TEST(Model, a_batch_that_does_not_fit_is_an_error_before_any_bracket) {
  auto const config = tiny(64);
  auto p = with_random_weights<double>(config);
  dit::Model<double> model(config, 1);
  auto const two = example<double>(config, host_input(config, 2));
  EXPECT_THROW(model.loss(Execution(), p, two.input, two.target), Error);
  auto one = example<double>(config, host_input(config, 1));
  EXPECT_THROW(model.loss(Execution(), p, one.input, two.target), Error);
  one.input.text.pop_back();
  EXPECT_THROW(model.loss(Execution(), p, one.input, one.target), Error);
  EXPECT_EQ(p.brackets, "");
}
