// Owners of the reference models' matrices.
#include <dit/config.hpp>
#include <dit/layout.hpp>

#include <prowl/optim/ownership.hpp>

#include <gtest/gtest.h>

#include <map>

using namespace prowl;

TEST(Ownership, presets_are_balanced_within_five_percent_wherever_there_are_four_matrices_a_slot) {
  int compared = 0;
  for (auto const* preset : {"mmdit-1.3b", "mmdit-4b", "mmdit-9b", "mmdit-15b"}) {
    auto const parameters = dit::parameters(dit::preset(preset));
    auto const routes = route(parameters, {});
    for (int slots : {2, 3, 4, 8, 64, 256}) {
      auto const ownership = assign_ownership(parameters, routes, {.shards = slots});
      double total = 0, largest = 0;
      std::int64_t count = 0;
      std::map<std::string, std::vector<int>> in_unit;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        ASSERT_EQ(ownership.placements[i].has_value(), routes[i].rule == Rule::muon);
        if (!ownership.placements[i]) continue;
        auto const cost = update_cost(parameters[i], routes[i]);
        total += cost;
        largest = std::max(largest, cost);
        ++count;
        auto& counts = in_unit.try_emplace(parameters[i].unit, std::size_t(slots), 0).first->second;
        ++counts[std::size_t(ownership.placements[i]->shard)];
      }
      for (auto const& [unit, counts] : in_unit)
        EXPECT_LE(std::ranges::max(counts) - std::ranges::min(counts), 1)
            << preset << " " << slots << " " << unit;
      double const bound = std::max(total / slots, largest), load = std::ranges::max(ownership.loads);
      std::printf("%-10s %3d slots, %4ld matrices: %.4f of the lower bound, %.3f of the mean\n", preset,
                  slots, long(count), load / bound, ownership.imbalance);
      if (count < 4 * slots) continue;
      EXPECT_LE(load, 1.05 * bound) << preset << " " << slots;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4 * 5);
}

TEST(Ownership, the_cost_of_a_refresh_is_that_of_the_paper) {
  Parameter const p{"blocks.0.w", {64, 256}, "blocks.0"};
  OptimizerOptions options;
  options.muon.period = 1;
  auto const cost = update_cost(p, route({p}, options)[0]);
  EXPECT_EQ(cost, 20.0 * 64 * 64 * 256 + 10.0 * 64 * 64 * 64 +
                      6.0 * 64 * 256); // arXiv:2608.20818: 20 r^2 c + 10 r^3
}
