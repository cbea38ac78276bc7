/// The node at hand, measured through Prowl's own kernels and collectives.
#pragma once

#include <string>

namespace prowl::bench {

struct Calibration {
  std::string output;
  std::string name;        ///< empty: the processor's model
  double capacity_gib = 0; ///< of a device; 0: the host's memory, shared evenly by the ranks
  bool quick = false;      ///< small sizes, few repetitions
};

/// Collective, with a rank for each device of one node. Prints what it measures on rank 0, and writes a Hardware as TOML.
/// Throws Error, before it measures, where the file cannot be written.
void run_calibration(Calibration const& options);

} // namespace prowl::bench
