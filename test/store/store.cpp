#include <prowl/core/error.hpp>
#include <prowl/store/store.hpp>
#include <prowl/store/store_plan.hpp>

#include <gtest/gtest.h>

#include <set>

using namespace prowl;

namespace {

/// Not before Kokkos is initialised.
Execution exec() { return Execution(); }

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
    auto const shard = store.kept_weights(i);
    auto const host = Kokkos::create_mirror_view(shard);
    auto const first = store.layout().weight_rows(i).begin * store.layout().parameters()[i].columns();
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

/// Of micro-batches first_k, ..., exactly where all are small integers.
void expect_gradients(Store const& store, int ranks, int first_k, int micro_batches, float factor = 1,
                      float tolerance = 0) {
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.updated_gradient(i));
    auto const first = store.layout().rows(i).begin * store.layout().parameters()[i].columns();
    for (std::size_t e = 0; e < host.size(); ++e) {
      float expected = 0;
      for (int k = first_k; k < first_k + micro_batches; ++k)
        for (int r = 0; r < ranks; ++r) expected += gradient_value(i, first + std::int64_t(e), r, k);
      ASSERT_NEAR(host.data()[e], factor * expected, tolerance) << store.layout().parameters()[i].name;
    }
  }
}

/// All sharded, or the matrices of the blocks owned, by the ranks of the mesh in turn.
Layout make_layout(Mesh const& mesh, bool owned) {
  auto const list = parameters();
  std::vector<Placement> placements(list.size());
  auto const place = mesh.place();
  int slot = 1;
  for (std::size_t i = 0; i < list.size() && owned; ++i)
    if (list[i].is_matrix() && list[i].name.starts_with("blocks")) {
      placements[i] = Owner{slot % place.shards, slot / place.shards % place.replicas};
      ++slot;
    }
  return Layout(list, place, placements);
}

void forward(Store& store) {
  for (std::size_t unit = 0; unit < store.layout().units().size(); ++unit) {
    store.begin_forward(unit);
    expect_whole(store, unit);
    store.end_forward(unit);
  }
}

struct Case {
  int prefetch;
  Residency residency;
  bool owned;
};

class StoreTest : public testing::TestWithParam<Case> {
protected:
  StoreOptions options(int micro_batches = 1) const {
    return {
        .prefetch = GetParam().prefetch, .residency = GetParam().residency, .micro_batches = micro_batches};
  }

  Ledger ledger;
  Communicator const world{MPI_COMM_WORLD, &ledger};
};

} // namespace

TEST_P(StoreTest, forward_and_backward_see_whole_weights_and_leave_summed_gradients) {
  for (int replicate : {1, 2, 4}) {
    if (world.size() % replicate != 0) continue;
    Mesh const mesh(world, replicate);
    for (int micro_batches : {1, 3}) {
      SCOPED_TRACE(testing::Message() << replicate << " replicas, " << micro_batches << " micro-batches");
      Store store(exec(), mesh, make_layout(mesh, GetParam().owned), options(micro_batches));
      EXPECT_EQ(store.bytes(), store_sizes(store.layout(), store.options()).bytes());
      set_weights(store);
      store.weights_changed();
      for (int step = 0; step < 2; ++step) { // the second replaces the first
        for (int k = 0; k < micro_batches; ++k) {
          forward(store);
          backward(store, world.rank(), k + step);
        }
        store.finish_gradients();
        expect_gradients(store, world.size(), step, micro_batches);
      }
    }
  }
}

TEST_P(StoreTest, the_mean_divides_by_all_ranks_and_micro_batches) {
  for (int replicate : {1, 2}) {
    if (world.size() % replicate != 0) continue;
    Mesh const mesh(world, replicate);
    auto with_mean = options(2);
    with_mean.reduction = Reduction::mean;
    Store store(exec(), mesh, make_layout(mesh, GetParam().owned), with_mean);
    set_weights(store);
    store.weights_changed();
    for (int k : {0, 1}) backward(store, world.rank(), k);
    store.finish_gradients();
    // Each term is rounded when it is divided, and each sum: 2 p terms of less than 2000.
    expect_gradients(store, world.size(), 0, 2, 1.0f / float(2 * world.size()), 2000 * 6e-8f * 4);
  }
}

