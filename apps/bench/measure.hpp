/// What the measurements share: medians, arrays to compute on, timed calls.
#pragma once

#include <prowl/comm/communicator.hpp>
#include <prowl/core/trace.hpp>

#include <algorithm>
#include <vector>

namespace prowl::bench {

/// Of at least one value.
double median(std::vector<double> values);

/// Normal numbers with deviation 1.
Vector<float> random_vector(std::int64_t size, std::uint64_t stream);
Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns);

/// How long one measurement goes on.
struct Effort {
  double seconds; ///< aimed at
  int samples;    ///< whose median counts; at least 3 where calls take longer
};

/// The time from calling `body` to the end of its kernels.
template <class Body>
double seconds_of(Execution const& exec, Body const& body) {
  double const begin = trace::now();
  body();
  exec.fence(); // the kernels belong to the time
  return trace::now() - begin;
}

/// Seconds of one call of `body` among many that follow each other.
template <class Body>
double seconds_a_call(Execution const& exec, Effort const& effort, Body const& body) {
  seconds_of(exec, body); // the first touch of its memory
  double const once = seconds_of(exec, body), begin = trace::now();
  int const calls = std::clamp(int(effort.seconds / effort.samples / std::max(once, 1e-7)), 1, 1 << 20);
  std::vector<double> samples;
  do
    samples.push_back(seconds_of(exec,
                                 [&] {
                                   for (int i = 0; i < calls; ++i) body();
                                 }) /
                      calls);
  while (samples.size() < 3 ||
         (int(samples.size()) < effort.samples && trace::now() - begin < 2 * effort.seconds));
  return median(samples);
}

/// Collective: a barrier in which ranks sleep, where MPI's own would keep their cores busy. No other collective may be
/// under way.
void sleep_until_all(Communicator const& world);

/// Collective: `work` on rank 0, while the others sleep.
template <class Work>
void alone(Communicator const& world, Work const& work) {
  if (world.rank() == 0) work();
  sleep_until_all(world);
}

/// Collective: `work` on all ranks at once; the seconds of the slowest.
template <class Work>
double seconds_together(Communicator const& world, Execution const& exec, Work const& work) {
  world.barrier();
  return world.max(seconds_of(exec, work));
}

} // namespace prowl::bench
