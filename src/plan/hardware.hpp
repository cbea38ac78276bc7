/// What a cluster can do, as a file in inputs/hardware/ says: the numbers that times are computed from.
///
/// Links follow the alpha-beta model: see collective_seconds.
#pragma once

#include <prowl/comm/ledger.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace prowl {

/// Speed of one kind of product, as one device does it while the others of its node rest. Flop count 2 m n k, for a symmetric
/// product too.
struct ProductRate {
  std::string operation; ///< "gemm" or "syrk"; without rows for syrk it is as fast as gemm
  std::string type;      ///< "float32" or "bfloat16": of the operands
  std::int64_t narrow;   ///< the smallest of m, n, k
  std::int64_t wide;     ///< the largest of them
  double gflops;
};

/// Speed at which kernels pass through memory, reads and writes together.
struct StreamRate {
  double mib; ///< of all arrays that are passed through in turn
  double gbs; ///< 1e9 bytes a second
};

struct Link {
  double latency_us;    ///< of one stage of a collective
  double bandwidth_gbs; ///< 1e9 bytes a second that a device sends while it receives as many
};

struct Hardware {
  std::string name;
  bool host = false;          ///< ranks are processes on a host, whose memory a rank's program takes part of
  std::int64_t devices = 1;   ///< of a node: ranks that do not share one
  std::int64_t max_nodes = 0; ///< 0: no limit
  double capacity_gib = 0;    ///< memory of a device
  double reserved_gib =
      0; ///< of it, what a program takes before it has any array: libraries, drivers, communication
  double kernel_us = 0;      ///< from one kernel to the next, beside its work
  double shared_product = 1; ///< speed of products with all devices of a node at work, relative to one alone
  double shared_stream = 1;  ///< speed of passes through memory, likewise
  double overlap_slowdown = 0; ///< seconds of computation lost to a second of communication beside it, 0 to 1
  std::vector<StreamRate> streams;
  std::vector<ProductRate> products;
  Link intra{0, 0}; ///< within a node
  Link inter{0, 0}; ///< between nodes, of one device
};

/// Seconds of a collective of `ranks` ranks on one link, `bytes` in its gathered, reduced or broadcast array: a latency for each
/// of the ceil(log2 ranks) stages, logical_bytes over the bandwidth; an all-reduce has the stages twice.
double collective_seconds(Link const& link, Collective kind, int ranks, std::int64_t bytes);
/// ceil(log2 ranks).
int stages(int ranks);

/// Reads a TOML file. Throws Error naming file, key, value and what was expected; a file that is not there names those that are
/// beside it.
Hardware read_hardware(std::string const& path);

/// The same in TOML, every key with its meaning.
std::string hardware_toml(Hardware const& hardware);

} // namespace prowl
