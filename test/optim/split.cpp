// Matrices that are split over a tensor group of all ranks, against dense float64 steps.
#include "reference.hpp"

#include <prowl/core/error.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/ownership.hpp>

#include <gtest/gtest.h>

using namespace prowl;

namespace {

/// Not before Kokkos is initialised.
Execution exec() { return Execution(); }

struct Whole {
  std::string name;
  std::int64_t rows, columns;
  int dimension; // of the split; -1: none
};

// Cut along the long and the short side, wide, tall and square, in parts that are not equal.
std::vector<Whole> const wholes = {
    {"blocks.0.wide_long", 6, 17, 1},    {"blocks.0.wide_short", 7, 30, 0},
    {"blocks.0.tall_long", 50, 13, 0},   {"blocks.0.tall_short", 33, 7, 1},
    {"blocks.0.square_rows", 16, 16, 0}, {"blocks.0.square_columns", 13, 13, 1},
    {"blocks.0.plain", 12, 20, -1}};

std::vector<Parameter> parameters(Communicator const& tensor) {
  std::vector<Parameter> list;
  for (auto const& w : wholes) {
    Parameter p{w.name, {w.rows, w.columns}, "blocks.0"};
    if (w.dimension >= 0) {
      auto& extent = p.shape[std::size_t(w.dimension)];
      p.split = TensorSplit{w.dimension, extent};
      extent = shard_rows(extent, tensor.size(), tensor.rank()).size();
    }
    list.push_back(p);
  }
  return list;
}

double value(std::size_t parameter, std::int64_t element, std::int64_t step) {
  return std::sin(double(element) * 0.7 + double(parameter) * 1.3 + double(step) * 2.1 +
                  0.01 * double(element * element % 97));
}

/// Element (i, j) of the local part is (i + row, j + column) of the whole.
std::pair<std::int64_t, std::int64_t> origin(Whole const& w, Communicator const& tensor) {
  auto const at = [&](int dimension, std::int64_t extent) {
    return w.dimension == dimension ? shard_rows(extent, tensor.size(), tensor.rank()).begin : 0;
  };
  return {at(0, w.rows), at(1, w.columns)};
}

void fill(Matrix<float> const& part, std::size_t p, Communicator const& tensor, std::int64_t step,
          double scale) {
  auto const [row, column] = origin(wholes[p], tensor);
  auto const host = Kokkos::create_mirror_view(part);
  for (std::size_t i = 0; i < host.extent(0); ++i)
    for (std::size_t j = 0; j < host.extent(1); ++j)
      host(i, j) = float(
          scale * value(p, (row + std::int64_t(i)) * wholes[p].columns + column + std::int64_t(j), step));
  Kokkos::deep_copy(part, host);
}

reference::Dense dense(std::size_t p, std::int64_t step, double scale) {
  auto d = reference::zeros(wholes[p].rows, wholes[p].columns);
  for (std::size_t e = 0; e < d.a.size(); ++e)
    d.a[e] = double(float(scale * value(p, std::int64_t(e), step)));
  return d;
}

OptimizerOptions options(Direction direction, std::int64_t period) {
  OptimizerOptions o;
  o.muon.direction = direction;
  o.muon.period = period;
  return o;
}

} // namespace

// Tolerance as in optimizer.cpp: 1.1e-3 on an entry of NS5's direction, times rate 0.02 and s(W) < 3, a step. The Gram form
// applies one polynomial in place of five, with the same bound of 500 on what it magnifies.
TEST(Split, steps_equal_the_dense_float64_reference) {
  Communicator const world(MPI_COMM_WORLD);
  for (auto const& o :
       {options(Direction::periodic, 1), options(Direction::periodic, 3), options(Direction::row_norm, 1)})
    for (int tensors : {1, 2, 3, 4})
      for (int replicas : {1, 2}) {
        if (world.size() % (tensors * replicas) != 0) continue;
        SCOPED_TRACE(testing::Message() << tensors << " tensor ranks, " << replicas << " replicas");
        Mesh const mesh(world, replicas, tensors);
        auto const& tensor = mesh.tensor();
        Store store(exec(), mesh, dedicated_layout(parameters(tensor), o, mesh.place()));
        Optimizer optimizer(exec(), store, o);
        std::vector<reference::Parameter> expected;
        for (std::size_t p = 0; p < wholes.size(); ++p) {
          fill(store.kept_weights(p), p, tensor, 77, 0.1);
          expected.emplace_back(dense(p, 77, 0.1));
        }
        store.weights_changed();
        int const steps = 4;
        for (int t = 0; t < steps; ++t) {
          double squares = 0;
          store.begin_backward(0);
          for (std::size_t p = 0; p < wholes.size(); ++p) { // this rank's share of the sum
            fill(store.gradient(p), p, tensor, t, double(tensors) / world.size());
            auto const g = dense(p, t, 1);
            for (double x : g.a) squares += x * x;
            expected[p].muon(g, optimizer.routes()[p].muon, t, 1);
          }
          store.end_backward(0);
          auto const report = optimizer.step(1);
          EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-5 * std::sqrt(squares));
        }
        store.begin_forward(0);
        for (std::size_t p = 0; p < wholes.size(); ++p) {
          auto const [row, column] = origin(wholes[p], tensor);
          auto const host = Kokkos::create_mirror_view_and_copy(HostMemory(), store.weight(p));
          for (std::size_t i = 0; i < host.extent(0); ++i)
            for (std::size_t j = 0; j < host.extent(1); ++j)
              ASSERT_NEAR(host(i, j), expected[p].w(row + std::int64_t(i), column + std::int64_t(j)),
                          1.1e-3 * 0.02 * 3 * steps + 1e-6)
                  << wholes[p].name;
        }
        store.end_forward(0);
      }
}

