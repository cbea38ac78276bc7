// What a caller can get wrong: the same Error on every rank, whatever their number.
#include <prowl/core/error.hpp>
#include <prowl/store/store.hpp>
#include <prowl/store/store_plan.hpp>

#include <gtest/gtest.h>

#include <functional>

using namespace prowl;

namespace {

/// Not before Kokkos is initialised.
Execution exec() { return Execution(); }

std::vector<Parameter> parameters() {
  return {{"in.w", {5, 3}, "in"},
          {"blocks.0.a", {7, 4}, "blocks.0"},
          {"blocks.0.b", {7}, "blocks.0"},
          {"out.w", {2, 2}, "out"}};
}

/// All sharded, or the matrix of the block owned by the last rank.
Layout make_layout(Mesh const& mesh, bool owned) {
  std::vector<Placement> placements(4);
  if (owned) placements[1] = Owner{mesh.place().shards - 1, 0};
  return Layout(parameters(), mesh.place(), placements);
}

void backward(Store& store, std::size_t unit) {
  store.begin_backward(unit);
  auto const& u = store.layout().unit(unit);
  for (auto i = u.first; i < u.last; ++i) Kokkos::deep_copy(store.gradient(i), 1.0f);
  store.end_backward(unit);
}

std::string message(std::function<void()> const& call) {
  try {
    call();
  } catch (Error const& e) {
    return e.what();
  }
  return "no error";
}

class Misuse : public testing::TestWithParam<bool> {
protected:
  Mesh const mesh{Communicator(MPI_COMM_WORLD)};
  Store store{exec(), mesh, make_layout(mesh, GetParam())};
};

} // namespace

