#include <prowl/comm/communicator.hpp>
#include <prowl/comm/mesh.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/square_sum.hpp>
#include <prowl/core/trace.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

using namespace prowl;

namespace {

/// Not before Kokkos is initialised.
Execution exec() { return Execution(); }

Vector<float> values(std::int64_t n, float first) {
  Vector<float> v("values", n);
  auto const host = Kokkos::create_mirror_view(v);
  for (std::int64_t i = 0; i < n; ++i) host(i) = first + float(i);
  Kokkos::deep_copy(v, host);
  return v;
}

std::vector<float> on_host(Vector<float> const& v) {
  auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), v);
  return {host.data(), host.data() + host.size()};
}

class CommunicatorTest : public testing::TestWithParam<int> {
protected:
  Ledger ledger;
  Communicator const world{MPI_COMM_WORLD, &ledger};
  int const p = world.size(), me = world.rank();
};

} // namespace

TEST_P(CommunicatorTest, all_gather_orders_the_parts_by_rank) {
  std::int64_t const n = GetParam();
  Vector<float> received("received", n * p);
  world.all_gather(exec(), values(n, 1000.0f * float(me)), received, Purpose::forward).wait();
  auto const got = on_host(received);
  for (int r = 0; r < p; ++r)
    for (std::int64_t i = 0; i < n; ++i)
      EXPECT_EQ(got[std::size_t(r * n + i)], 1000.0f * float(r) + float(i));
}

TEST_P(CommunicatorTest, reduce_scatter_gives_each_rank_its_part_of_the_sum) {
  std::int64_t const n = GetParam();
  Vector<float> received("received", n);
  world.reduce_scatter(exec(), values(n * p, float(me)), received, Purpose::backward).wait();
  auto const got = on_host(received);
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_EQ(got[std::size_t(i)], float(p * (p - 1) / 2) + float(p) * float(me * n + i));
}

TEST_P(CommunicatorTest, all_reduce_broadcast_and_reduce) {
  std::int64_t const n = GetParam();
  int const root = p - 1;
  auto const summed = values(n, float(me)), sent = values(n, 10.0f * float(me));
  Vector<float> received("received", n);
  auto first = world.all_reduce(exec(), summed, Purpose::optimizer);
  auto second = world.broadcast(exec(), sent, root, Purpose::optimizer);
  second.wait(); // in another order than they were started
  first.wait();
  world.reduce(exec(), values(n, 1.0f), received, root, Purpose::backward).wait();
  auto const a = on_host(summed), b = on_host(sent), c = on_host(received);
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(a[std::size_t(i)], float(p * (p - 1) / 2) + float(p) * float(i));
    EXPECT_EQ(b[std::size_t(i)], 10.0f * float(root) + float(i));
    if (me == root) {
      EXPECT_EQ(c[std::size_t(i)], float(p) * (1.0f + float(i)));
    }
  }
  EXPECT_EQ(ledger.totals(Purpose::optimizer).calls, 2);
  EXPECT_EQ(ledger.totals(Purpose::backward).bytes, double((p - 1) * n * 4) / p);
}

INSTANTIATE_TEST_SUITE_P(sizes, CommunicatorTest, testing::Values(0, 1, 7, 100000));

TEST(Communicator, a_request_keeps_its_buffers_alive) {
  Communicator const world(MPI_COMM_WORLD);
  Vector<float> const received("received", 5 * world.size());
  auto request =
      world.all_gather(exec(), values(5, 3), received, Purpose::other); // the sent vector ends here
  EXPECT_TRUE(request.pending());
  request.wait();
  EXPECT_FALSE(request.pending());
  EXPECT_EQ(on_host(received).back(), 7.0f);
}

TEST(Communicator, a_dropped_request_ends_the_process) {
  Communicator const world(MPI_COMM_WORLD);
  if (world.size() > 1) GTEST_SKIP() << "a death test would leave the other ranks waiting";
  testing::FLAGS_gtest_death_test_style = "fast";
  auto const request = std::make_shared<Request>();
  *request = world.all_reduce(exec(), values(3, 0), Purpose::other);
  EXPECT_DEATH({ Request const dropped(std::move(*request)); }, "was dropped before it was waited for");
  request->wait();
}

TEST(Communicator, maxima_are_taken_of_each_value_and_not_counted) {
  Ledger ledger;
  Communicator const world(MPI_COMM_WORLD, &ledger);
  double values[] = {double(world.rank()), double(-world.rank())};
  world.max(values);
  EXPECT_EQ(values[0], world.size() - 1);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(ledger.totals(Purpose::other).calls, 0);
}

