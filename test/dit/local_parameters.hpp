/// Models, weights and inputs for the tests of the MMDiT.
#pragma once

#include "../arrays.hpp"

#include <dit/model.hpp>

#include <limits>
#include <string>
#include <vector>

namespace prowl::test {

/// All weights and gradients in memory at once; records the brackets and poisons the gradients that are not written.
template <class T>
class LocalParameters : public Parameters<T> {
public:
  explicit LocalParameters(dit::ModelConfig const& config) : list(dit::parameters(config)) {
    for (auto const& parameter : list) {
      weights.emplace_back(parameter.name, parameter.rows(), parameter.columns());
      gradients.emplace_back(parameter.name, parameter.rows(), parameter.columns());
    }
  }

  void begin_forward(std::size_t unit) override { note("f+", unit); }
  void end_forward(std::size_t unit) override { note("f-", unit); }
  void begin_backward(std::size_t unit) override {
    note("b+", unit);
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].unit == unit_name(unit))
        Kokkos::deep_copy(gradients[i], std::numeric_limits<T>::quiet_NaN());
  }
  void end_backward(std::size_t unit) override { note("b-", unit); }
  Matrix<T const> weight(std::size_t parameter) const override { return weights[parameter]; }
  Matrix<T> gradient(std::size_t parameter) const override { return gradients[parameter]; }

  std::string unit_name(std::size_t unit) const {
    std::vector<std::string> names;
    for (auto const& parameter : list)
      if (names.empty() || names.back() != parameter.unit) names.push_back(parameter.unit);
    return names.at(unit);
  }

  std::vector<Parameter> list;
  std::vector<Matrix<T>> weights, gradients;
  std::string brackets;

private:
  void note(char const* what, std::size_t unit) { brackets += what + std::to_string(unit) + ' '; }
};

/// Values for every weight, none of them zero, large enough that every branch of the model matters.
inline std::vector<std::vector<double>> random_weights(dit::ModelConfig const& config) {
  std::vector<std::vector<double>> all;
  auto const list = dit::parameters(config);
  for (std::size_t i = 0; i < list.size(); ++i) {
    bool const vector = !list[i].is_matrix();
    double const scale = vector ? 0.2 : 1.0 / std::sqrt(double(list[i].columns()));
    all.push_back(normal_values<double>(std::size_t(list[i].size()), 100 + i, scale));
    if (dit::initial_value(list[i]) == dit::Initial::one)
      for (auto& w : all.back()) w += 1;
  }
  return all;
}

template <class T>
Vector<T> converted(std::vector<double> const& values) {
  return to_device(std::vector<T>(values.begin(), values.end()));
}

template <class T>
LocalParameters<T> with_random_weights(dit::ModelConfig const& config) {
  LocalParameters<T> p(config);
  auto const values = random_weights(config);
  for (std::size_t i = 0; i < values.size(); ++i)
    Kokkos::deep_copy(as_vector(p.weights[i]), converted<T>(values[i]));
  return p;
}

/// Two encoders, rectangular everywhere it can be: 3 channels, 2 x 2 patches of a 6 x 6 latent, 5 text tokens.
inline dit::ModelConfig tiny(int hidden, int layers = 2) {
  dit::ModelConfig config;
  config.hidden = hidden;
  config.layers = layers;
  config.patch = 2;
  config.channels = 3;
  config.image_size = 6;
  config.encoders = {{"a", 10, 2}, {"b", 7, 3}};
  config.pooled_width = 9;
  return config;
}

/// Host values of an Input and a target.
struct HostInput {
  std::vector<double> latent, time, pooled, target;
  std::vector<std::vector<double>> text;
};

inline HostInput host_input(dit::ModelConfig const& c, int samples) {
  HostInput in;
  auto const pixels = std::size_t(samples * c.channels * c.pixels());
  in.latent = normal_values<double>(pixels, 1);
  in.target = normal_values<double>(pixels, 2);
  in.pooled = normal_values<double>(std::size_t(samples * c.pooled_width), 3);
  for (int s = 0; s < samples; ++s) in.time.push_back(0.3 + 0.25 * s);
  for (auto const& encoder : c.encoders)
    in.text.push_back(normal_values<double>(std::size_t(samples * encoder.tokens * encoder.width),
                                            4 + in.text.size(), 3.0));
  return in;
}

template <class T>
Batch<T> batch(std::vector<double> const& values, std::int64_t n, std::int64_t rows, std::int64_t columns) {
  Batch<T> b("batch", n, rows, columns);
  Kokkos::deep_copy(Vector<T>(b.data(), b.size()), converted<T>(values));
  return b;
}

template <class T>
std::vector<T> to_host(Batch<T> const& b) {
  return to_host(Vector<T>(b.data(), b.size()));
}

template <class T>
struct Example {
  dit::Input<T> input;
  Batch<T> target;
};

template <class T>
Example<T> example(dit::ModelConfig const& c, HostInput const& host) {
  int const samples = int(host.time.size());
  Example<T> e;
  e.input.latent = batch<T>(host.latent, samples, c.channels, c.pixels());
  e.target = batch<T>(host.target, samples, c.channels, c.pixels());
  e.input.time = converted<T>(host.time);
  for (std::size_t i = 0; i < c.encoders.size(); ++i)
    e.input.text.push_back(batch<T>(host.text[i], samples, c.encoders[i].tokens, c.encoders[i].width));
  e.input.pooled = Matrix<T>("pooled", samples, c.pooled_width);
  Kokkos::deep_copy(as_vector(e.input.pooled), converted<T>(host.pooled));
  return e;
}

} // namespace prowl::test
