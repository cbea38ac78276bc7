#include <prowl/core/error.hpp>
#include <prowl/store/store.hpp>

#include <gtest/gtest.h>

using namespace prowl;

namespace {

Execution const exec;

// Non-divisible rows, single rows and columns, vectors, a unit of one parameter.
std::vector<Parameter> parameters() {
  return {{"in.w", {5, 3}, "in"},
          {"in.b", {5}, "in"},
          {"blocks.0.a", {1, 7}, "blocks.0"},
          {"blocks.0.b", {7, 1}, "blocks.0"},
          {"blocks.0.c", {6, 4}, "blocks.0"},
          {"blocks.1.a", {3, 5}, "blocks.1"},
          {"out.w", {2, 2}, "out"}};
}

float weight_value(std::size_t parameter, std::int64_t element) {
  return 1000.0f * float(parameter + 1) + float(element);
}

void set_weights(Store const& store) {
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i) {
    auto const shard = store.shard(store.weights(), i);
    auto const host = Kokkos::create_mirror_view(shard);
    auto const first = store.layout().rows(i).begin * store.layout().parameters()[i].columns();
    for (std::size_t e = 0; e < host.size(); ++e) host.data()[e] = weight_value(i, first + std::int64_t(e));
    Kokkos::deep_copy(shard, host);
  }
}

void expect_whole(Store const& store, std::size_t unit) {
  auto const& u = store.layout().units()[unit];
  for (auto i = u.first; i < u.last; ++i) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.weight(i));
    ASSERT_EQ(host.extent(0), std::size_t(store.layout().parameters()[i].rows()));
    ASSERT_EQ(host.extent(1), std::size_t(store.layout().parameters()[i].columns()));
    for (std::size_t e = 0; e < host.size(); ++e)
      ASSERT_EQ(host.data()[e], weight_value(i, std::int64_t(e))) << store.layout().parameters()[i].name;
  }
}

/// Gradient of element e on world rank r in micro-batch k.
float gradient_value(std::size_t parameter, std::int64_t e, int rank, int k) {
  return float(parameter + 1) + float(e) * 2 + float(rank) * 100 + float(k) * 1000;
}

void backward(Store& store, int rank, int k) {
  for (std::size_t unit = store.layout().units().size(); unit-- > 0;) {
    store.begin_backward(unit);
    expect_whole(store, unit);
    auto const& u = store.layout().units()[unit];
    for (auto i = u.first; i < u.last; ++i) {
      auto const g = store.gradient(i);
      auto const host = Kokkos::create_mirror_view(g);
      for (std::size_t e = 0; e < host.size(); ++e)
        host.data()[e] = gradient_value(i, std::int64_t(e), rank, k);
      Kokkos::deep_copy(g, host);
    }
    store.end_backward(unit);
  }
}

void expect_gradients(Store const& store, int ranks, int micro_batches) {
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i) {
    auto const host =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.shard(store.gradients(), i));
    auto const first = store.layout().rows(i).begin * store.layout().parameters()[i].columns();
    for (std::size_t e = 0; e < host.size(); ++e) {
      float expected = 0;
      for (int k = 0; k < micro_batches; ++k)
        for (int r = 0; r < ranks; ++r) expected += gradient_value(i, first + std::int64_t(e), r, k);
      ASSERT_EQ(host.data()[e], expected) << store.layout().parameters()[i].name; // small integers: exact
    }
  }
}

class StoreTest : public testing::TestWithParam<int> {
protected:
  Ledger ledger;
  Communicator const world{MPI_COMM_WORLD, &ledger};
};

} // namespace

TEST_P(StoreTest, forward_and_backward_see_whole_weights_and_leave_summed_gradients) {
  for (int replicate : {1, 2}) {
    if (world.size() % replicate != 0) continue;
    Mesh const mesh(world, replicate);
    Store store(exec, mesh, parameters(), GetParam());
    set_weights(store);
    store.weights_changed();
    for (int micro_batches : {1, 3}) {
      store.clear_gradients();
      for (int k = 0; k < micro_batches; ++k) {
        for (std::size_t unit = 0; unit < store.layout().units().size(); ++unit) {
          store.begin_forward(unit);
          expect_whole(store, unit);
          store.end_forward(unit);
        }
        backward(store, world.rank(), k);
      }
      store.finish_gradients();
      expect_gradients(store, world.size(), micro_batches);
    }
    store.weights_changed();
  }
}

TEST_P(StoreTest, gathered_bytes_are_those_of_the_units_in_flight) {
  Mesh const mesh(world);
  std::vector<Parameter> many;
  for (int l = 0; l < 50; ++l)
    many.push_back({"blocks." + std::to_string(l) + ".w", {40, 40}, "blocks." + std::to_string(l)});
  Store const store(exec, mesh, many, GetParam());
  EXPECT_EQ(store.bytes(), Store::bytes(store.layout(), GetParam()));
  std::int64_t const matrix = 40 * 40 * 4, padded = padded_rows(40, world.size()) * world.size() * 40 * 4;
  std::int64_t const shards = 2 * 50 * padded / world.size();
  // One unit's gradients in the making, one unit's being summed.
  std::int64_t const slots =
      world.size() == 1 ? matrix
                        : (GetParam() + 1) * (padded + matrix) + matrix + padded + padded / world.size();
  EXPECT_EQ(store.bytes(), shards + slots);
}

TEST_P(StoreTest, the_ledger_counts_a_gather_a_unit_and_pass_and_a_reduction_a_unit) {
  if (world.size() == 1) GTEST_SKIP() << "one rank gathers nothing";
  Mesh const mesh(world);
  Store store(exec, mesh, parameters(), GetParam());
  set_weights(store);
  store.weights_changed();
  ledger.clear();
  for (std::size_t unit = 0; unit < 4; ++unit) {
    store.begin_forward(unit);
    store.end_forward(unit);
  }
  store.clear_gradients();
  backward(store, world.rank(), 0);
  store.finish_gradients();
  store.weights_changed();
  EXPECT_EQ(ledger.totals(Collective::all_gather, Purpose::forward).calls, 4);
  // The last units of the forward are still whole when the backward begins.
  EXPECT_EQ(ledger.totals(Collective::all_gather, Purpose::backward).calls, 4 - (GetParam() + 1));
  EXPECT_EQ(ledger.totals(Collective::reduce_scatter, Purpose::backward).calls, 4);
  std::int64_t elements = 0;
  for (auto const& p : parameters())
    elements += padded_rows(p.rows(), world.size()) * world.size() * p.columns();
  EXPECT_DOUBLE_EQ(ledger.totals(Collective::reduce_scatter, Purpose::backward).bytes,
                   double(world.size() - 1) / world.size() * 4 * double(elements));
}

INSTANTIATE_TEST_SUITE_P(prefetch, StoreTest, testing::Values(0, 1, 2));

TEST(Store, use_out_of_turn_is_an_error_that_names_the_parameter) {
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  Store store(exec, mesh, parameters());
  EXPECT_THROW((void)store.gradient(0), Error);
  store.begin_backward(1);
  try {
    (void)store.gradient(0);
    FAIL() << "the unit of in.w is not in its backward";
  } catch (Error const& e) {
    EXPECT_NE(std::string(e.what()).find("in.w"), std::string::npos);
  }
  store.weights_changed();
}
