#include <prowl/kernels/adamw.hpp>

#include <prowl/core/math.hpp>
#include <prowl/kernels/detail/elementwise.hpp>

#include <cmath>

namespace prowl {

void adamw(Execution const& exec, AdamW const& options, std::int64_t step, Vector<float const> const& g,
           Vector<float> const& m, Vector<float> const& v, Vector<float> const& w) {
  if (step < 1) throw Error("adamw: step is {}, expected 1 or more", step);
  detail::require_size("adamw", "m", m.size(), g.size());
  detail::require_size("adamw", "v", v.size(), g.size());
  detail::require_size("adamw", "w", w.size(), g.size());
  auto const gradient = g.data();
  auto const first = m.data();
  auto const second = v.data();
  auto const weight = w.data();
  float const beta1 = float(options.beta1), rest1 = float(1 - options.beta1);
  float const beta2 = float(options.beta2), rest2 = float(1 - options.beta2);
  float const keep = float(1 - options.rate * options.decay), epsilon = float(options.epsilon);
  constexpr float limit = adamw_largest_gradient;
  float const length = float(options.rate / (1 - std::pow(options.beta1, double(step))));
  float const correction = float(1 / std::sqrt(1 - std::pow(options.beta2, double(step))));
  detail::elementwise(
      "prowl::adamw", exec, g.size(), KOKKOS_LAMBDA(std::int64_t i) {
        float const given = gradient[i];
        float const gi = given > limit ? limit : given < -limit ? -limit : given; // a NaN stays one
        float const mi = beta1 * first[i] + rest1 * gi;
        float const vi = beta2 * second[i] + rest2 * gi * gi;
        first[i] = mi;
        second[i] = vi;
        weight[i] = keep * weight[i] - length * mi / (math::sqrt(vi) * correction + epsilon);
      });
}

} // namespace prowl
