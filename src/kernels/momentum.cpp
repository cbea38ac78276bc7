#include <prowl/kernels/momentum.hpp>

#include <prowl/kernels/detail/elementwise.hpp>

namespace prowl {

void momentum(Execution const& exec, float mu, Vector<float const> const& g, Vector<float> const& m) {
  detail::require_size("momentum", "m", m.size(), g.size());
  auto const gradient = g.data();
  auto const mean = m.data();
  float const rest = 1 - mu;
  detail::elementwise(
      "prowl::momentum", exec, g.size(),
      KOKKOS_LAMBDA(std::int64_t i) { mean[i] = mu * mean[i] + rest * gradient[i]; });
}

void nesterov(Execution const& exec, float mu, Vector<float const> const& g, Vector<float const> const& m,
              Vector<float> const& u) {
  detail::require_size("nesterov", "m", m.size(), g.size());
  detail::require_size("nesterov", "u", u.size(), g.size());
  auto const gradient = g.data();
  auto const mean = m.data();
  auto const result = u.data();
  float const rest = 1 - mu;
  detail::elementwise(
      "prowl::nesterov", exec, g.size(),
      KOKKOS_LAMBDA(std::int64_t i) { result[i] = rest * gradient[i] + mu * mean[i]; });
}

} // namespace prowl
