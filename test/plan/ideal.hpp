/// A machine whose times are known in closed form: products at one rate, everything else but links for nothing.
#pragma once

#include <prowl/plan/machine.hpp>

namespace prowl::test {

constexpr double flop_rate = 1e12, bandwidth = 5e9;

inline Hardware ideal_hardware() {
  Hardware h;
  h.name = "ideal";
  h.devices = 1 << 20;
  h.capacity_gib = 1;
  h.streams = {{1, 1e30}};
  h.products = {{"gemm", "float32", 1, 1, flop_rate * 1e-9}, {"syrk", "float32", 1, 1, flop_rate * 1e-9}};
  h.intra = h.inter = {0, bandwidth * 1e-9};
  return h;
}

} // namespace prowl::test
