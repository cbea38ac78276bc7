/// The model's forward pass against plain loops written from the specification, one sample at a time.
#include "local_parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

using namespace prowl;
using namespace prowl::test;

namespace {

using Row = std::vector<double>;
using Table = std::vector<Row>;

struct Reference {
  dit::ModelConfig config;
  std::map<std::string, Row> weights;

  explicit Reference(dit::ModelConfig const& c) : config(c) {
    auto const list = dit::parameters(c);
    auto const values = random_weights(c);
    for (std::size_t i = 0; i < list.size(); ++i) weights[list[i].name] = values[i];
  }

  static double silu(double x) { return x / (1 + std::exp(-x)); }

  Row linear(std::string const& name, Row const& x, bool bias = false) const {
    auto const& w = weights.at(name + ".weight");
    Row y(w.size() / x.size());
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
      if (bias) y[o] += weights.at(name + ".bias")[o];
    }
    return y;
  }

  static Row rms(Row const& x, Row const& w) {
    double mean = 0;
    for (double const v : x) mean += v * v / double(x.size());
    Row y(x);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] / std::sqrt(mean + 1e-6) * w[i];
    return y;
  }

  static Row modulated(Row const& x, Row const& shift, Row const& scale) {
    double mean = 0, variance = 0;
    for (double const v : x) mean += v / double(x.size());
    for (double const v : x) variance += (v - mean) * (v - mean) / double(x.size());
    Row y(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = (x[i] - mean) / std::sqrt(variance + 1e-6) * (1 + scale[i]) + shift[i];
    return y;
  }

  static void rotate(Row& head, int row, int column) {
    for (int axis = 0; axis < 2; ++axis)
      for (int i = 0; i < 16; ++i) {
        double const angle = (axis == 0 ? row : column) * std::pow(10000.0, -i / 16.0);
        auto& a = head[std::size_t(32 * axis + 2 * i)];
        auto& b = head[std::size_t(32 * axis + 2 * i + 1)];
        double const turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
  }

  Row mlp(std::string const& name, Row const& x) const {
    auto const gate_up = linear(name + ".mlp.gate_up", x, true);
    std::size_t const half = gate_up.size() / 2;
    Row hidden(half);
    for (std::size_t i = 0; i < half; ++i) hidden[i] = silu(gate_up[i]) * gate_up[half + i];
    return linear(name + ".mlp.down", hidden, true);
  }

  Row condition(double t, Row const& pooled) const {
    int const half = config.hidden / 2;
    Row embedding(std::size_t(config.hidden));
    for (int i = 0; i < half; ++i) {
      double const angle = 1000 * t * std::pow(10000.0, -double(i) / half);
      embedding[std::size_t(i)] = std::cos(angle);
      embedding[std::size_t(half + i)] = std::sin(angle);
    }
    auto time = linear("time_in.first", embedding);
    for (auto& v : time) v = silu(v);
    time = linear("time_in.second", time);
    auto y = linear("pooled_in", pooled);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += time[i];
    return y;
  }

  /// Values of the pixels of patch (row, column), ordered (channel, row, column).
  template <class Use>
  void patch(int row, int column, Use const& use) const {
    int j = 0;
    for (int c = 0; c < config.channels; ++c)
      for (int r = 0; r < config.patch; ++r)
        for (int k = 0; k < config.patch; ++k, ++j)
          use(std::size_t(j),
              std::size_t((c * config.image_size + row * config.patch + r) * config.image_size +
                          column * config.patch + k));
  }

  struct Heads {
    Table q, k, v; // of each token, d values
  };

  Heads heads(std::string const& stream, Table const& x, Row const& u, bool image) const {
    Heads result;
    auto const shift = linear(stream + ".modulation.attn_shift", u);
    auto const scale = linear(stream + ".modulation.attn_scale", u);
    for (std::size_t token = 0; token < x.size(); ++token) {
      auto const a = modulated(x[token], shift, scale);
      auto const normed = [&](char const* which) {
        auto all = linear(stream + ".attn." + which, a);
        for (std::size_t h = 0; h < all.size(); h += 64) {
          auto head = rms(Row(all.begin() + long(h), all.begin() + long(h) + 64),
                          weights.at(stream + ".attn." + which + "_norm.weight"));
          if (image) rotate(head, int(token) / config.grid(), int(token) % config.grid());
          std::copy(head.begin(), head.end(), all.begin() + long(h));
        }
        return all;
      };
      result.q.push_back(normed("q"));
      result.k.push_back(normed("k"));
      result.v.push_back(linear(stream + ".attn.v", a));
    }
    return result;
  }

  static Table attend(Heads const& s) {
    Table out(s.q.size(), Row(s.q[0].size()));
    for (std::size_t h = 0; h < s.q[0].size(); h += 64)
      for (std::size_t i = 0; i < s.q.size(); ++i) {
        Row p(s.k.size());
        double sum = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          double dot = 0;
          for (std::size_t c = h; c < h + 64; ++c) dot += s.q[i][c] * s.k[j][c];
          sum += p[j] = std::exp(dot / 8);
        }
        for (std::size_t j = 0; j < p.size(); ++j)
          for (std::size_t c = h; c < h + 64; ++c) out[i][c] += p[j] / sum * s.v[j][c];
      }
    return out;
  }

  void add(Row& x, Row const& gate, Row const& branch) const {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += gate[i] * branch[i];
  }

  void update(std::string const& stream, Table& x, Row const& u, Row const* attended) const {
    auto const modulation = [&](char const* which) { return linear(stream + ".modulation." + which, u); };
    for (std::size_t i = 0; i < x.size(); ++i) {
      add(x[i], modulation("attn_gate"), linear(stream + ".attn.o", attended[i]));
      add(x[i], modulation("mlp_gate"),
          mlp(stream, modulated(x[i], modulation("mlp_shift"), modulation("mlp_scale"))));
    }
  }

  void block(int l, Table& txt, Table& img, Row const& y) const {
    auto const name = "blocks." + std::to_string(l);
    auto u = linear(name + ".cond", y, true);
    for (auto& v : u) v = silu(v);
    auto joint = heads(name + ".txt", txt, u, false);
    auto const image = heads(name + ".img", img, u, true);
    joint.q.insert(joint.q.end(), image.q.begin(), image.q.end());
    joint.k.insert(joint.k.end(), image.k.begin(), image.k.end());
    joint.v.insert(joint.v.end(), image.v.begin(), image.v.end());
    auto const attended = attend(joint);
    if (l + 1 < config.layers) update(name + ".txt", txt, u, attended.data());
    update(name + ".img", img, u, attended.data() + txt.size());
  }

  /// The velocity of sample s.
  Row velocity(HostInput const& in, int s) const {
    auto const part = [&](Row const& all, std::size_t size) {
      return Row(all.begin() + long(std::size_t(s) * size), all.begin() + long(std::size_t(s + 1) * size));
    };
    auto const x = part(in.latent, std::size_t(config.channels * config.pixels()));
    Table img, txt;
    for (int row = 0; row < config.grid(); ++row)
      for (int column = 0; column < config.grid(); ++column) {
        Row vector(std::size_t(config.patch_size()));
        patch(row, column, [&](std::size_t j, std::size_t at) { vector[j] = x[at]; });
        img.push_back(linear("img_in", vector, true));
      }
    for (std::size_t e = 0; e < config.encoders.size(); ++e) {
      auto const& encoder = config.encoders[e];
      auto const features = part(in.text[e], std::size_t(encoder.tokens * encoder.width));
      for (int token = 0; token < encoder.tokens; ++token) {
        auto const first = features.begin() + token * encoder.width;
        auto z = rms(Row(first, first + encoder.width), weights.at("text." + encoder.name + ".norm.weight"));
        for (auto& v : z) v *= weights.at("text." + encoder.name + ".scalar")[0];
        txt.push_back(linear("text." + encoder.name + ".linear", z));
      }
    }
    auto y = condition(in.time[std::size_t(s)], part(in.pooled, std::size_t(config.pooled_width)));
    for (int l = 0; l < config.layers; ++l) block(l, txt, img, y);
    for (auto& v : y) v = silu(v);
    Row result(x.size());
    for (int token = 0; token < config.image_tokens(); ++token) {
      auto const out = linear(
          "final.linear",
          modulated(img[std::size_t(token)], linear("final.shift", y), linear("final.scale", y)), true);
      patch(token / config.grid(), token % config.grid(),
            [&](std::size_t j, std::size_t at) { result[at] = out[j]; });
    }
    return result;
  }
};

} // namespace

TEST(Reference, forward_pass_is_the_specification_s) {
  for (int const hidden : {64, 128}) {
    auto const config = tiny(hidden);
    auto const host = host_input(config, 2);
    auto p = with_random_weights<double>(config);
    auto const e = example<double>(config, host);
    dit::Model<double> model(config, 2);
    Batch<double> velocity("velocity", 2, config.channels, config.pixels());
    model.predict(Execution(), p, e.input, velocity);
    auto const got = to_host(velocity);
    double const loss = model.loss(Execution(), p, e.input, e.target);

    Reference const reference(config);
    double expected_loss = 0;
    for (int s = 0; s < 2; ++s) {
      auto const expected = reference.velocity(host, s);
      double const n = double(expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        std::size_t const at = std::size_t(s) * expected.size() + i;
        // A few hundred roundings of 1e-16 in each of some 20 layers, on values of order one.
        ASSERT_NEAR(got[at], expected[i], 1e-11)
            << "hidden " << hidden << " sample " << s << " element " << i;
        expected_loss += (expected[i] - host.target[at]) * (expected[i] - host.target[at]) / n;
      }
    }
    EXPECT_NEAR(loss, expected_loss, 1e-10);
  }
}
