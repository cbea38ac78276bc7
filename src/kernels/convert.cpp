#include <prowl/kernels/convert.hpp>

#include <prowl/core/math.hpp>
#include <prowl/kernels/detail/elementwise.hpp>

namespace prowl {

void to_bfloat16(Execution const& exec, Vector<float const> const& source, Vector<bfloat16> const& target) {
  detail::require_size("to_bfloat16", "target", target.size(), source.size());
  auto const from = source.data();
  auto const to = target.data();
  detail::elementwise(
      "prowl::to_bfloat16", exec, source.size(), KOKKOS_LAMBDA(std::int64_t i) {
        auto const rounded = bfloat16::from_float(from[i]);
        bool const overflows = (rounded.bits & 0x7FFF) == 0x7F80 && math::isfinite(from[i]);
        to[i] = overflows ? bfloat16{std::uint16_t(rounded.bits - 1)} : rounded;
      });
}

} // namespace prowl
