#include <dit/model.hpp>

#include <dit/block.hpp>
#include <dit/embed.hpp>
#include <dit/final.hpp>
#include <dit/rope.hpp>

#include <prowl/core/error.hpp>

namespace prowl::dit {

namespace {

template <class T>
Workspace<T> carve(Vector<char> const& memory, ModelConfig const& config, int samples) {
  Arena arena(memory.data());
  return Workspace<T>(arena, config, samples);
}

int checked(ModelConfig const& config, int samples) {
  if (samples > most_samples(config))
    throw Error("model: {} samples of {} tokens at once, expected at most {}", samples, config.tokens(),
                most_samples(config));
  return samples;
}

} // namespace

template <class T>
Model<T>::Model(ModelConfig const& config, int capacity)
    : config_(config), capacity_(checked(config, capacity)), index_(model_index(config)),
      memory_(uninitialised<Vector<char>>("prowl::dit::activations", activation_bytes<T>(config, capacity))),
      workspace_(carve<T>(memory_, config, capacity)) {
  Execution const exec;
  rope_table<T>(exec, config.grid(), workspace_.rope);
  exec.fence(); // later calls may use another execution space instance
}

template <class T>
void Model<T>::check_latent(char const* what, std::int64_t samples, Batch<T const> const& latent) const {
  if (std::int64_t(latent.extent(0)) != samples || int(latent.extent(1)) != config_.channels ||
      int(latent.extent(2)) != config_.pixels())
    throw Error("model: {} is {} x {} x {}, expected {} x {} x {} (samples, channels, pixels)", what,
                latent.extent(0), latent.extent(1), latent.extent(2), samples, config_.channels,
                config_.pixels());
}

template <class T>
int Model<T>::check(Input<T> const& input) const {
  auto const b = std::int64_t(input.time.extent(0));
  if (b > capacity_) throw Error("model: a batch of {} samples, expected at most {}", b, capacity_);
  if (b == 0) return 0;
  check_latent("the latent", b, input.latent);
  if (input.text.size() != config_.encoders.size())
    throw Error("model: text features of {} encoders, expected {}", input.text.size(),
                config_.encoders.size());
  for (std::size_t e = 0; e < input.text.size(); ++e) {
    auto const& encoder = config_.encoders[e];
    auto const& text = input.text[e];
    if (std::int64_t(text.extent(0)) != b || int(text.extent(1)) != encoder.tokens ||
        int(text.extent(2)) != encoder.width)
      throw Error(
          "model: text features of {} are {} x {} x {}, expected {} x {} x {} (samples, tokens, width)",
          encoder.name, text.extent(0), text.extent(1), text.extent(2), b, encoder.tokens, encoder.width);
  }
  if (std::int64_t(input.pooled.extent(0)) != b || int(input.pooled.extent(1)) != config_.pooled_width)
    throw Error("model: pooled text features are {} x {}, expected {} x {}", input.pooled.extent(0),
                input.pooled.extent(1), b, config_.pooled_width);
  return int(b);
}

template <class T>
void Model<T>::forward(Execution const& exec, Parameters<T>& parameters, Input<T> const& input) {
  auto& w = workspace_;
  if (int const samples = int(input.time.extent(0)); samples != w.samples)
    w = carve<T>(memory_, config_, samples);
  auto const bracketed = [&](std::size_t unit, auto const& work) {
    parameters.begin_forward(unit);
    if (w.samples > 0) work();
    parameters.end_forward(unit);
  };
  std::size_t const layers = index_.blocks.size();
  bracketed(0, [&] { embed(exec, parameters, index_.embed, input, w); });
  for (std::size_t l = 0; l < layers; ++l)
    bracketed(1 + l, [&] { block(exec, parameters, index_.blocks[l], int(l), w); });
  bracketed(1 + layers, [&] { final_layer(exec, parameters, index_.final, w); });
}

template <class T>
void Model<T>::backward(Execution const& exec, Parameters<T>& parameters, Input<T> const& input) {
  auto& w = workspace_;
  auto const bracketed = [&](std::size_t unit, auto const& work) {
    parameters.begin_backward(unit);
    work();
    parameters.end_backward(unit);
  };
  std::size_t const layers = index_.blocks.size();
  bracketed(1 + layers, [&] { final_layer_backward(exec, parameters, index_.final, w); });
  for (std::size_t l = layers; l-- > 0;)
    bracketed(1 + l, [&] { block_backward(exec, parameters, index_.blocks[l], int(l), w); });
  bracketed(0, [&] { embed_backward(exec, parameters, index_.embed, input, w); });
}

template <class T>
void Model<T>::zero_gradients(Execution const& exec, Parameters<T>& parameters) {
  auto const& list = index_.parameters;
  std::size_t end = list.size();
  for (std::size_t unit = index_.blocks.size() + 2; unit-- > 0;) {
    std::size_t begin = end;
    while (begin > 0 && list[begin - 1].unit == list[end - 1].unit) --begin;
    parameters.begin_backward(unit);
    for (std::size_t i = begin; i < end; ++i) Kokkos::deep_copy(exec, parameters.gradient(i), T(0));
    parameters.end_backward(unit);
    end = begin;
  }
}

template <class T>
double Model<T>::loss(Execution const& exec, Parameters<T>& parameters, Input<T> const& input,
                      std::type_identity_t<Batch<T const>> const& target) {
  int const samples = check(input);
  if (samples > 0) check_latent("the target", samples, target);
  forward(exec, parameters, input);
  auto const& w = workspace_;
  return samples > 0 ? squared_error<T>(exec, w.patch, w.prediction, target, w.loss_partials) : 0.0;
}

template <class T>
double Model<T>::forward_backward(Execution const& exec, Parameters<T>& parameters, Input<T> const& input,
                                  std::type_identity_t<Batch<T const>> const& target, double loss_scale) {
  double const sum = loss(exec, parameters, input, target);
  if (workspace_.samples > 0) {
    squared_error_backward<T>(exec, workspace_.patch, loss_scale, target, workspace_.prediction);
    backward(exec, parameters, input);
  } else {
    zero_gradients(exec, parameters);
  }
  return sum;
}

template <class T>
void Model<T>::predict(Execution const& exec, Parameters<T>& parameters, Input<T> const& input,
                       Batch<T> const& velocity) {
  int const samples = check(input);
  if (samples > 0) check_latent("the velocity", samples, velocity);
  forward(exec, parameters, input);
  if (samples > 0) unpatchify<T>(exec, workspace_.patch, workspace_.prediction, velocity);
}

template class Model<float>;
template class Model<double>;

} // namespace prowl::dit
