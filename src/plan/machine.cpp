#include <prowl/plan/machine.hpp>

#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace prowl {

namespace {

using Points = std::vector<std::pair<double, double>>; // (x, value), by x

/// Between points by the logarithm of x; beyond them the nearest.
double interpolate(Points const& points, double x) {
  auto const after = std::ranges::lower_bound(points, x, {}, [](auto const& point) { return point.first; });
  if (after == points.begin()) return after->second;
  if (after == points.end()) return points.back().second;
  auto const before = std::prev(after);
  double const part = std::log(x / before->first) / std::log(after->first / before->first);
  return before->second + part * (after->second - before->second);
}

/// At the narrowest extents that have rates by aspect, then between them.
double product_rate(std::vector<ProductRate> const& rates, std::string const& operation,
                    std::string const& type, double narrow, double wide) {
  std::map<std::int64_t, Points> by_aspect; // by narrow extent
  for (auto const& rate : rates)
    if (rate.operation == operation && rate.type == type)
      by_aspect[rate.narrow].push_back({double(rate.wide) / double(rate.narrow), rate.gflops});
  Points by_narrow;
  for (auto& [extent, points] : by_aspect) {
    std::ranges::sort(points);
    by_narrow.push_back({double(extent), interpolate(points, wide / narrow)});
  }
  return interpolate(by_narrow, narrow);
}

bool has_rates(Hardware const& hardware, std::string const& operation, std::string const& type) {
  return std::ranges::any_of(
      hardware.products, [&](auto const& rate) { return rate.operation == operation && rate.type == type; });
}

} // namespace

Machine::Machine(Hardware hardware, MeshPlace const& mesh, std::string type)
    : hardware_(std::move(hardware)), mesh_(mesh), type_(std::move(type)) {
  if (!has_rates(hardware_, "gemm", type_))
    throw Error("hardware {}: no [[product]] with operation \"gemm\" and type \"{}\"", hardware_.name, type_);
  std::ranges::sort(hardware_.streams, {}, &StreamRate::mib);
  int const ranks = size(mesh, Axis::world), devices = int(hardware_.devices);
  ranks_per_node_ = std::min(ranks, devices);
  nodes_ = (ranks + devices - 1) / devices;
  if (hardware_.max_nodes == 0 || nodes_ <= hardware_.max_nodes) return;
  auto const most = hardware_.max_nodes * hardware_.devices;
  if (!hardware_.host)
    throw Error("{} ranks need {} nodes of {} devices, but {} has {}: at most {} ranks fit", ranks, nodes_,
                devices, hardware_.name, hardware_.max_nodes, most);
  nodes_ = int(hardware_.max_nodes);
  ranks_per_node_ = (ranks + nodes_ - 1) / nodes_;
  turns_ = double(ranks_per_node_) / devices;
}

/// Of a rank, relative to one that has its node to itself.
double Machine::speed(double shared) const {
  auto const devices = double(hardware_.devices), active = std::min(devices, double(ranks_per_node_));
  return (devices > 1 ? 1 - (1 - shared) * (active - 1) / (devices - 1) : 1) / turns_;
}

double Machine::product(Product const& p) const {
  if (p.count == 0 || p.m == 0 || p.n == 0 || p.k == 0) return 0;
  auto const [narrow, wide] = std::minmax({p.m, p.n, p.k});
  auto const operation = has_rates(hardware_, p.operation, type_) ? p.operation : "gemm";
  double const rate = product_rate(hardware_.products, operation, type_, double(narrow), double(wide)) *
                      speed(hardware_.shared_product);
  return double(p.count) * hardware_.kernel_us * 1e-6 * turns_ + p.flop() / (rate * 1e9);
}

double Machine::stream(double bytes, double working_set, double kernels) const {
  if (bytes == 0) return 0;
  Points points;
  for (auto const& rate : hardware_.streams) points.push_back({rate.mib, rate.gbs});
  double const rate = interpolate(points, std::max(working_set, 1.0) / mib) * speed(hardware_.shared_stream);
  return kernels * hardware_.kernel_us * 1e-6 * turns_ + bytes / (rate * 1e9);
}

double Machine::newton_schulz(std::int64_t rows, std::int64_t columns) const {
  auto const r = std::min(rows, columns), c = std::max(rows, columns);
  if (r == 0) return 0;
  auto const square = 4.0 * double(r * r), matrix = 4.0 * double(r * c), set = 2 * matrix + 2 * square;
  double const norm = stream(matrix, set) + stream(2 * matrix, set);
  double const iteration = product({"syrk", r, r, c}) + product({"syrk", r, r, r}) +
                           stream(3 * square, set, 2) + product({"gemm", r, c, r});
  return norm + 5 * iteration;
}

int Machine::per_node(Axis axis) const {
  int const stride = axis == Axis::shard       ? mesh_.tensors
                     : axis == Axis::replicate ? mesh_.tensors * mesh_.shards
                                               : 1;
  return std::clamp(ranks_per_node_ / stride, 1, size(mesh_, axis));
}

int Machine::channel(Axis axis) const { return size(mesh_, axis) > per_node(axis) ? 1 : 0; }

double Machine::collective(Collective kind, Axis axis, std::int64_t bytes) const {
  int const ranks = size(mesh_, axis), here = per_node(axis), nodes = (ranks + here - 1) / here;
  if (ranks == 1) return kind == Collective::all_gather ? stream(2 * double(bytes), double(bytes)) : 0;
  if (nodes == 1) return turns_ * collective_seconds(hardware_.intra, kind, ranks, bytes);
  int const fewest = ranks % here == 0 ? here : ranks % here; // of the group in a node
  auto link = hardware_.inter;
  link.bandwidth_gbs *= fewest;
  if (here > 1) link.bandwidth_gbs = std::min(link.bandwidth_gbs, hardware_.intra.bandwidth_gbs);
  link.latency_us = (stages(here) * hardware_.intra.latency_us + stages(nodes) * hardware_.inter.latency_us) /
                    stages(ranks);
  return turns_ * collective_seconds(link, kind, ranks, bytes);
}

} // namespace prowl
