#include <dit/loss.hpp>

#include <dit/detail/rows.hpp>

namespace prowl::dit {

namespace {

/// kernel(latent position, patch position) for every element.
template <class F>
void each_element(Execution const& exec, char const* name, PatchShape shape, std::int64_t rows,
                  F const& kernel) {
  int const tokens = shape.grid() * shape.grid();
  Kokkos::parallel_for(
      name, detail::rows(exec, rows), KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const row = team.league_rank();
        auto const latent = row / tokens * shape.latent_size();
        int const token = int(row % tokens), size = shape.size();
        detail::each(team, size, [&](int j) { kernel(latent + shape.position(token, j), row * size + j); });
      });
}

template <class T>
struct Patchify {
  T const* latents;
  T* patches;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t l, std::int64_t p) const {
    patches[p] = latents[l];
  }
};

template <class T>
struct Unpatchify {
  T const* patches;
  T* latents;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t l, std::int64_t p) const {
    latents[l] = patches[p];
  }
};

template <class T>
struct ErrorGradient {
  T const* target;
  T* prediction;
  T factor;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t l, std::int64_t p) const {
    prediction[p] = factor * (prediction[p] - target[l]);
  }
};

} // namespace

template <class T>
void patchify(Execution const& exec, PatchShape shape, Batch<T const> const& latents,
              Matrix<T> const& patches) {
  each_element(exec, "prowl::dit::patchify", shape, std::int64_t(patches.extent(0)),
               Patchify<T>{latents.data(), patches.data()});
}

template <class T>
void unpatchify(Execution const& exec, PatchShape shape, Matrix<T const> const& patches,
                Batch<T> const& latents) {
  each_element(exec, "prowl::dit::unpatchify", shape, std::int64_t(patches.extent(0)),
               Unpatchify<T>{patches.data(), latents.data()});
}

template <class T>
double squared_error(Execution const& exec, PatchShape shape, Matrix<T const> const& prediction,
                     Batch<T const> const& target, Vector<double> const& partials) {
  int const tokens = shape.grid() * shape.grid();
  auto const rows = std::int64_t(prediction.extent(0));
  auto const predicted = prediction.data(), wanted = target.data();
  Kokkos::parallel_for(
      "prowl::dit::squared_error_rows", detail::rows(exec, rows), KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const row = team.league_rank();
        auto const latent = wanted + row / tokens * shape.latent_size();
        int const token = int(row % tokens), size = shape.size();
        double const sum = detail::sum<double>(team, size, [&](int j) {
          double const difference =
              double(predicted[row * size + j]) - double(latent[shape.position(token, j)]);
          return difference * difference;
        });
        if (team.team_rank() == 0) partials(row) = sum;
      });
  double total = 0;
  Kokkos::parallel_reduce(
      "prowl::dit::squared_error", Kokkos::RangePolicy<Execution>(exec, 0, rows),
      KOKKOS_LAMBDA(std::int64_t i, double& part) { part += partials(i); }, total);
  return total / double(shape.latent_size());
}

template <class T>
void squared_error_backward(Execution const& exec, PatchShape shape, double scale,
                            Batch<T const> const& target, Matrix<T> const& prediction) {
  T const factor = T(2.0 * scale / double(shape.latent_size()));
  each_element(exec, "prowl::dit::squared_error_backward", shape, std::int64_t(prediction.extent(0)),
               ErrorGradient<T>{target.data(), prediction.data(), factor});
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void patchify<T>(Execution const&, PatchShape, Batch<T const> const&, Matrix<T> const&);          \
  template void unpatchify<T>(Execution const&, PatchShape, Matrix<T const> const&, Batch<T> const&);        \
  template double squared_error<T>(Execution const&, PatchShape, Matrix<T const> const&,                     \
                                   Batch<T const> const&, Vector<double> const&);                            \
  template void squared_error_backward<T>(Execution const&, PatchShape, double, Batch<T const> const&,       \
                                          Matrix<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
