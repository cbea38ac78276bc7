#include <dit/train/dump.hpp>

#include <fmt/format.h>

namespace prowl::dit {

namespace {

template <class View>
std::vector<float> values_of(View const& view) {
  auto const host = Kokkos::create_mirror_view_and_copy(HostMemory(), view);
  return {host.data(), host.data() + host.size()};
}

} // namespace

void StepDump::add(std::string name, std::vector<std::int64_t> shape, Range rows, std::vector<float> values) {
  values_.push_back(std::move(values));
  contents_.arrays.push_back({std::move(name), std::move(shape), rows.begin, rows.end,
                              static_cast<float const*>(values_.back().data())});
}

void StepDump::add_batch(int k, ModelConfig const& config, DeviceBatch const& batch, std::int64_t first,
                         std::int64_t total) {
  auto const prefix = fmt::format("batch/{}/", k);
  Range const rows{first, first + batch.count()};
  auto const input = batch.input();
  auto const clean = values_of(batch.clean());
  auto noise = values_of(batch.velocity()); // v = e - x
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] += clean[i];
  std::vector<std::int64_t> const latent = {total, config.channels, config.pixels()};
  add(prefix + "clean", latent, rows, clean);
  add(prefix + "noise", latent, rows, noise);
  add(prefix + "noisy", latent, rows, values_of(input.latent));
  add(prefix + "time", {total}, rows, values_of(input.time));
  for (std::size_t e = 0; e < config.encoders.size(); ++e)
    add(prefix + "text/" + config.encoders[e].name,
        {total, config.encoders[e].tokens, config.encoders[e].width}, rows, values_of(input.text[e]));
  add(prefix + "pooled", {total, config.pooled_width}, rows, values_of(input.pooled));
}

void StepDump::add_arrays(std::string const& prefix, Store const& store,
                          std::vector<ParameterArray> const& arrays) {
  for (auto const& a : arrays) {
    auto const rows = rows_to_write(store, a, nullptr);
    add(prefix + a.name, rows.shape, {rows.begin, rows.end}, values_of(a.values));
  }
}

void StepDump::add_gradients(Store const& store) { add_arrays("", store, gradients(store)); }

void StepDump::add_state(std::string const& when, Store const& store, Optimizer const& optimizer) {
  add_arrays(when + "/", store, weights(store));
  add_arrays(when + "/", store, state(store, optimizer));
}

void StepDump::write(MPI_Comm comm, std::string const& path, Position const& position, double loss,
                     double rate_factor, std::string const& model, std::string const& deck) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::int64_t const mine = rank == 0 ? 1 : 0;
  contents_.arrays.push_back({"loss", {1}, 0, mine, static_cast<double const*>(&loss)});
  contents_.arrays.push_back({"rate_factor", {1}, 0, mine, static_cast<double const*>(&rate_factor)});
  contents_.attributes = {{"step", position.step}, {"skipped", position.skipped}, {"model", model}};
  contents_.texts = {{"deck", deck}};
  write_array_file(comm, path, contents_);
}

} // namespace prowl::dit
