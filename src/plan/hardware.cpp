#include <prowl/plan/hardware.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/deck.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <set>

namespace prowl {

namespace {

constexpr double most_devices = 1 << 20;

void declare_link(Deck& deck, std::string const& key, Link& link, std::string const& where) {
  deck.option(key + ".latency_us", link.latency_us, "microseconds of one stage of a collective, " + where,
              at_least(0));
  deck.option(key + ".bandwidth_gbs", link.bandwidth_gbs,
              "1e9 bytes a second that a device sends while it receives as many, " + where, above(0));
}

void declare_stream(DeckSchema& schema, StreamRate& row) {
  schema.option("mib", row.mib, "MiB of all arrays that are passed through in turn", above(0));
  schema.option("gbs", row.gbs, "1e9 bytes a second, reads and writes together", above(0));
}

void declare_product(DeckSchema& schema, ProductRate& row) {
  schema.option("operation", row.operation,
                "a product of two matrices, or of one with its transpose (as fast where it has no rows)",
                one_of({"gemm", "syrk"}));
  schema.option("type", row.type, "of the operands", one_of({"float32", "bfloat16"}));
  schema.option("narrow", row.narrow, "smallest of m, n and k", at_least(1));
  schema.option("wide", row.wide, "largest of m, n and k", at_least(1));
  schema.option("gflops", row.gflops, "1e9 flop a second, counted as 2 m n k", above(0));
}

void declare(Deck& deck, Hardware& h) {
  deck.option("name", h.name, "what the file describes", not_empty());
  deck.option("node.devices", h.devices, "devices of a node; a rank has one to itself as far as they go",
              between(1, most_devices));
  deck.option("node.max_nodes", h.max_nodes, "nodes that there are; 0: no limit", between(0, most_devices));
  deck.option("node.host", h.host, "ranks are processes on a host and share its memory with their program");
  deck.option("node.shared_product", h.shared_product,
              "speed of products with all devices at work, relative to one alone", above(0));
  deck.option("node.shared_stream", h.shared_stream,
              "speed of passes through memory with all devices at work, relative to one alone", above(0));
  deck.option("memory.capacity_gib", h.capacity_gib, "GiB of a device", between(0, 1 << 20));
  deck.option("memory.reserved_gib", h.reserved_gib, "GiB of it that a program takes before it has any array",
              between(0, 1 << 20));
  deck.option("kernel.latency_us", h.kernel_us, "microseconds of a kernel beside its work", at_least(0));
  deck.option("overlap.slowdown", h.overlap_slowdown,
              "seconds of computation lost to a second of communication beside it", between(0, 1));
  declare_link(deck, "intra", h.intra, "within a node");
  declare_link(deck, "inter", h.inter, "between nodes");
  deck.tables<StreamRate>("stream", h.streams,
                          "speed of passes through memory by size; between rows: by logarithm",
                          declare_stream);
  deck.tables<ProductRate>(
      "product", h.products,
      "speed of matrix products by shape, of one device alone; between rows: by logarithms", declare_product);
}

/// What the deck's own checks leave: keys that a file must have.
void check(std::string const& path, Hardware const& h) {
  auto const require = [&](bool given, char const* key, char const* expected) {
    if (!given) throw Error("{}: {}: missing, expected {}", path, key, expected);
  };
  require(!h.name.empty(), "name", "a name");
  require(h.capacity_gib > 0, "memory.capacity_gib", "a number above 0");
  require(h.intra.bandwidth_gbs > 0, "intra.bandwidth_gbs", "a number above 0");
  require(h.inter.bandwidth_gbs > 0, "inter.bandwidth_gbs", "a number above 0");
  require(!h.streams.empty(), "stream", "at least one [[stream]] table");
  require(std::ranges::any_of(h.products,
                              [&](auto const& p) { return p.operation == "gemm" && p.type == "float32"; }),
          "product", "a [[product]] table with operation \"gemm\" and type \"float32\"");
  if (h.reserved_gib >= h.capacity_gib)
    throw Error("{}: memory.reserved_gib: {}, expected less than memory.capacity_gib, {}", path,
                h.reserved_gib, h.capacity_gib);
  for (auto const& p : h.products)
    if (p.narrow > p.wide)
      throw Error("{}: product: narrow {} above wide {}, expected at most as large", path, p.narrow, p.wide);
}

/// The hardware files beside one that is not there.
std::string others(std::filesystem::path const& path) {
  auto const folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::set<std::string> names;
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".toml") names.insert(entry.path().string());
  while (names.size() > 8) names.erase(std::prev(names.end()));
  return names.empty() ? "a TOML file as prowl-bench calibrate writes"
                       : fmt::format("one of {}", fmt::join(names, ", "));
}

} // namespace

int stages(int ranks) { return ranks > 1 ? int(std::bit_width(unsigned(ranks - 1))) : 0; }

double collective_seconds(Link const& link, Collective kind, int ranks, std::int64_t bytes) {
  double const passes = kind == Collective::all_reduce ? 2 : 1;
  return passes * stages(ranks) * link.latency_us * 1e-6 +
         logical_bytes(kind, ranks, bytes) / (link.bandwidth_gbs * 1e9);
}

Hardware read_hardware(std::string const& path) {
  if (!std::filesystem::exists(path))
    throw Error("hardware {}: no such file, expected {}", path, others(path));
  if (std::filesystem::is_directory(path))
    throw Error("hardware {}: is a folder, expected {}", path, others(path));
  Hardware hardware;
  Deck deck;
  declare(deck, hardware);
  deck.read_file(path);
  check(path, hardware);
  return hardware;
}

std::string hardware_toml(Hardware const& hardware) {
  auto copy = hardware;
  Deck deck;
  declare(deck, copy);
  return deck.resolved();
}

} // namespace prowl
