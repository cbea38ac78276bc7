#include <dit/train/state.hpp>

#include <dit/layout.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/checkpoint.hpp>
#include <prowl/kernels/fill.hpp>
#include <prowl/optim/ownership.hpp>

#include <fmt/format.h>

#include <set>

namespace prowl::dit {

namespace {

using HostRows = Kokkos::View<float**, Kokkos::LayoutRight, HostMemory>;

std::vector<std::int64_t> const& shape(Store const& store, ParameterArray const& array) {
  return store.layout().parameters()[array.parameter].shape;
}

std::vector<ArrayShape> shapes(Store const& store, std::vector<ParameterArray> const& arrays) {
  std::vector<ArrayShape> result;
  for (auto const& a : arrays) result.push_back({a.name, shape(store, a), ElementType::float32});
  return result;
}

/// Reads this rank's rows, and brings them to where the model computes.
void read(ArrayFileReader const& file, Store const& store, std::vector<ParameterArray> const& arrays) {
  std::vector<HostRows> hosts;
  std::vector<ArrayTarget> wanted;
  for (auto const& a : arrays) {
    auto& host = hosts.emplace_back(Kokkos::create_mirror_view(a.values));
    wanted.push_back({a.name, shape(store, a), a.rows.begin, a.rows.end, host.data()});
  }
  file.read(wanted);
  for (std::size_t i = 0; i < arrays.size(); ++i) Kokkos::deep_copy(arrays[i].values, hosts[i]);
}

/// Of every parameter the array of that kind.
std::vector<ParameterArray> of_each(Store const& store, std::string const& kind,
                                    Range (Layout::*rows)(std::size_t) const,
                                    Matrix<float> (Store::*values)(std::size_t) const) {
  auto const& layout = store.layout();
  std::vector<ParameterArray> arrays;
  for (std::size_t i = 0; i < layout.parameters().size(); ++i)
    arrays.push_back({kind + "/" + layout.parameters()[i].name, i, (layout.*rows)(i), (store.*values)(i)});
  return arrays;
}

} // namespace

void initialise_weights(Execution const& exec, Store& store, std::int64_t seed) {
  auto const& layout = store.layout();
  for (std::size_t i = 0; i < layout.parameters().size(); ++i) {
    auto const& p = layout.parameters()[i];
    auto const shard = as_vector(store.kept_weights(i));
    auto const first = std::uint64_t(layout.weight_rows(i).begin * p.columns());
    switch (initial_value(p)) {
    case Initial::zero:
      Kokkos::deep_copy(exec, shard, 0.0f);
      break;
    case Initial::one:
      Kokkos::deep_copy(exec, shard, 1.0f);
      break;
    case Initial::normal:
      prowl::fill_normal(exec, Random(std::uint64_t(seed), i), first, float(initial_deviation), shard);
      break;
    }
  }
  exec.fence(); // the weights may be gathered next by calls that do not know `exec`
  store.weights_changed();
}

std::vector<ParameterArray> kept_weights(Store const& store) {
  return of_each(store, "weights", &Layout::weight_rows, &Store::kept_weights);
}

std::vector<ParameterArray> weights(Store const& store) {
  return of_each(store, "weights", &Layout::rows, &Store::updated_weights);
}

std::vector<ParameterArray> gradients(Store const& store) {
  return of_each(store, "gradient", &Layout::rows, &Store::updated_gradient);
}

std::vector<ParameterArray> state(Store const& store, Optimizer const& optimizer) {
  std::vector<ParameterArray> arrays;
  for (auto const& s : optimizer.state())
    arrays.push_back({s.kind + "/" + store.layout().parameters()[s.parameter].name, s.parameter,
                      store.layout().rows(s.parameter), s.rows});
  return arrays;
}

ArrayRows rows_to_write(Store const& store, ParameterArray const& array, float const* host) {
  bool const gives = store.layout().placement(array.parameter) || store.mesh().replicate().rank() == 0;
  return {array.name, shape(store, array), array.rows.begin, gives ? array.rows.end : array.rows.begin, host};
}

std::string save(Store const& store, Optimizer const& optimizer, Position const& position,
                 RunTexts const& texts, std::string const& folder, int keep) {
  ArrayFileContents contents;
  contents.attributes = {{"model", texts.model},
                         {"data", texts.data},
                         {"skipped", position.skipped},
                         {"sample", position.sample},
                         {"seed", position.seed}};
  contents.texts = {{"deck", texts.deck}, {"routing", routing_table(store.layout(), optimizer.routes())}};
  std::vector<HostRows> hosts;
  for (auto const& list : {weights(store), state(store, optimizer)})
    for (auto const& a : list) {
      hosts.push_back(Kokkos::create_mirror_view_and_copy(HostMemory(), a.values));
      contents.arrays.push_back(rows_to_write(store, a, hosts.back().data()));
    }
  return write_checkpoint(store.mesh().world().mpi(), folder, position.step, contents, keep);
}

void load_weights(Store& store, ArrayFileReader const& file) {
  auto const arrays = kept_weights(store);
  store.finish_publication();
  file.require_finite();
  file.require_arrays(shapes(store, arrays), "weights/");
  read(file, store, arrays);
  store.weights_changed();
}

void require_state(Store const& store, Optimizer const& optimizer, ArrayFileReader const& file,
                   std::string const& changed) {
  std::set<std::string> missing, unused;
  for (auto const& a : state(store, optimizer)) missing.insert(a.name);
  for (auto const& stored : file.arrays()) {
    if (stored.name.starts_with("weights/")) continue;
    if (missing.erase(stored.name) == 0) unused.insert(stored.name);
  }
  if (missing.empty() && unused.empty()) return;
  auto const some = [](std::set<std::string> const& names) {
    return fmt::format("{}{}", *names.begin(),
                       names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
  };
  throw Error("{}: holds another optimizer's state{}:{}{}{}", file.path(),
              changed.empty() ? "" : fmt::format(" ({})", changed),
              missing.empty() ? "" : fmt::format(" it lacks {}", some(missing)),
              missing.empty() || unused.empty() ? "" : ", and",
              unused.empty() ? "" : fmt::format(" it has {}, without use in this run", some(unused)));
}

Position load(Store& store, Optimizer& optimizer, ArrayFileReader const& file) {
  auto const arrays = state(store, optimizer);
  auto expected = shapes(store, weights(store)), more = shapes(store, arrays);
  expected.insert(expected.end(), more.begin(), more.end());
  file.require_arrays(expected);
  read(file, store, arrays);
  load_weights(store, file);
  Position const position{file.integer("step"), file.integer("skipped"), file.integer("sample"),
                          file.integer("seed")};
  optimizer.restore_counters(position.step, position.skipped);
  return position;
}

} // namespace prowl::dit