TEST_P(StoreTest, bytes_are_those_of_the_units_in_flight) {
  Mesh const mesh(world);
  std::vector<Parameter> many;
  std::vector<Placement> placements;
  for (int l = 0; l < 24; ++l) {
    many.push_back({"blocks." + std::to_string(l) + ".w", {40, 40}, "blocks." + std::to_string(l)});
    placements.push_back(GetParam().owned ? Placement(Owner{l % world.size(), 0}) : std::nullopt);
  }
  Store const store(exec(), mesh, Layout(many, mesh.place(), placements), options());
  EXPECT_EQ(store.bytes(), store_sizes(store.layout(), options()).bytes());
  bool const single = world.size() == 1, owned = GetParam().owned;
  std::int64_t const matrix = 40 * 40 * 4, padded = padded_rows(40, world.size()) * world.size() * 40 * 4;
  std::int64_t const units = GetParam().residency == Residency::z2 ? 24 : GetParam().prefetch + 1;
  auto const here = owned ? shard_rows(24, world.size(), 0).size() : 24; // 24 divides by 1 to 4
  std::int64_t const kept = 2 * here * (owned ? matrix : padded / world.size());
  // Where units differ between ranks, a slot has room for any; of its own matrices a rank needs no copy.
  bool const z2 = GetParam().residency == Residency::z2;
  std::int64_t const copies = owned && z2 ? 24 - here : units;
  std::int64_t const whole = single ? 0 : copies * matrix + units * (owned ? 0 : padded);
  // One unit's gradients in the making, one unit's being summed: sent, and received.
  std::int64_t const summed = single ? 0 : owned ? 2 * matrix : padded + padded / world.size();
  EXPECT_EQ(store.bytes(), kept + whole + matrix + summed);
}

TEST_P(StoreTest, the_ledger_counts_what_a_unit_and_pass_moves) {
  if (world.size() == 1) GTEST_SKIP() << "one rank moves nothing";
  bool const z2 = GetParam().residency == Residency::z2;
  for (int replicate : {1, 2}) {
    if (world.size() % replicate != 0 || world.size() == replicate) continue;
    Mesh const mesh(world, replicate);
    Store store(exec(), mesh, make_layout(mesh, GetParam().owned), options());
    set_weights(store);
    store.weights_changed();
    ledger.clear();
    forward(store);
    backward(store, world.rank(), 0);
    store.finish_gradients();
    store.publish();
    store.finish_publication();
    std::int64_t const n = mesh.shard().size(), g = replicate;
    std::int64_t sharded = 0, owned = 0, mine = 0, packs = 0, gathers = 0;
    for (std::size_t u = 0; u < store.layout().units().size(); ++u) {
      auto const& unit = store.layout().units()[u];
      std::set<int> owners;
      bool any_sharded = false;
      for (auto i = unit.first; i < unit.last; ++i) {
        auto const& p = store.layout().parameters()[i];
        auto const& owner = store.layout().placement(i);
        if (owner) {
          owned += p.size();
          owners.insert(owner->shard);
          if (owner->shard == mesh.shard().rank()) mine += p.size();
        } else {
          sharded += padded_rows(p.rows(), int(n)) * n * p.columns();
          any_sharded = true;
        }
      }
      packs += std::int64_t(owners.size());
      gathers += any_sharded;
    }
    auto const expect = [&](Collective kind, Purpose purpose, std::int64_t calls, std::int64_t elements,
                            std::int64_t group) {
      SCOPED_TRACE(testing::Message() << name(kind) << " " << name(purpose));
      if (calls >= 0) {
        EXPECT_EQ(ledger.totals(kind, purpose).calls, calls);
      }
      EXPECT_DOUBLE_EQ(ledger.totals(kind, purpose).bytes,
                       double((group - 1) * 4 * elements) / double(group));
    };
    // Z3: broadcast, broadcast, reduce: 3 (N-1)/N P_M; Z2: one broadcast less.
    expect(Collective::broadcast, Purpose::forward, packs, owned, n);
    expect(Collective::broadcast, Purpose::backward, z2 ? 0 : packs, z2 ? 0 : owned, n);
    expect(Collective::all_gather, Purpose::forward, gathers, sharded, n);
    expect(Collective::all_gather, Purpose::backward, z2 ? 0 : gathers, z2 ? 0 : sharded, n);
    expect(Collective::reduce_scatter, Purpose::backward, gathers, sharded, n);
    // Over the replicas a rank moves the matrices of its own shard index: (G-1)/G of them each way.
    auto const reduced = ledger.totals(Collective::reduce, Purpose::backward).bytes;
    EXPECT_DOUBLE_EQ(reduced,
                     double((n - 1) * 4 * owned) / double(n) + double((g - 1) * 4 * mine) / double(g));
    expect(Collective::broadcast, Purpose::optimizer, -1, mine, g);
    EXPECT_EQ(ledger, planned_traffic(store.layout(), store.options()));
  }
}

