/// Which slot owns which matrix under dedicated ownership (DMuon, arXiv:2606.27153).
#pragma once

#include <prowl/placement/parameter.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace prowl {

/// How owners are chosen. The last two are for comparison.
enum class Assignment {
  balanced,    ///< longest processing time first
  round_robin, ///< in registration order
  first_slot,  ///< all on slot 0
};

/// A matrix to be owned.
struct OwnedMatrix {
  std::size_t parameter; ///< index in the model's registration order
  std::string unit;
  std::int64_t size; ///< elements
  double cost;       ///< of its update, in any unit
};

struct Owners {
  std::vector<int> slots;    ///< of each matrix, in the order given
  std::vector<double> loads; ///< of each slot, the sum of its matrices' costs

  /// Largest load over mean load; 1 where nothing is owned.
  double imbalance() const;
};

/// Matrices of less than `pack_below` elements, next to each other in one unit, are kept together until they
/// have as many. `balanced`: the costliest first, each to the slot with the least load among those with the
/// fewest matrices (or packs) of its unit, so that the counts within a unit differ by at most one; equal ones
/// by registration order and slot number. The result depends on nothing but the arguments. Throws Error for
/// less than one slot, a negative size or a cost that is no cost.
Owners assign_owners(std::span<OwnedMatrix const> matrices, int slots, Assignment how = Assignment::balanced,
                     std::int64_t pack_below = 4096);

} // namespace prowl
