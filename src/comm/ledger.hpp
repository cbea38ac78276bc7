/// What was communicated: calls and logical bytes, by kind, purpose and group size.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>

namespace prowl {

enum class Collective { all_gather, reduce_scatter, all_reduce, broadcast, reduce };
enum class Purpose { forward, backward, optimizer, other };

inline constexpr std::array all_collectives = {Collective::all_gather, Collective::reduce_scatter,
                                               Collective::all_reduce, Collective::broadcast,
                                               Collective::reduce};
inline constexpr std::array all_purposes = {Purpose::forward, Purpose::backward, Purpose::optimizer,
                                            Purpose::other};

char const* name(Collective);
char const* name(Purpose);

/// Bytes that one rank of a group of p logically moves for a collective whose whole (gathered, reduced or
/// broadcast) array has `payload` bytes: (p-1)/p of it, and twice that for an all-reduce (arXiv:2608.20818,
/// section 3.3).
double logical_bytes(Collective kind, int ranks, std::int64_t payload);

class Ledger {
public:
  struct Totals {
    std::int64_t calls = 0;
    double bytes = 0;
  };

  void record(Collective kind, Purpose purpose, int ranks, std::int64_t payload);
  Totals totals(Collective kind, Purpose purpose) const;
  Totals totals(Purpose purpose) const;
  /// What another has counted, too.
  void add(Ledger const& other);
  void clear() { entries_.clear(); }
  /// The same calls and payloads of every kind, purpose and group size.
  bool operator==(Ledger const&) const = default;

private:
  struct Key {
    Collective kind;
    Purpose purpose;
    int ranks;
    auto operator<=>(Key const&) const = default;
  };
  struct Entry {
    std::int64_t calls = 0, payload = 0; // integers, so that sums are exact
    bool operator==(Entry const&) const = default;
  };
  std::map<Key, Entry> entries_;
};

} // namespace prowl
