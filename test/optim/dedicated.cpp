// The optimizer of owned matrices.
#include "training_run.hpp"

#include <prowl/core/error.hpp>

using namespace prowl;
using namespace prowl::test;

namespace {

/// 1, 2, 4, ... as far as they divide the ranks.
std::vector<int> replica_counts() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> counts;
  for (int r : {1, 2, 3, 4})
    if (size % r == 0) counts.push_back(r);
  return counts;
}

int allocations = 0;

} // namespace

TEST(Dedicated, every_branch_equals_the_float64_reference) {
  for (int replicas : replica_counts()) {
    SCOPED_TRACE(replicas);
    compare(with(System::overlap, Direction::periodic, 1), 7, replicas);
    compare(with(System::overlap, Direction::periodic, 3), 7, replicas);
    compare(with(System::overlap, Direction::row_norm, 3), 7, replicas);
    compare(with(System::overlap, Direction::scalar_controlled, 2), 7, replicas);
    auto nesterov = with(System::overlap, Direction::periodic, 2);
    nesterov.muon.nesterov = true;
    compare(nesterov, 7, replicas);
    auto owned_adamw = with(System::overlap, Direction::periodic, 3);
    ParameterGroup group;
    group.pattern = "in.w";
    group.rule = Rule::adamw;
    group.rate = 0.01;
    owned_adamw.groups = {group};
    compare(owned_adamw, 7, replicas);
  }
}

TEST(Dedicated, the_step_communicates_nothing_but_new_matrices_over_the_replicas) {
  for (int replicas : replica_counts()) {
    TrainingRun run(with(System::overlap, Direction::periodic, 3), replicas);
    run.ledger.clear();
    for (int t = 0; t < 6; ++t) run.step();
    run.store.finish_publication();
    std::int64_t mine = 0; // elements of the matrices of this shard index
    auto const& layout = run.store.layout();
    for (std::size_t i = 0; i < layout.parameters().size(); ++i)
      if (layout.placement(i) && layout.placement(i)->shard == layout.place().shard)
        mine += layout.parameters()[i].size();
    auto const sent = run.ledger.totals(Collective::broadcast, Purpose::optimizer);
    EXPECT_EQ(run.ledger.totals(Purpose::optimizer).calls, sent.calls);
    EXPECT_DOUBLE_EQ(sent.bytes, 6 * double((replicas - 1) * 4 * mine) / replicas);
  }
}

TEST(Dedicated, the_asynchronous_publication_gives_the_bits_of_the_synchronous_one) {
  for (int replicas : replica_counts()) {
    TrainingRun now(with(System::overlap, Direction::periodic, 3), replicas, false),
        later(with(System::overlap, Direction::periodic, 3), replicas, true);
    for (int t = 0; t < 5; ++t) {
      now.step();
      later.step();
    }
    auto const a = now.local_weights(), b = later.local_weights();
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * 4), 0);
  }
}

TEST(Dedicated, its_bytes_are_known_from_the_description) {
  for (int replicas : replica_counts())
    for (auto direction : {Direction::periodic, Direction::row_norm}) {
      auto const options = with(System::overlap, direction, 3);
      TrainingRun const run(options, replicas);
      EXPECT_EQ(run.optimizer.bytes(), optimizer_memory(run.store.layout(), options).total());
    }
}

TEST(Dedicated, every_matrix_has_one_owner_and_the_two_sets_cover_the_model) {
  for (int replicas : replica_counts()) {
    TrainingRun const run(with(System::overlap, Direction::periodic, 3), replicas);
    auto const& layout = run.store.layout();
    for (std::size_t i = 0; i < layout.parameters().size(); ++i) {
      EXPECT_EQ(layout.placement(i).has_value(), run.optimizer.routes()[i].rule != Rule::sharded_adamw);
      double const rows = run.world.sum(double(layout.rows(i).size()));
      // Over the whole mesh; shards once a replica.
      EXPECT_EQ(rows, double(layout.parameters()[i].rows()) * (layout.placement(i) ? 1 : replicas));
    }
  }
}

// A step is the forward, the backward and the update; the first may set up what later ones use.
TEST(Dedicated, steps_after_the_first_allocate_no_array) {
  Kokkos::Tools::Experimental::set_allocate_data_callback(
      [](Kokkos_Profiling_SpaceHandle, char const*, void const*, std::uint64_t) { ++allocations; });
  {
    Vector<float> const probe("probe", 1);
    ASSERT_EQ(allocations, 1) << "Kokkos does not tell";
  }
  for (int replicas : replica_counts()) {
    TrainingRun run(with(System::overlap, Direction::periodic, 2), replicas);
    auto const step = [&] {
      auto const units = run.store.layout().units().size();
      for (std::size_t u = 0; u < units; ++u) {
        run.store.begin_forward(u);
        run.store.end_forward(u);
      }
      for (std::size_t u = units; u-- > 0;) {
        run.store.begin_backward(u);
        for (auto i = run.store.layout().units()[u].first; i < run.store.layout().units()[u].last; ++i)
          Kokkos::deep_copy(exec(), run.store.gradient(i), float(i + 1));
        run.store.end_backward(u);
      }
      run.optimizer.step(1);
    };
    step();
    step();
    allocations = 0;
    for (int t = 0; t < 4; ++t) step();
    EXPECT_EQ(allocations, 0) << replicas << " replicas";
  }
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
}
