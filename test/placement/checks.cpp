// Descriptions that are none are refused with the value and what was expected.
#include <prowl/comm/mesh_place.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/types.hpp>
#include <prowl/placement/bucket.hpp>
#include <prowl/placement/layout.hpp>
#include <prowl/placement/owners.hpp>
#include <prowl/store/unit_slots.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace prowl;

namespace {

constexpr auto huge = std::int64_t{1} << 62;

std::string message(std::function<void()> const& call) {
  try {
    call();
  } catch (Error const& e) {
    return e.what();
  }
  return "no error";
}

void expect_refused(std::function<void()> const& call, std::string const& part) {
  auto const text = message(call);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

} // namespace

TEST(Checks, of_shapes) {
  auto const layout = [](std::vector<std::int64_t> shape) { Layout({{"w", std::move(shape), "u"}}, {}); };
  for (auto const& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {-1, 4}, {4, -huge}, {1, 2, 3}})
    expect_refused([&] { layout(shape); }, "parameter w: shape [");
  for (auto const& shape :
       std::vector<std::vector<std::int64_t>>{{huge, huge},
                                              {std::int64_t{1} << 32, std::int64_t{1} << 32},
                                              {huge},
                                              {(std::int64_t{1} << 36) + 1}})
    expect_refused([&] { layout(shape); }, "expected at most 68719476736 elements");
  EXPECT_EQ(message([&] { layout({std::int64_t{1} << 20, std::int64_t{1} << 16}); }), "no error");
  expect_refused([] { Layout({{"", {3}, "u"}}, {}); }, "parameter number 0: has no name");
}

TEST(Checks, of_places_in_a_mesh) {
  auto const layout = [](MeshPlace const& place) { Layout({{"w", {3, 3}, "u"}}, place); };
  expect_refused([&] { layout({.shards = 0}); }, "shards of a mesh: 0, expected 1 to");
  expect_refused([&] { layout({.shards = -3}); }, "shards of a mesh: -3");
  expect_refused([&] { layout({.replicas = 0}); }, "replicas of a mesh: 0");
  expect_refused([&] { layout({.tensors = 0}); }, "tensor ranks of a mesh: 0");
  expect_refused([&] { layout({.shards = 4, .shard = 4}); }, "shard of a rank: 4, expected 0 to 3");
  expect_refused([&] { layout({.replicas = 2, .replica = -1}); }, "replica of a rank: -1");
  expect_refused([&] { layout({.tensors = 2, .tensor = 2}); }, "tensor rank of a rank: 2");
  expect_refused([&] { layout({.shards = 1 << 16, .replicas = 1 << 16}); }, "expected at most 1048576 ranks");
}

TEST(Checks, of_shards_and_buckets) {
  expect_refused([] { (void)padded_rows(5, 0); }, "ranks: 0, expected 1 to");
  expect_refused([] { (void)padded_rows(-5, 2); }, "rows: -5");
  expect_refused([] { (void)shard_rows(5, -1, 0); }, "ranks: -1");
  expect_refused([] { (void)shard_rows(5, 2, 2); }, "rank: 2, expected 0 to 1");
  expect_refused([] { (void)shard_rows(5, 2, -1); }, "rank: -1, expected 0 to 1");
  std::vector<Parameter> const parameters = {{"a", {4, 4}, "u"}, {"b", {4, 0}, "u"}};
  auto const fill = [&](std::size_t index, int ranks, std::int64_t bytes) {
    std::size_t const order[] = {index};
    (void)fill_buckets(parameters, order, ranks, bytes, 100);
  };
  EXPECT_EQ(message([&] { fill(0, 2, 4); }), "no error");
  expect_refused([&] { fill(2, 2, 4); }, "parameter 2, expected 0 to 1");
  expect_refused([&] { fill(1, 2, 4); }, "parameter b: shape [4, 0]");
  expect_refused([&] { fill(0, 0, 4); }, "ranks: 0");
  expect_refused([&] { fill(0, 2, 0); }, "bytes of an element: 0");
}

TEST(Checks, of_owners_and_slots) {
  std::vector<OwnedMatrix> matrices = {{0, "u", 16, 1}};
  expect_refused([&] { (void)assign_owners(matrices, 0); }, "slots for owners: 0, expected 1 to");
  expect_refused([&] { (void)assign_owners(matrices, 1 << 30); }, "slots for owners: 1073741824");
  matrices[0].size = -1;
  expect_refused([&] { (void)assign_owners(matrices, 2); }, "elements of an owned matrix: -1");
  matrices[0] = {0, "u", 16, std::nan("")};
  expect_refused([&] { (void)assign_owners(matrices, 2); }, "parameter number 0: its update costs nan");
  UnitSlots slots(3, 1, Residency::z3, true);
  expect_refused([&] { (void)slots.claim(3, Pass::forward); }, "unit 3, expected 0 to 2");
  expect_refused([&] { (void)slots.unit(2); }, "slot 2, expected 0 to 1");
  expect_refused([&] { slots.release(std::size_t(-1)); }, "slot -1, expected 0 to 1");
  expect_refused([] { (void)UnitSlots(3, -1, Residency::z3, true); }, "units made whole ahead: -1");
  expect_refused([] { (void)UnitSlots(0, 0, Residency::z3, true).claim(0, Pass::backward); },
                 "there is none");
}

TEST(Checks, of_parts_of_arrays) {
  Vector<float> const v("v", 12);
  expect_refused([&] { (void)slice(v, 5, 8); }, "8 elements from element 5 on, expected a part of 12");
  expect_refused([&] { (void)slice(v, -1, 2); }, "2 elements from element -1 on");
  expect_refused([&] { (void)slice(v, 1, -1); }, "-1 elements");
  expect_refused([&] { (void)slice(v, huge, huge); }, "expected a part of 12");
  expect_refused([&] { (void)as_matrix(v, 4, 4); }, "a matrix of 4 x 4 in 12 elements");
  expect_refused([&] { (void)as_matrix(v, huge, 4); }, "in 12 elements");
  expect_refused([&] { (void)as_matrix(v, -3, -4); }, "a matrix of -3 x -4");
  EXPECT_EQ(message([&] { (void)as_matrix(slice(v, 12, 0), 0, 1000); }), "no error");
  EXPECT_EQ(slice(v, 2, 10).size(), 10u);
}
