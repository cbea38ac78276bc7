// Whole optimizer steps on dense matrices in float64, by plain loops: the reference of the sharded ones.
#pragma once

#include <prowl/optim/options.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace reference {

struct Dense {
  std::int64_t m, n;
  std::vector<double> a;
  double& operator()(std::int64_t i, std::int64_t j) { return a[std::size_t(i * n + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const { return a[std::size_t(i * n + j)]; }
};

inline Dense zeros(std::int64_t m, std::int64_t n) {
  return {m, n, std::vector<double>(std::size_t(m * n), 0.0)};
}

inline Dense transposed(Dense const& x) {
  auto t = zeros(x.n, x.m);
  for (std::int64_t i = 0; i < x.m; ++i)
    for (std::int64_t j = 0; j < x.n; ++j) t(j, i) = x(i, j);
  return t;
}

inline Dense product(Dense const& x, Dense const& y) {
  auto z = zeros(x.m, y.n);
  for (std::int64_t i = 0; i < x.m; ++i)
    for (std::int64_t k = 0; k < x.n; ++k)
      for (std::int64_t j = 0; j < y.n; ++j) z(i, j) += x(i, k) * y(k, j);
  return z;
}

/// Section 2 of the specification, on the oriented matrix.
inline Dense newton_schulz(Dense x) {
  double norm = 0;
  for (double v : x.a) norm += v * v;
  norm = std::max(std::sqrt(norm), 1e-7);
  for (double& v : x.a) v /= norm;
  for (int k = 0; k < 5; ++k) {
    auto const a = product(x, transposed(x)), aa = product(a, a);
    auto b = a;
    for (std::size_t i = 0; i < b.a.size(); ++i) b.a[i] = -4.7750 * a.a[i] + 2.0315 * aa.a[i];
    auto const bx = product(b, x);
    for (std::size_t i = 0; i < x.a.size(); ++i) x.a[i] = 3.4445 * x.a[i] + bx.a[i];
  }
  return x;
}

inline Dense row_norm(Dense x) {
  for (std::int64_t i = 0; i < x.m; ++i) {
    double norm = 0;
    for (std::int64_t j = 0; j < x.n; ++j) norm += x(i, j) * x(i, j);
    norm = std::max(std::sqrt(norm), 1e-8);
    for (std::int64_t j = 0; j < x.n; ++j) x(i, j) /= norm;
  }
  return x;
}

/// The state of one parameter, and its step.
struct Parameter {
  Dense w, m, v; // v: AdamW's second moment

  explicit Parameter(Dense weights) : w(std::move(weights)), m(zeros(w.m, w.n)), v(zeros(w.m, w.n)) {}

  void muon(Dense const& g, prowl::MuonOptions const& o, std::int64_t t, double factor) {
    auto u = g;
    for (std::size_t i = 0; i < g.a.size(); ++i) {
      m.a[i] = o.momentum * m.a[i] + (1 - o.momentum) * g.a[i];
      u.a[i] = o.nesterov ? (1 - o.momentum) * g.a[i] + o.momentum * m.a[i] : m.a[i];
    }
    bool const wide = w.m <= w.n;
    auto const x = wide ? u : transposed(u);
    bool const refresh = o.direction != prowl::Direction::row_norm && t % o.period == 0;
    auto d = refresh ? newton_schulz(x) : row_norm(x);
    // Table 3a: gamma scales every RowNorm, and NS5 in the scalar-controlled branch alone.
    if (!refresh || o.direction == prowl::Direction::scalar_controlled)
      for (double& e : d.a) e *= o.gamma;
    if (!wide) d = transposed(d);
    double s = 1;
    if (o.adjust_rate == prowl::AdjustRate::original) s = std::sqrt(std::max(1.0, double(w.m) / double(w.n)));
    if (o.adjust_rate == prowl::AdjustRate::match_rms_adamw) s = 0.2 * std::sqrt(double(std::max(w.m, w.n)));
    double const eta = o.rate * factor;
    for (std::size_t i = 0; i < d.a.size(); ++i) w.a[i] = (1 - eta * o.decay) * w.a[i] - eta * s * d.a[i];
  }

  void adamw(Dense const& g, prowl::AdamW const& o, std::int64_t t, double factor) {
    double const eta = o.rate * factor;
    for (std::size_t i = 0; i < g.a.size(); ++i) {
      m.a[i] = o.beta1 * m.a[i] + (1 - o.beta1) * g.a[i];
      v.a[i] = o.beta2 * v.a[i] + (1 - o.beta2) * g.a[i] * g.a[i];
      double const mean = m.a[i] / (1 - std::pow(o.beta1, double(t + 1)));
      double const square = v.a[i] / (1 - std::pow(o.beta2, double(t + 1)));
      w.a[i] = (1 - eta * o.decay) * w.a[i] - eta * mean / (std::sqrt(square) + o.epsilon);
    }
  }
};

} // namespace reference
