#include <prowl/linalg/detail/complement.hpp>

namespace prowl::detail {

template <class T>
void mirror_upper(Execution const& exec, Matrix<T> const& c) {
  // A tile a work item on the host, where a column of elements would touch a cache line for each; an element
  // on a device.
  constexpr std::int64_t tile = host_accessible ? 32 : 1;
  auto const n = std::int64_t(c.extent(0)), tiles = (n + tile - 1) / tile;
  auto const data = c.data();
  Kokkos::parallel_for(
      "prowl::mirror_upper", Kokkos::RangePolicy<Execution>(exec, 0, tiles * tiles),
      KOKKOS_LAMBDA(std::int64_t t) {
        auto const top = t / tiles * tile, left = t % tiles * tile;
        if (left > top) return;
        auto const bottom = top + tile < n ? top + tile : n, right = left + tile < n ? left + tile : n;
        for (auto i = top; i < bottom; ++i)
          for (auto j = left; j < (right < i ? right : i); ++j) data[i * n + j] = data[j * n + i];
      });
}

template <class T>
void scale_matrix(Execution const& exec, T beta, Matrix<T> const& c) {
  auto const data = c.data();
  Kokkos::parallel_for(
      "prowl::scale_matrix", Kokkos::RangePolicy<Execution>(exec, 0, std::int64_t(c.size())),
      KOKKOS_LAMBDA(std::int64_t i) { data[i] = beta == T(0) ? T(0) : beta * data[i]; });
}

template void mirror_upper<float>(Execution const&, Matrix<float> const&);
template void mirror_upper<double>(Execution const&, Matrix<double> const&);
template void scale_matrix<float>(Execution const&, float, Matrix<float> const&);
template void scale_matrix<double>(Execution const&, double, Matrix<double> const&);

} // namespace prowl::detail
