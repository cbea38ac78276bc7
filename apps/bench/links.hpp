/// What communication costs: between the ranks, and the computation beside it.
#pragma once

#include <bench/measure.hpp>

#include <prowl/plan/hardware.hpp>

#include <cstdint>
#include <span>

namespace prowl::bench {

/// Collective: the median time of one call, of the slowest rank. `payload` is the whole array's bytes.
double measure_collective(Communicator const& world, Execution const& exec, Collective kind,
                          std::int64_t payload, int samples);

struct CollectiveTime {
  Collective kind;
  std::int64_t payload; ///< bytes of the whole array
  double seconds;
};

/// The link whose collective_seconds are nearest to the times, by least squares of relative errors. For two ranks or more.
Link fit_link(int ranks, std::span<CollectiveTime const> times);

/// Collective: seconds by which NS5 of rows x columns on every rank takes longer for each second that the gather beside it
/// takes alone, in [0, 1]. So it fits times of communication that come from the links.
double overlap_slowdown(Communicator const& world, Execution const& exec, std::int64_t rows,
                        std::int64_t columns, std::int64_t payload, int samples);

} // namespace prowl::bench