// NS5 and RowNorm ignore scale: gradients whose squares are no floats move the weights as small ones do, from
// a state that was read again too.
TEST(Split, gradients_of_any_size_equal_the_reference) {
  Communicator const world(MPI_COMM_WORLD);
  Mesh const mesh(world, 1, world.size());
  auto const& tensor = mesh.tensor();
  for (auto const& o : {options(Direction::periodic, 1), options(Direction::row_norm, 1)}) {
    Store store(exec(), mesh, dedicated_layout(parameters(tensor), o, mesh.place()));
    Optimizer first(exec(), store, o), again(exec(), store, o);
    std::vector<reference::Parameter> expected;
    for (std::size_t p = 0; p < wholes.size(); ++p) expected.emplace_back(dense(p, 77, 0));
    double const sizes[] = {0x1p127, 1};
    for (int t = 0; t < 2; ++t) {
      for (std::size_t p = 0; p < wholes.size(); ++p) {
        fill(store.updated_gradient(p), p, tensor, t, store.layout().owns(p) ? sizes[t] : 0);
        expected[p].muon(dense(p, t, sizes[t]), first.routes()[p].muon, t, 1);
      }
      store.gradients_changed();
      (t == 0 ? first : again).step(1);
      auto const from = first.state(), to = again.state();
      for (std::size_t a = 0; a < from.size() && t == 0; ++a) Kokkos::deep_copy(to[a].rows, from[a].rows);
      if (t == 0) again.restore_counters(1, 0);
    }
    EXPECT_EQ(again.nonfinite(), std::nullopt);
    for (std::size_t p = 0; p < wholes.size(); ++p) {
      if (!store.layout().owns(p)) continue;
      auto const [row, column] = origin(wholes[p], tensor);
      auto const host = Kokkos::create_mirror_view_and_copy(HostMemory(), store.updated_weights(p));
      for (std::size_t i = 0; i < host.extent(0); ++i)
        for (std::size_t j = 0; j < host.extent(1); ++j)
          ASSERT_NEAR(host(i, j), expected[p].w(row + std::int64_t(i), column + std::int64_t(j)),
                      1.1e-3 * 0.02 * 3 * 2 + 1e-6)
              << wholes[p].name;
    }
  }
}

TEST(Split, a_refresh_sums_a_gram_matrix_and_gathers_only_what_is_cut_along_its_short_side) {
  Ledger ledger;
  Communicator const world(MPI_COMM_WORLD, &ledger);
  if (world.size() == 1) GTEST_SKIP() << "one rank has it all";
  Mesh const mesh(world, 1, world.size());
  auto const o = options(Direction::periodic, 1);
  Store store(exec(), mesh, dedicated_layout(parameters(mesh.tensor()), o, mesh.place()));
  Optimizer optimizer(exec(), store, o);
  for (std::size_t p = 0; p < wholes.size(); ++p) fill(store.updated_gradient(p), p, mesh.tensor(), 0, 1);
  store.gradients_changed();
  ledger.clear();
  optimizer.step(1);
  double const n = world.size();
  auto const sums = ledger.totals(Collective::all_reduce, Purpose::optimizer);
  auto const gathers = ledger.totals(Collective::all_gather, Purpose::optimizer);
  EXPECT_EQ(sums.calls, 4);
  EXPECT_DOUBLE_EQ(sums.bytes, 2 * (n - 1) * 4 * (6 * 6 + 13 * 13 + 16 * 16 + 13 * 13) / n);
  EXPECT_EQ(gathers.calls, 2);
  auto const padded = [&](std::int64_t cut, std::int64_t other) {
    return double(padded_rows(cut, world.size()) * world.size() * other);
  };
  EXPECT_DOUBLE_EQ(gathers.bytes, (n - 1) * 4 * (padded(7, 30) + padded(7, 33)) / n);
  EXPECT_EQ(ledger, optimizer_traffic(store.layout(), o, 0));
  auto periodic = options(Direction::periodic, 2);
  Optimizer other(exec(), store, periodic);
  for (int t = 0; t < 2; ++t) {
    ledger.clear();
    store.gradients_changed();
    other.step(1);
    EXPECT_EQ(ledger, optimizer_traffic(store.layout(), periodic, t)) << "step " << t;
  }
}

TEST(Split, impossible_splits_are_refused_by_name) {
  Communicator const world(MPI_COMM_WORLD);
  Mesh const mesh(world, 1, world.size());
  auto const message = [&](std::vector<Parameter> list, bool owned) -> std::string {
    try {
      auto const layout = owned ? dedicated_layout(list, {}, mesh.place()) : Layout(list, mesh.place());
      Store store(exec(), mesh, layout);
      Optimizer const optimizer(exec(), store, {});
    } catch (Error const& e) {
      return e.what();
    }
    return "";
  };
  auto const split = [&](std::int64_t rows, std::int64_t here) {
    return std::vector<Parameter>{{"blocks.0.w", {here, 4}, "blocks.0", TensorSplit{0, rows}}};
  };
  auto const mine = shard_rows(12, world.size(), world.rank()).size();
  EXPECT_EQ(message(split(12, mine), true), "");
  EXPECT_NE(message(split(12, mine), false).find("blocks.0.w"), std::string::npos); // sharded
  EXPECT_NE(message(split(12, mine + 1), true).find("blocks.0.w"), std::string::npos);
  if (world.size() > 1) {
    EXPECT_NE(message(split(world.size() - 1, 1), true).find("tensor group"), std::string::npos);
    EXPECT_THROW(Mesh(world, 1, world.size() + 1), Error);
  }
}
