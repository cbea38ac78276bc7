/// What the spans of a trace say about gathers under Newton-Schulz.
#pragma once

#include <prowl/comm/communicator.hpp>

#include <cstdint>
#include <string>

namespace prowl::bench {

struct Overlap {
  double gather = 0;    ///< seconds in which a gather of the optimizer was under way, summed over gathers
  double under_ns5 = 0; ///< of these, while this rank was inside NS5
  double ns5 = 0;       ///< seconds inside NS5
  std::int64_t gathers = 0;
  std::int64_t ended_under_ns5 = 0; ///< gathers whose data arrived while this rank was inside an NS5
};

/// From the recorded spans; summed over the ranks. Collective.
Overlap measure_overlap(Communicator const& world);

/// Writes the spans of all ranks to one file in Chrome's trace format, on rank 0. Collective; a file that
/// cannot be written throws Error on every rank.
void write_trace(Communicator const& world, std::string const& path);

} // namespace prowl::bench
