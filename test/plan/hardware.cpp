// Hardware descriptions, and the times that follow from them.
#include "ideal.hpp"

#include <prowl/core/error.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <build_strings.hpp>

using namespace prowl;

namespace {

std::string message(std::function<void()> const& body) {
  try {
    body();
  } catch (Error const& e) {
    return e.what();
  }
  return "";
}

void expect_in(std::string const& text, std::initializer_list<char const*> parts) {
  for (auto const* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

/// A file with this content, gone with the object.
struct File {
  std::string path = testing::TempDir() + "prowl-hardware.toml";
  explicit File(std::string const& text) { std::ofstream(path) << text; }
  ~File() { std::filesystem::remove(path); }
};

MeshPlace mesh(int replicas, int shards) {
  MeshPlace place;
  place.replicas = replicas;
  place.shards = shards;
  return place;
}

} // namespace

TEST(Hardware, a_description_that_is_written_reads_back_the_same) {
  auto h = test::ideal_hardware();
  h.devices = 8;
  h.kernel_us = 4.5;
  h.inter = {12, 45};
  File const file(hardware_toml(h));
  auto const again = read_hardware(file.path);
  EXPECT_EQ(hardware_toml(again), hardware_toml(h));
  EXPECT_EQ(again.inter.bandwidth_gbs, 45);
  EXPECT_EQ(again.products.size(), 2u);
}

TEST(Hardware, what_is_wrong_in_a_description_is_named) {
  auto const text = hardware_toml(test::ideal_hardware());
  auto const refused = [&](std::string const& from, std::string const& to) {
    auto broken = text;
    auto const at = broken.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) broken.replace(at, from.size(), to);
    File const file(broken);
    return message([&] { (void)read_hardware(file.path); });
  };
  expect_in(refused("capacity_gib = 1.0", "capacity_gib = -1.0"),
            {"prowl-hardware.toml", "memory.capacity_gib", "-1"});
  expect_in(refused("\"syrk\"", "\"trsm\""), {"prowl-hardware.toml", "trsm", "gemm"});
  expect_in(refused("[overlap]", "[overlaps]"), {"prowl-hardware.toml", "overlaps"});
  expect_in(refused("reserved_gib = 0.0", "reserved_gib = 2.0"), {"memory.reserved_gib", "2"});
  expect_in(message([] { (void)read_hardware(PROWL_INPUTS "/hardware/b200.toml"); }),
            {"b200.toml", "no such file", "h100-nvlink-ib.toml"});
}

TEST(Hardware, the_files_that_come_with_the_project_are_read) {
  for (auto const& entry : std::filesystem::directory_iterator(PROWL_INPUTS "/hardware"))
    EXPECT_NO_THROW((void)read_hardware(entry.path().string())) << entry.path();
}

TEST(Machine, rates_are_those_of_the_table_and_between_them_by_logarithms) {
  auto h = test::ideal_hardware();
  h.products = {{"gemm", "float32", 64, 64, 100},
                {"gemm", "float32", 64, 256, 300},
                {"gemm", "float32", 256, 256, 500},
                {"syrk", "float32", 64, 64, 1}};
  Machine const machine(h, mesh(1, 1));
  auto const rate = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    Product const p{"gemm", m, n, k};
    return p.flop() / machine.product(p) * 1e-9;
  };
  EXPECT_NEAR(rate(64, 64, 64), 100, 1e-9);
  EXPECT_NEAR(rate(256, 64, 64), 300, 1e-9);
  EXPECT_NEAR(rate(64, 128, 64), 200, 1e-9);   // half way in the logarithm of the aspect
  EXPECT_NEAR(rate(128, 128, 128), 300, 1e-9); // and of the narrowest extent
  EXPECT_NEAR(rate(8, 8, 8), 100, 1e-9);       // the nearest beyond the table
  EXPECT_NEAR(rate(9999, 9999, 9999), 500, 1e-9);
}

// One all-gather of S bytes over a node of 8: 3 stages and 7/8 S; over 32 nodes: 3 + 5 stages, 255/256 S, on rings that leave a
// node through all its ports.
TEST(Machine, collectives_follow_the_alpha_beta_model) {
  auto h = test::ideal_hardware();
  h.devices = 8;
  h.intra = {2, 400};
  h.inter = {10, 40};
  double const s = 1e9;
  auto const bytes = std::int64_t(s);
  EXPECT_NEAR(Machine(h, mesh(1, 8)).collective(Collective::all_gather, Axis::shard, bytes),
              6e-6 + 7.0 / 8 * s / 400e9, 1e-12);
  EXPECT_NEAR(Machine(h, mesh(1, 256)).collective(Collective::all_gather, Axis::shard, bytes),
              6e-6 + 50e-6 + 255.0 / 256 * s / 320e9, 1e-12);
  EXPECT_NEAR(Machine(h, mesh(1, 256)).collective(Collective::all_reduce, Axis::shard, bytes),
              2 * (6e-6 + 50e-6 + 255.0 / 256 * s / 320e9), 1e-12);
  // Replicas of 8 shards: one rank of each node, through one port.
  Machine const hybrid(h, mesh(32, 8));
  EXPECT_NEAR(hybrid.collective(Collective::broadcast, Axis::replicate, bytes), 50e-6 + 31.0 / 32 * s / 40e9,
              1e-12);
  EXPECT_EQ(hybrid.channel(Axis::shard), 0);
  EXPECT_EQ(hybrid.channel(Axis::replicate), 1);
}

TEST(Machine, ranks_of_a_host_share_its_devices_and_those_of_gpus_do_not) {
  auto h = test::ideal_hardware();
  h.devices = 2;
  h.max_nodes = 1;
  h.shared_product = 0.8;
  expect_in(message([&] { Machine const machine(h, mesh(1, 4)); }), {"4 ranks", "2 nodes", "at most 2"});
  h.host = true;
  Product const p{"gemm", 64, 64, 64};
  double const alone = Machine(h, mesh(1, 1)).product(p);
  EXPECT_NEAR(Machine(h, mesh(1, 2)).product(p), alone / 0.8, 1e-12 * alone);
  EXPECT_NEAR(Machine(h, mesh(1, 4)).product(p), 2 * alone / 0.8, 1e-12 * alone);
  expect_in(message([&] { Machine const machine(h, mesh(1, 1), "bfloat16"); }), {"bfloat16"});
}
