/// A model of many shapes whose optimizer steps are compared with float64 references.
#pragma once

#include "reference.hpp"

#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/ownership.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace prowl::test {
/// Not before Kokkos is initialised.
inline Execution exec() { return Execution(); }

// The shapes of the acceptance list, a second unit, and vectors for AdamW. With 2 to 4 ranks some shards are
// empty.
inline std::vector<Parameter> parameters() {
  return {{"in.w", {6, 5}, "in"},
          {"blocks.0.a", {1, 7}, "blocks.0"},
          {"blocks.0.b", {7, 1}, "blocks.0"},
          {"blocks.0.c", {5, 3}, "blocks.0"},
          {"blocks.0.d", {3, 5}, "blocks.0"},
          {"blocks.0.bias", {13}, "blocks.0"},
          {"blocks.1.a", {64, 64}, "blocks.1"},
          {"blocks.1.b", {96, 32}, "blocks.1"},
          {"blocks.1.c", {32, 96}, "blocks.1"},
          {"blocks.1.d", {130, 50}, "blocks.1"},
          {"blocks.1.zero", {9, 4}, "blocks.1"},
          {"out.scale", {1}, "out"}};
}

inline bool is_zero(Parameter const& p) { return p.name == "blocks.1.zero"; }

/// Smooth, full-rank-ish values that depend on nothing but the arguments. Multiples of 2^-8, exact in
/// bfloat16's sums.
inline double gradient_value(std::size_t parameter, std::int64_t element, std::int64_t step) {
  auto const h = std::uint64_t(element) * 2654435761u + parameter * 97 + std::uint64_t(step) * 1000003u;
  return double(std::int64_t((h ^ (h >> 13)) % 257) - 128) / 256;
}
inline double weight_value(std::size_t parameter, std::int64_t element) {
  return gradient_value(parameter, element, 77) / 4;
}

using Value = double (*)(std::size_t, std::int64_t, std::int64_t);

template <class F>
void fill(Store const& store, std::size_t i, std::int64_t first_row, Matrix<float> const& rows,
          F const& value) {
  auto const host = Kokkos::create_mirror_view(rows);
  auto const first = first_row * store.layout().parameters()[i].columns();
  for (std::size_t e = 0; e < host.size(); ++e) host.data()[e] = float(value(i, first + std::int64_t(e)));
  Kokkos::deep_copy(rows, host);
}

template <class F>
void fill_gradients(Store& store, F const& value) {
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i)
    fill(store, i, store.layout().rows(i).begin, store.updated_gradient(i), value);
  store.gradients_changed();
}

inline double gradient_of(std::vector<Parameter> const& ps, std::size_t i, std::int64_t e, std::int64_t t) {
  return is_zero(ps[i]) ? 0 : gradient_value(i, e, t);
}

reference::Dense dense(Parameter const& p, auto const& value) {
  auto d = reference::zeros(p.rows(), p.columns());
  for (std::size_t e = 0; e < d.a.size(); ++e) d.a[e] = value(std::int64_t(e));
  return d;
}

struct TrainingRun {
  Ledger ledger;
  Communicator world{MPI_COMM_WORLD, &ledger};
  Mesh mesh;
  Store store;
  Optimizer optimizer;

  /// Sharded; or, with `replicas`, dedicated over so many.
  explicit TrainingRun(OptimizerOptions const& options, int replicas = 0, bool asynchronous = true)
      : mesh(world, std::max(1, replicas)),
        store(exec(), mesh,
              replicas > 0 ? dedicated_layout(parameters(), options, mesh.place(), {.pack_below = 20})
                           : Layout(parameters(), mesh.place()),
              {.asynchronous = asynchronous}),
        optimizer(exec(), store, options) {
    for (std::size_t i = 0; i < store.layout().parameters().size(); ++i)
      fill(store, i, store.layout().weight_rows(i).begin, store.kept_weights(i), weight_value);
    store.weights_changed();
  }
  Optimizer::Report step(double factor = 1) {
    auto const t = optimizer.steps();
    auto const ps = parameters();
    fill_gradients(store, [&](std::size_t i, std::int64_t e) { return gradient_of(ps, i, e, t); });
    return optimizer.step(factor);
  }
  std::vector<float> local_weights() {
    store.finish_publication();
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.weights());
    return {host.data(), host.data() + host.size()};
  }
};

/// Largest |w - reference| over the rows held here; compared on every rank.
///
/// Tolerance: NS5 magnifies an error of its input by at most a^5 = 3.4445^5 < 500, the slope at singular
/// value zero. Its input and each product carry relative errors of a few float32 eps = 6e-8 times the square
/// root of the inner dimension (at most 130, so 12): 500 * 6e-8 * 12 * 3 products < 1.1e-3 on an entry of the
/// direction. A step moves a weight by rate * s(W) times that; rates here are 0.02 and s(W) <= 3 with
/// `original`, and errors of `steps` steps add up.
inline void expect_near_reference(TrainingRun& run, std::vector<reference::Parameter> const& expected,
                                  double rate_and_scale, int steps) {
  double const tolerance = 1.1e-3 * rate_and_scale * steps + 1e-6;
  auto const& layout = run.store.layout();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), run.store.updated_weights(i));
    auto const first = layout.rows(i).begin * layout.parameters()[i].columns();
    for (std::size_t e = 0; e < host.size(); ++e)
      ASSERT_NEAR(host.data()[e], expected[i].w.a[std::size_t(first) + e], tolerance)
          << layout.parameters()[i].name << " element " << first + std::int64_t(e);
  }
}

/// `size`: of a column's gradients; powers of two.
inline void compare(
    OptimizerOptions const& options, int steps = 7, int replicas = 0,
    std::function<double(std::int64_t)> const& size = [](std::int64_t) { return 1.0; }) {
  TrainingRun run(options, replicas);
  auto const ps = parameters();
  std::vector<reference::Parameter> expected;
  for (std::size_t i = 0; i < ps.size(); ++i)
    expected.emplace_back(dense(ps[i], [&](std::int64_t e) { return double(float(weight_value(i, e))); }));
  for (int t = 0; t < steps; ++t) {
    double const factor = 1.0 / (1 + t);
    auto const gradient = [&](std::size_t i, std::int64_t e) {
      return gradient_of(ps, i, e, t) * size(e % ps[i].columns());
    };
    fill_gradients(run.store, gradient);
    auto const report = run.optimizer.step(factor);
    double squares = 0;
    for (std::size_t i = 0; i < ps.size(); ++i) {
      auto g = dense(ps[i], [&](std::int64_t e) { return gradient(i, e); });
      for (double x : g.a) squares += x * x;
      auto const& r = run.optimizer.routes()[i];
      if (r.rule != Rule::muon) // as adamw.hpp says
        for (double& x : g.a) x = std::clamp(x, -0x1p63, 0x1p63);
      if (r.rule == Rule::muon)
        expected[i].muon(g, r.muon, t, factor);
      else
        expected[i].adamw(g, r.adamw, t, factor);
    }
    ASSERT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  }
  double const scale = options.muon.adjust_rate == AdjustRate::match_rms_adamw ? 0.2 * std::sqrt(130) : 3;
  expect_near_reference(run, expected, options.muon.rate * scale, steps);
}

inline OptimizerOptions with(System system, Direction direction, std::int64_t period) {
  OptimizerOptions options;
  options.system = system;
  options.muon.direction = direction;
  options.muon.period = period;
  options.bucket_bytes = 16 << 10; // several buckets
  return options;
}

inline std::vector<System> const systems = {System::naive, System::sharded_row_norm, System::buckets,
                                            System::overlap};

} // namespace prowl::test
