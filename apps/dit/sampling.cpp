#include <dit/sampling.hpp>

#include <prowl/core/error.hpp>

namespace prowl::dit {

namespace {

/// The first or second half of a contiguous array, as one vector.
template <class V>
auto half(V const& v, int which) {
  using T = typename V::non_const_value_type;
  std::int64_t const size = std::int64_t(v.size()) / 2;
  return Vector<T>(v.data() + which * size, size);
}

template <class V>
auto flat(V const& v) {
  using T = typename V::non_const_value_type;
  return Vector<T>(v.data(), v.size());
}

/// Twice the captions, those of the second half empty.
template <class T>
Input<T> doubled(Execution const& exec, ModelConfig const& config, Input<T> const& captions, std::int64_t b) {
  Input<T> both;
  both.latent =
      uninitialised<Batch<T>>("prowl::dit::sample::latent", 2 * b, config.channels, config.pixels());
  both.time = uninitialised<Vector<T>>("prowl::dit::sample::time", 2 * b);
  for (auto const& text : captions.text) {
    both.text.push_back(
        uninitialised<Batch<T>>("prowl::dit::sample::text", 2 * b, text.extent(1), text.extent(2)));
    Kokkos::deep_copy(exec, half(both.text.back(), 0), flat(text));
    Kokkos::deep_copy(exec, half(both.text.back(), 1), T(0));
  }
  both.pooled = uninitialised<Matrix<T>>("prowl::dit::sample::pooled", 2 * b, captions.pooled.extent(1));
  Kokkos::deep_copy(exec, half(both.pooled, 0), flat(captions.pooled));
  Kokkos::deep_copy(exec, half(both.pooled, 1), T(0));
  return both;
}

/// x <- x - dt (v_uncond + w (v_cond - v_uncond)).
template <class T>
void guided_step(Execution const& exec, T dt, T guidance, Batch<T> const& velocity, Batch<T> const& latents) {
  auto const captioned = half(velocity, 0), free = half(velocity, 1), x = flat(latents);
  Kokkos::parallel_for(
      "prowl::dit::guided_step", Kokkos::RangePolicy<Execution>(exec, 0, std::int64_t(x.size())),
      KOKKOS_LAMBDA(std::int64_t i) { x(i) -= dt * (free(i) + guidance * (captioned(i) - free(i))); });
}

} // namespace

template <class T>
void sample(Execution const& exec, Model<T>& model, Parameters<T>& parameters, Input<T> const& captions,
            SamplingOptions const& options, Batch<T> const& latents) {
  auto const b = std::int64_t(latents.extent(0));
  if (options.steps < 1) throw Error("sampling: {} steps, expected at least 1", options.steps);
  if (2 * b > model.capacity())
    throw Error("sampling: {} images need a model of capacity {}, but it has {}", b, 2 * b, model.capacity());
  auto const both = doubled(exec, model.config(), captions, b);
  auto const velocity =
      uninitialised<Batch<T>>("prowl::dit::sample::velocity", 2 * b, latents.extent(1), latents.extent(2));
  double const dt = 1.0 / options.steps;
  for (int step = 0; step < options.steps; ++step) {
    Kokkos::deep_copy(exec, both.time, T(1.0 - step * dt));
    Kokkos::deep_copy(exec, half(both.latent, 0), flat(latents));
    Kokkos::deep_copy(exec, half(both.latent, 1), flat(latents));
    model.predict(exec, parameters, both, velocity);
    guided_step<T>(exec, T(dt), T(options.guidance), velocity, latents);
  }
  exec.fence(); // the arrays of this function end here
}

template void sample<float>(Execution const&, Model<float>&, Parameters<float>&, Input<float> const&,
                            SamplingOptions const&, Batch<float> const&);
template void sample<double>(Execution const&, Model<double>&, Parameters<double>&, Input<double> const&,
                             SamplingOptions const&, Batch<double> const&);

} // namespace prowl::dit
