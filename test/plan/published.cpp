// The paper's figures (arXiv:2608.20818, tables 2 and 3b) from the code that plans and carries out.
#include "ideal.hpp"

#include <dit/layout.hpp>

#include <prowl/optim/optimizer.hpp>
#include <prowl/plan/step_time.hpp>

#include <gtest/gtest.h>

#include <cstdio>

#include <build_strings.hpp>

using namespace prowl;

namespace {

std::string printed(double value, char const* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

OptimizerOptions paper_options(std::int64_t period) {
  OptimizerOptions options;
  options.muon.period = period;
  options.wire = Wire::bfloat16;
  return options;
}

struct Row {
  char const* model;
  std::int64_t period;
  char const *gathers, *reduces, *gib;
};

void expect_row(Row const& row) {
  Layout const layout(dit::parameters(dit::preset(row.model)), {.shards = 256});
  Ledger ledger;
  for (std::int64_t t = 0; t < row.period; ++t)
    ledger.add(optimizer_traffic(layout, paper_options(row.period), t));
  auto const steps = double(row.period);
  auto const calls = [&](Collective kind) {
    return printed(double(ledger.totals(kind, Purpose::optimizer).calls) / steps, "%.1f");
  };
  EXPECT_EQ(calls(Collective::all_gather), row.gathers) << row.model;
  EXPECT_EQ(calls(Collective::all_reduce), row.reduces) << row.model;
  EXPECT_EQ(printed(ledger.totals(Purpose::optimizer).bytes / steps / double(1 << 30), "%.2f"), row.gib)
      << row.model;
}

} // namespace

TEST(Published, communication_of_256_ranks) {
  for (auto const& row :
       {Row{"mmdit-1.3b", 1, "10.0", "0.0", "2.38"}, Row{"mmdit-1.3b", 3, "3.3", "0.7", "0.79"},
        Row{"mmdit-9b", 1, "80.0", "0.0", "17.30"}, Row{"mmdit-9b", 3, "26.7", "0.7", "5.77"}})
    expect_row(row);
}

// 255/256 of (45 L - 17) d^2 elements of 2 bytes, padded: 1920 and 2880 rows, and 8 times as many, over 256 ranks.
TEST(Published, communication_of_the_sizes_between_follows_from_their_shapes) {
  struct Size {
    char const* model;
    std::int64_t d, layers;
  };
  for (auto const& [model, d, layers] : {Size{"mmdit-4b", 1920, 24}, Size{"mmdit-15b", 2880, 40}}) {
    auto const each = (d + 255) / 256 * 256; // rows of a d x d and a d x 4d matrix, padded
    auto const squares = 21 * layers - 4 - 1,
               mlps = 2 * layers - 1; // the last text stream has no gates, o, MLP
    double const elements = double(squares * each * d + mlps * (8 * d * d + each * 4 * d));
    Layout const layout(dit::parameters(dit::preset(model)), {.shards = 256});
    auto const totals = optimizer_traffic(layout, paper_options(1), 0).totals(Purpose::optimizer);
    EXPECT_DOUBLE_EQ(totals.bytes, 255.0 / 256 * 2 * elements) << model;
  }
}

// Table 3b: each part of the system takes time away.
TEST(Published, order_of_the_system_variants_at_15b) {
  auto const hardware = read_hardware(PROWL_INPUTS "/hardware/h100-nvlink-ib.toml");
  Layout const layout(dit::parameters(dit::preset("mmdit-15b")), {.shards = 256});
  for (auto const* type : {"float32", "bfloat16"}) {
    Machine const machine(hardware, layout.place(), type);
    std::vector<double> times;
    for (auto system : {System::naive, System::sharded_row_norm, System::buckets, System::overlap}) {
      auto options = paper_options(3);
      options.system = system;
      times.push_back(optimizer_seconds({layout, options, {}}, machine));
    }
    EXPECT_GT(times[0], times[1]) << type;
    EXPECT_GT(times[1], times[2]) << type;
    EXPECT_GE(times[2], times[3]) << type;
  }
}
