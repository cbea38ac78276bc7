#include <prowl/kernels/update.hpp>

#include <prowl/kernels/detail/elementwise.hpp>

namespace prowl {

void decayed_update(Execution const& exec, float rate, float decay, float scale, Vector<float const> const& d,
                    Vector<float> const& w) {
  detail::require_size("decayed_update", "w", w.size(), d.size());
  auto const direction = d.data();
  auto const weight = w.data();
  float const keep = float(1 - double(rate) * decay), length = float(double(rate) * scale);
  detail::elementwise(
      "prowl::decayed_update", exec, d.size(),
      KOKKOS_LAMBDA(std::int64_t i) { weight[i] = keep * weight[i] - length * direction[i]; });
}

void add(Execution const& exec, Vector<float const> const& d, Vector<float> const& x) {
  detail::require_size("add", "x", x.size(), d.size());
  auto const from = d.data();
  auto const to = x.data();
  detail::elementwise(
      "prowl::add", exec, d.size(), KOKKOS_LAMBDA(std::int64_t i) { to[i] += from[i]; });
}

} // namespace prowl