TEST_P(StoreTest, replicas_have_the_owners_bits_after_the_publication) {
  for (int replicate : {2, 4}) {
    if (world.size() % replicate != 0) continue;
    Mesh const mesh(world, replicate);
    for (bool asynchronous : {true, false}) {
      auto with = options();
      with.asynchronous = asynchronous;
      Store store(exec(), mesh, make_layout(mesh, GetParam().owned), with);
      for (std::size_t i = 0; i < store.layout().parameters().size(); ++i) { // only where they are updated
        Kokkos::deep_copy(store.kept_weights(i), -1.0f);
        auto const rows = store.updated_weights(i);
        auto const host = Kokkos::create_mirror_view(rows);
        auto const first = store.layout().rows(i).begin * store.layout().parameters()[i].columns();
        for (std::size_t e = 0; e < host.size(); ++e)
          host.data()[e] = weight_value(i, first + std::int64_t(e));
        Kokkos::deep_copy(rows, host);
      }
      store.publish();
      store.weights_changed();
      forward(store); // waits for each unit's
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (bool owned : {false, true})
    for (auto residency : {Residency::z3, Residency::z2})
      for (int prefetch : {0, 1, 2}) list.push_back({prefetch, residency, owned});
  return list;
}
std::string case_name(testing::TestParamInfo<Case> const& one) {
  return std::string(one.param.owned ? "owned_" : "sharded_") +
         (one.param.residency == Residency::z2 ? "z2_" : "z3_") + "prefetch_" +
         std::to_string(one.param.prefetch);
}
INSTANTIATE_TEST_SUITE_P(cases, StoreTest, testing::ValuesIn(cases()), case_name);

TEST(Store, a_parameter_that_is_assigned_after_a_step_is_not_overwritten_by_its_publication) {
  Communicator const world(MPI_COMM_WORLD);
  if (world.size() == 1) GTEST_SKIP() << "one rank publishes nothing";
  Mesh const mesh(world, world.size());
  Parameter const large{"blocks.0.w", {700, 900}, "blocks.0"};
  for (int repeat = 0; repeat < 3; ++repeat) {
    Store store(exec(), mesh, Layout({large}, mesh.place(), {Owner{0, repeat % world.size()}}));
    Matrix<float> const after("after", 700, 900);
    Kokkos::deep_copy(after, 2.0f);
    Kokkos::deep_copy(store.kept_weights(0), 1.0f);
    store.publish();
    store.assign(0, after);
    store.finish_publication();
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.kept_weights(0));
    for (std::size_t e = 0; e < host.size(); ++e) ASSERT_EQ(host.data()[e], 2);
  }
}

TEST(Store, a_layout_of_another_rank_is_refused) {
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  auto place = mesh.place();
  ++place.shards;
  EXPECT_THROW(Store(exec(), mesh, Layout(parameters(), place)), Error);
}

TEST(Store, only_the_owner_has_a_gradient) {
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  Store store(exec(), mesh, make_layout(mesh, true));
  set_weights(store);
  store.weights_changed();
  backward(store, mesh.world().rank(), 0);
  store.finish_gradients();
  // Nothing else holds one: the flat array is the shards and what is owned.
  std::int64_t shards = 0, owned = 0;
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i) {
    auto const& p = store.layout().parameters()[i];
    if (!store.layout().placement(i))
      shards += padded_rows(p.rows(), mesh.shard().size()) * p.columns();
    else if (store.layout().owns(i))
      owned += p.size();
  }
  EXPECT_EQ(std::int64_t(store.gradients().size()), shards + owned);
  expect_gradients(store, mesh.world().size(), 0, 1);
  double owners = 0;
  for (std::size_t i = 0; i < store.layout().parameters().size(); ++i) {
    if (!store.layout().placement(i)) continue;
    bool const mine = store.updated_gradient(i).size() > 0;
    EXPECT_EQ(mine, store.layout().owns(i));
    EXPECT_EQ(std::int64_t(store.updated_gradient(i).size()),
              mine ? store.layout().parameters()[i].size() : 0);
    owners += mine;
  }
  EXPECT_EQ(mesh.world().sum(owners), 4); // of four matrices, over the whole mesh
}

