/// Which units of a store are whole, or on their way, and which is dropped for the next: its decisions without its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prowl {

/// How long the weights of a unit stay whole on a rank that keeps only a part of them (DMuon, arXiv:2606.27153).
enum class Residency {
  z3, ///< until its forward is done; its backward makes it whole again
  z2, ///< until the weights change
};

enum class Pass { forward, backward };

class UnitSlots {
public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// prefetch + 1 slots in z3, one a unit in z2; none where nothing is gathered. Throws Error for a negative
  /// number; the calls below for a unit or a slot that is not there.
  UnitSlots(std::size_t units, int prefetch, Residency residency, bool gathers);

  struct Claim {
    std::size_t unit, slot;
    bool fetch; ///< the unit is not there yet: what the slot holds is dropped for it
  };
  /// The units that must be whole or on their way while `unit` computes, itself first.
  std::vector<Claim> claim(std::size_t unit, Pass pass);

  std::size_t size() const { return slots_.size(); }
  /// That holds the unit, or none.
  std::size_t find(std::size_t unit) const;
  std::size_t unit(std::size_t slot) const;
  void release(std::size_t slot);

private:
  struct Slot {
    std::size_t unit = none;
    std::uint64_t last_use = 0;
  };
  Claim claim(std::size_t unit, std::size_t first, std::size_t last);

  std::size_t units_, prefetch_;
  Residency residency_;
  std::vector<Slot> slots_;
  std::uint64_t clock_ = 0;
};

} // namespace prowl
