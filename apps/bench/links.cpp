#include <bench/links.hpp>

#include <prowl/kernels/newton_schulz.hpp>

#include <cmath>

namespace prowl::bench {

namespace {

int passes(Collective kind) { return kind == Collective::all_reduce ? 2 : 1; }

} // namespace

double measure_collective(Communicator const& world, Execution const& exec, Collective kind,
                          std::int64_t payload, int samples) {
  auto const part = payload / std::int64_t(sizeof(float)) / world.size();
  auto const whole = Vector<float>("whole", part * world.size()), sent = Vector<float>("part", part);
  std::vector<double> seconds;
  for (int i = -1; i < samples; ++i) { // the first touches the memory
    double const time = seconds_together(world, exec, [&] {
      auto request = kind == Collective::all_reduce ? world.all_reduce(exec, whole, Purpose::other)
                                                    : world.all_gather(exec, sent, whole, Purpose::other);
      request.wait();
    });
    if (i >= 0) seconds.push_back(time);
  }
  return median(seconds);
}

Link fit_link(int ranks, std::span<CollectiveTime const> times) {
  // Least squares of a latency + b inverse - 1, with a and b the stages and bytes of a second measured.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (auto const& t : times) {
    double const a = passes(t.kind) * stages(ranks) / t.seconds;
    double const b = logical_bytes(t.kind, ranks, t.payload) / t.seconds;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  double const determinant = aa * bb - ab * ab;
  double latency = (a1 * bb - b1 * ab) / determinant, inverse = (b1 * aa - a1 * ab) / determinant;
  if (!(latency >= 0)) latency = 0, inverse = b1 / bb;
  // Times that do not grow with the bytes: the bandwidth without latency, a lower bound.
  if (!(inverse > 0)) latency = a1 / aa, inverse = b1 / bb;
  return {latency * 1e6, 1e-9 / inverse};
}

double overlap_slowdown(Communicator const& world, Execution const& exec, std::int64_t rows,
                        std::int64_t columns, std::int64_t payload, int samples) {
  auto const x = random_matrix(rows, columns);
  auto const workspace = uninitialised<Vector<float>>("workspace", newton_schulz_workspace(rows, columns));
  auto const part = payload / std::int64_t(sizeof(float)) / world.size();
  auto const sent = Vector<float>("part", part), whole = Vector<float>("whole", part * world.size());
  double const gather = measure_collective(world, exec, Collective::all_gather, payload, samples);

  newton_schulz(exec, x, workspace); // the first touch of its memory
  double const once = seconds_together(world, exec, [&] { newton_schulz(exec, x, workspace); });
  // So much computation that the gather ends beside it, with its pauses.
  int const calls = std::clamp(int(std::ceil(3 * gather / once)), 1, 100);
  auto const compute = [&] {
    for (int i = 0; i < calls; ++i) newton_schulz(exec, x, workspace);
  };
  std::vector<double> lost;
  for (int i = 0; i < samples; ++i) {
    double const without = seconds_together(world, exec, compute);
    world.barrier();
    auto request = world.all_gather(exec, sent, whole, Purpose::other);
    double const with = seconds_of(exec, compute);
    request.wait();
    lost.push_back(world.max(with) - without);
  }
  return std::clamp(median(lost) / gather, 0.0, 1.0);
}

} // namespace prowl::bench