TEST(Store, a_unit_without_a_backward_has_zero_gradients) {
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  Store store(exec(), mesh, make_layout(mesh, true));
  set_weights(store);
  store.weights_changed();
  backward(store, mesh.world().rank(), 0);
  store.finish_gradients();
  store.begin_backward(0);
  Kokkos::deep_copy(store.gradient(0), 1.0f);
  Kokkos::deep_copy(store.gradient(1), 1.0f);
  store.end_backward(0);
  store.finish_gradients();
  for (std::size_t i = 2; i < store.layout().parameters().size(); ++i) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), store.updated_gradient(i));
    for (std::size_t e = 0; e < host.size(); ++e) ASSERT_EQ(host.data()[e], 0);
  }
}

TEST(Store, a_micro_batch_too_many_or_too_few_is_an_error_that_names_the_unit) {
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  auto const message = [&](int declared, int done) -> std::string {
    Store store(exec(), mesh, make_layout(mesh, true), {.micro_batches = declared});
    try {
      for (int k = 0; k < done; ++k) {
        store.begin_backward(1);
        store.end_backward(1);
      }
      store.finish_gradients();
    } catch (Error const& e) {
      store.clear_gradients();
      store.weights_changed();
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message(2, 1).find("blocks.0"), std::string::npos);
  EXPECT_NE(message(1, 2).find("blocks.0"), std::string::npos);
  EXPECT_EQ(message(2, 2), "");
}

TEST(Store, different_registrations_are_refused_on_every_rank_by_name) {
  Communicator const world(MPI_COMM_WORLD);
  if (world.size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  Mesh const mesh(world);
  auto list = parameters();
  if (world.rank() == world.size() - 1) std::swap(list[3], list[4]);
  try {
    Store const store(exec(), mesh, list);
    FAIL() << "the last rank has another order";
  } catch (Error const& e) {
    EXPECT_NE(std::string(e.what()).find("blocks.0.b"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("blocks.0.c"), std::string::npos) << e.what();
  }
}

TEST(Store, use_out_of_turn_is_an_error_that_names_the_parameter) {
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  Store store(exec(), mesh, parameters());
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