TEST_P(Misuse, an_index_that_is_not_there_is_refused_by_value_and_range) {
  constexpr auto negative = std::size_t(-1);
  for (auto unit : {std::size_t{3}, std::size_t{1} << 40, negative}) {
    auto const expected = "unit " + std::to_string(std::int64_t(unit)) + ", expected 0 to 2";
    EXPECT_EQ(message([&] { store.begin_forward(unit); }), expected);
    EXPECT_EQ(message([&] { store.end_forward(unit); }), expected);
    EXPECT_EQ(message([&] { store.begin_backward(unit); }), expected);
    EXPECT_EQ(message([&] { store.end_backward(unit); }), expected);
    EXPECT_EQ(message([&] { (void)store.layout().unit(unit); }), expected);
    EXPECT_EQ(message([&] { (void)planned_traffic(store.layout(), {}, unit); }), expected);
  }
  Matrix<float> const whole("whole", 5, 3);
  auto const& layout = store.layout();
  for (auto p : {std::size_t{4}, std::size_t{1} << 40, negative}) {
    auto const expected = "parameter " + std::to_string(std::int64_t(p)) + ", expected 0 to 3";
    EXPECT_EQ(message([&] { (void)store.weight(p); }), expected);
    EXPECT_EQ(message([&] { (void)store.gradient(p); }), expected);
    EXPECT_EQ(message([&] { (void)store.kept_weights(p); }), expected);
    EXPECT_EQ(message([&] { (void)store.updated_weights(p); }), expected);
    EXPECT_EQ(message([&] { (void)store.updated_gradient(p); }), expected);
    EXPECT_EQ(message([&] { store.assign(p, whole); }), expected);
    EXPECT_EQ(message([&] { (void)layout.parameter(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.placement(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.unit_of(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.weight_rows(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.weight_offset(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.rows(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.gradient_offset(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.size(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.whole_offset(p); }), expected);
    EXPECT_EQ(message([&] { (void)layout.owns(p); }), expected);
  }
  // And the store goes on.
  store.begin_forward(2);
  store.end_forward(2);
  for (std::size_t u : {2, 1, 0}) backward(store, u);
  store.take_gradients();
}

TEST_P(Misuse, a_call_out_of_turn_is_refused_by_name) {
  EXPECT_NE(message([&] { store.end_forward(1); }).find("blocks.0: end_forward without"), std::string::npos);
  EXPECT_NE(message([&] { store.end_backward(1); }).find("blocks.0: end_backward without"),
            std::string::npos);
  EXPECT_NE(message([&] { (void)store.weight(0); }).find("in.w: its unit in is not"), std::string::npos);
  store.begin_forward(0);
  EXPECT_NE(message([&] { (void)store.weight(1); }).find("blocks.0.a: its unit blocks.0 is not"),
            std::string::npos);
  EXPECT_EQ(message([&] { store.begin_forward(0); }),
            "unit in: begin_forward while unit in is in its forward, expected its end before");
  EXPECT_EQ(message([&] { store.begin_backward(2); }),
            "unit out: begin_backward while unit in is in its forward, expected its end before");
  EXPECT_NE(message([&] { store.end_forward(1); }).find("without begin_forward"), std::string::npos);
  EXPECT_NE(message([&] { store.take_gradients(); }).find("unit in: its forward has not ended"),
            std::string::npos);
  EXPECT_NE(message([&] { store.assign(0, Matrix<float>("whole", 5, 3)); }).find("while unit in"),
            std::string::npos);
  store.end_forward(0);
  EXPECT_NE(message([&] { (void)store.weight(0); }).find("in.w: its unit in is not"), std::string::npos);
  store.begin_backward(2);
  EXPECT_EQ(message([&] { store.begin_backward(1); }),
            "unit blocks.0: begin_backward while unit out is in its backward, expected its end before");
  EXPECT_EQ(message([&] { store.begin_forward(0); }),
            "unit in: begin_forward while unit out is in its backward, expected its end before");
  EXPECT_NE(message([&] { store.end_backward(1); }).find("without begin_backward"), std::string::npos);
  EXPECT_NE(message([&] { store.finish_gradients(); }).find("unit out: its backward has not ended"),
            std::string::npos);
  EXPECT_NE(message([&] { store.gradients_changed(); }).find("begin_backward"), std::string::npos);
  Kokkos::deep_copy(store.gradient(3), 1.0f);
  store.end_backward(2);
  store.finish_gradients();
  store.take_gradients();
}

TEST_P(Misuse, a_step_has_the_gradients_of_all_its_micro_batches) {
  auto const step = [&](int declared, std::vector<std::size_t> const& units) {
    Store s(exec(), mesh, make_layout(mesh, GetParam()), {.micro_batches = declared});
    auto const text = message([&] {
      for (auto u : units) backward(s, u);
      s.take_gradients();
    });
    s.clear_gradients();
    return text;
  };
  EXPECT_EQ(step(1, {2, 1, 0}), "no error");
  EXPECT_EQ(step(2, {2, 1, 0, 2, 1, 0}), "no error");
  EXPECT_EQ(step(2, {2, 1, 0}),
            "unit in: 1 backward in a step, expected 2, the store's number of micro-batches");
  EXPECT_EQ(step(3, {1, 1}),
            "unit blocks.0: 2 backwards in a step, expected 3, the store's number of micro-batches");
  EXPECT_EQ(step(2, {2, 1, 0, 2, 0}),
            "unit blocks.0: 1 backward in a step, expected 2, the store's number of micro-batches");
  EXPECT_NE(step(1, {2, 1, 0, 2}).find("unit out: more than 1 backwards"), std::string::npos);
  EXPECT_NE(step(1, {}).find("without gradients: expected a backward of each unit"), std::string::npos);
  EXPECT_NE(step(4, {}).find("without gradients: expected 4 backwards of each unit"), std::string::npos);
  // Gradients are used once, and those that were given up not at all.
  for (std::size_t u : {2, 1, 0}) backward(store, u);
  store.finish_gradients();
  store.finish_gradients();
  store.take_gradients();
  EXPECT_NE(message([&] { store.take_gradients(); }).find("without gradients"), std::string::npos);
  store.gradients_changed();
  EXPECT_EQ(message([&] { store.take_gradients(); }), "no error");
  backward(store, 0);
  store.clear_gradients();
  EXPECT_NE(message([&] { store.take_gradients(); }).find("without gradients"), std::string::npos);
}

TEST_P(Misuse, options_that_are_none_are_refused_before_anything_is_allocated) {
  for (auto const& options : {StoreOptions{.prefetch = -1}, StoreOptions{.micro_batches = 0}}) {
    EXPECT_NE(message([&] { Store(exec(), mesh, make_layout(mesh, GetParam()), options); }).find("expected"),
              std::string::npos);
    EXPECT_NE(message([&] { (void)store_sizes(store.layout(), options); }).find("expected"),
              std::string::npos);
    EXPECT_NE(message([&] { (void)plan_store_step(store.layout(), options); }).find("expected"),
              std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(placements, Misuse, testing::Bool(),
                         [](auto const& one) { return std::string(one.param ? "owned" : "sharded"); });
