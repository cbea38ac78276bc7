/// Mathematical functions for device code. Kokkos has its own since 3.7; before, the standard's are what its
/// backends map.
#pragma once

#include <Kokkos_Core.hpp>

#include <cmath>

namespace prowl::math {

#if KOKKOS_VERSION >= 30700
using Kokkos::cos;
using Kokkos::exp;
using Kokkos::fabs;
using Kokkos::isfinite;
using Kokkos::log;
using Kokkos::pow;
using Kokkos::sin;
using Kokkos::sqrt;
using Kokkos::tanh;
#else
using std::cos;
using std::exp;
using std::fabs;
using std::isfinite;
using std::log;
using std::pow;
using std::sin;
using std::sqrt;
using std::tanh;
#endif

} // namespace prowl::math
