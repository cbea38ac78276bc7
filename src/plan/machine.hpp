/// How long kernels, products and collectives take on one rank of a mesh, while the other ranks do the same.
#pragma once

#include <prowl/comm/ledger.hpp>
#include <prowl/comm/mesh_place.hpp>
#include <prowl/plan/hardware.hpp>

#include <string>

namespace prowl {

/// A product m x n x k: "gemm", or "syrk" where m x m comes from m x k (then n = m).
struct Product {
  std::string operation;
  std::int64_t m, n, k;
  std::int64_t count = 1; ///< kernels
  std::int64_t batch = 1; ///< products of each
  double flop() const { return 2 * double(m) * double(n) * double(k) * double(count * batch); }
};

class Machine {
public:
  /// `type`: of the operands of products, "float32" or "bfloat16". Throws Error where the hardware has no such rates, or less
  /// nodes than the mesh needs; processes of a host share its devices instead.
  Machine(Hardware hardware, MeshPlace const& mesh, std::string type = "float32");

  Hardware const& hardware() const { return hardware_; }
  MeshPlace const& mesh() const { return mesh_; }
  int nodes() const { return nodes_; }
  /// Ranks that take turns on a device, as if all had as much to do.
  double turns() const { return turns_; }

  /// All times are seconds.
  double product(Product const& product) const;
  /// Kernels that pass through `bytes` in all, in a program part that passes through `working_set` in turn.
  double stream(double bytes, double working_set, double kernels = 1) const;
  /// NS5 of a rows x columns matrix, kernel by kernel.
  double newton_schulz(std::int64_t rows, std::int64_t columns) const;
  /// A collective whose gathered, reduced or broadcast array has `bytes`, as collective_seconds. Over nodes: stages within a node,
  /// then between them; at most the bandwidth of all of the group's devices in the node with fewest of them, since a ring enters
  /// and leaves each node once (Patarasuk and Yuan, 2009).
  double collective(Collective kind, Axis axis, std::int64_t bytes) const;
  /// The links that a group's collectives use: 0 within a node, 1 between nodes. Those of one kind follow each other.
  int channel(Axis axis) const;

private:
  int per_node(Axis axis) const;
  double speed(double shared) const;

  Hardware hardware_;
  MeshPlace mesh_;
  std::string type_;
  int nodes_ = 1, ranks_per_node_ = 1;
  double turns_ = 1;
};

} // namespace prowl