TEST(Communicator, sizes_that_do_not_fit_are_refused) {
  Communicator const world(MPI_COMM_WORLD);
  Vector<float> const v("v", 3), wrong("wrong", 3 * world.size() + 1);
  EXPECT_THROW((void)world.all_gather(exec(), v, wrong, Purpose::other), Error);
  EXPECT_THROW((void)world.reduce_scatter(exec(), wrong, v, Purpose::other), Error);
}

TEST(Communicator, a_rank_that_is_not_there_is_refused_on_every_rank) {
  Communicator const world(MPI_COMM_WORLD);
  Vector<float> const v("v", 3);
  for (int root : {-1, world.size(), 1 << 30}) {
    EXPECT_THROW((void)world.broadcast(exec(), v, root, Purpose::other), Error);
    EXPECT_THROW((void)world.reduce(exec(), v, v, root, Purpose::other), Error);
  }
  EXPECT_THROW((void)world.split(-1, 0), Error);
  EXPECT_THROW(Communicator(MPI_COMM_NULL), Error);
  Ledger ledger;
  EXPECT_THROW(ledger.record(Collective::reduce, Purpose::other, 0, 8), Error);
  EXPECT_THROW(ledger.record(Collective::reduce, Purpose::other, 2, -8), Error);
}

TEST(Communicator, square_sums_of_any_size_add_up_and_ordinary_ones_as_floats_do) {
  Ledger ledger;
  Communicator const world(MPI_COMM_WORLD, &ledger);
  int const p = world.size(), me = world.rank();
  // Squares of every magnitude, some on one rank alone; small integers.
  auto const part = [](int rank, int i) {
    return i < 5    ? std::pow(10.0, 20 * i - 16) * (rank + 1)
           : i == 5 ? (rank == 0 ? 1e76 : 3.0)
                    : double(rank + i);
  };
  Vector<float> const sums("sums", 40);
  auto const host = Kokkos::create_mirror_view(sums);
  for (int i = 0; i < 40; ++i) host(i) = store_square_sum(part(me, i));
  Kokkos::deep_copy(sums, host);
  world.all_reduce_squares(exec(), sums, Purpose::optimizer).wait();
  auto const got = on_host(sums);
  for (int i = 0; i < 40; ++i) {
    double expected = 0;
    for (int r = 0; r < p; ++r) expected += part(r, i);
    // Of each term, and each sum, one rounding.
    EXPECT_NEAR(load_square_sum(got[std::size_t(i)]), expected, i > 5 ? 0 : 6e-8 * p * expected) << i;
  }
  EXPECT_EQ(ledger.totals(Collective::all_reduce, Purpose::optimizer).calls, 1);
  EXPECT_DOUBLE_EQ(ledger.totals(Purpose::optimizer).bytes, 2.0 * (p - 1) * 40 * 4 / p);
}

// The trace holds when the transfer ended: before the host, which makes no MPI call meanwhile, asked for it.
TEST(Communicator, a_gather_progresses_while_the_host_computes) {
  Communicator const world(MPI_COMM_WORLD);
  std::int64_t const n = 4'000'000;
  Vector<float> const received("received", n * world.size());
  auto const sent = values(n, float(world.rank()));
  world.barrier();
  trace::enable(true);
  auto request = world.all_gather(exec(), sent, received, Purpose::optimizer);
  // Waiting for the transfer, without MPI, as long as it takes on a busy machine.
  std::string spans;
  for (int i = 0; i < 6000 && spans.find("optimizer all_gather") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    spans = trace::json(0);
  }
  trace::enable(false);
  EXPECT_NE(spans.find("optimizer all_gather"), std::string::npos);
  request.wait();
  EXPECT_EQ(on_host(slice(received, n * (world.size() - 1), 1))[0], float(world.size() - 1));
}

TEST(Mesh, counts_that_do_not_divide_the_ranks_are_refused) {
  Communicator const world(MPI_COMM_WORLD);
  for (auto [replicate, tensor] :
       {std::pair(0, 1), {-1, 1}, {1, 0}, {world.size() + 1, 1}, {1 << 16, 1 << 16}})
    EXPECT_THROW(Mesh(world, replicate, tensor), Error) << replicate << " x " << tensor;
}

TEST(Mesh, splits_the_ranks_into_replicate_and_shard_groups) {
  Communicator const world(MPI_COMM_WORLD);
  for (int g : {1, 2, 3, 4}) {
    if (world.size() % g != 0) {
      EXPECT_THROW(Mesh(world, g), Error);
      continue;
    }
    Mesh const mesh(world, g);
    EXPECT_EQ(mesh.replicate().size(), g);
    EXPECT_EQ(mesh.shard().size(), world.size() / g);
    EXPECT_EQ(mesh.shard().rank(), world.rank() % mesh.shard().size());
    EXPECT_EQ(mesh.replicate().rank(), world.rank() / mesh.shard().size());
  }
  EXPECT_THROW(Mesh(world, 0), Error);
}
