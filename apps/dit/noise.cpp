#include <dit/noise.hpp>

#include <dit/detail/rows.hpp>

#include <prowl/core/random.hpp>

namespace prowl::dit {

namespace {

// Streams of samples lie apart from those that other users of the same seed number from 0.
constexpr std::uint64_t training_streams = std::uint64_t{1} << 62, sampling_streams = std::uint64_t{3} << 62;
// Indices within a sample's stream.
constexpr std::uint64_t time_index = 0, drop_index = 1, noise_index = 16;

/// Zeros the rows of the samples that lose their caption; a sample is `size` elements.
template <class T>
void drop_rows(Execution const& exec, std::uint64_t seed, std::uint64_t first, double probability, T* data,
               std::int64_t samples, std::int64_t size) {
  Kokkos::parallel_for(
      "prowl::dit::drop_captions", detail::rows(exec, samples), KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank();
        Random const random(seed, training_streams + first + std::uint64_t(sample));
        if (random.uniform(drop_index) >= probability) return;
        detail::each(team, int(size), [&](int j) { data[sample * size + j] = T(0); });
      });
}

} // namespace

template <class T>
void make_noisy(Execution const& exec, std::uint64_t seed, std::uint64_t first, Batch<T const> const& clean,
                Vector<T> const& time, Batch<T> const& noisy, Batch<T> const& velocity) {
  auto const x = clean.data();
  auto const xt = noisy.data(), v = velocity.data();
  int const size = int(clean.extent(1) * clean.extent(2));
  Kokkos::parallel_for(
      "prowl::dit::make_noisy", detail::rows(exec, std::int64_t(clean.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank();
        Random const random(seed, training_streams + first + std::uint64_t(sample));
        T const t = T(1.0 / (1.0 + math::exp(-random.normal(time_index))));
        if (team.team_rank() == 0) time(sample) = t;
        detail::each(team, size, [&](int j) {
          std::int64_t const at = sample * size + j;
          T const e = T(random.normal(noise_index + std::uint64_t(j)));
          xt[at] = (T(1) - t) * x[at] + t * e;
          v[at] = e - x[at];
        });
      });
}

template <class T>
void drop_captions(Execution const& exec, std::uint64_t seed, std::uint64_t first, double probability,
                   Input<T> const& input) {
  for (auto const& text : input.text)
    drop_rows<T>(exec, seed, first, probability, text.data(), std::int64_t(text.extent(0)),
                 std::int64_t(text.extent(1) * text.extent(2)));
  drop_rows<T>(exec, seed, first, probability, input.pooled.data(), std::int64_t(input.pooled.extent(0)),
               std::int64_t(input.pooled.extent(1)));
}

template <class T>
void fill_normal(Execution const& exec, std::uint64_t seed, std::uint64_t first, Batch<T> const& latents) {
  auto const x = latents.data();
  int const size = int(latents.extent(1) * latents.extent(2));
  Kokkos::parallel_for(
      "prowl::dit::fill_normal", detail::rows(exec, std::int64_t(latents.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank();
        Random const random(seed, sampling_streams + first + std::uint64_t(sample));
        detail::each(team, size,
                     [&](int j) { x[sample * size + j] = T(random.normal(noise_index + std::uint64_t(j))); });
      });
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void make_noisy<T>(Execution const&, std::uint64_t, std::uint64_t, Batch<T const> const&,         \
                              Vector<T> const&, Batch<T> const&, Batch<T> const&);                           \
  template void drop_captions<T>(Execution const&, std::uint64_t, std::uint64_t, double, Input<T> const&);   \
  template void fill_normal<T>(Execution const&, std::uint64_t, std::uint64_t, Batch<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
