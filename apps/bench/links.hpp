/// What communication costs: between the ranks, and the computation beside it.
#pragma once

#include <bench/measure.hpp>

#include <prowl/plan/hardware.hpp>

#include <cstdint>
#include <span>

namespace prowl::bench {

/// Collective: the median time of one call, of the slowest rank. `payload` is the whole array's bytes.
double collective_seconds(Communicator const& world, Execution const& exec, Collective kind,
                          std::int64_t payload, int samples);

struct CollectiveTime {
  Collective kind;
  std::int64_t payload; ///< bytes of the whole array
  double seconds;
};

/// The link for which stages * latency + logical_bytes / bandwidth is nearest to the times, by least squares of relative
/// errors. Stages of an all-gather among p ranks: ceil(log2 p), of an all-reduce twice as many. For two ranks or more.
Link fit_link(int ranks, std::span<CollectiveTime const> times);

/// Seconds by that formula.
double link_seconds(Link const& link, int ranks, Collective kind, std::int64_t payload);

/// Collective: seconds by which NS5 of rows x columns on every rank takes longer for each second that the gather beside it
/// takes alone, in [0, 1]. So it fits times of communication that come from the links.
double overlap_slowdown(Communicator const& world, Execution const& exec, std::int64_t rows,
                        std::int64_t columns, std::int64_t payload, int samples);

} // namespace prowl::bench
