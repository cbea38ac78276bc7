#include <prowl/comm/ledger.hpp>

#include <prowl/core/index.hpp>

#include <limits>

namespace prowl {

char const* name(Collective kind) {
  switch (kind) {
  case Collective::all_gather:
    return "all_gather";
  case Collective::reduce_scatter:
    return "reduce_scatter";
  case Collective::all_reduce:
    return "all_reduce";
  case Collective::broadcast:
    return "broadcast";
  case Collective::reduce:
    return "reduce";
  }
  return "";
}

char const* name(Purpose purpose) {
  switch (purpose) {
  case Purpose::forward:
    return "forward";
  case Purpose::backward:
    return "backward";
  case Purpose::optimizer:
    return "optimizer";
  case Purpose::other:
    return "other";
  }
  return "";
}

double logical_bytes(Collective kind, int ranks, std::int64_t payload) {
  require_between("ranks of a collective", ranks, 1, std::numeric_limits<int>::max());
  double const factor = kind == Collective::all_reduce ? 2 : 1;
  return factor * double((ranks - 1) * payload) / ranks;
}

void Ledger::record(Collective kind, Purpose purpose, int ranks, std::int64_t payload) {
  require_between("ranks of a collective", ranks, 1, std::numeric_limits<int>::max());
  require_between("bytes of a collective", payload, 0, std::numeric_limits<std::int64_t>::max());
  auto& entry = entries_[{kind, purpose, ranks}];
  ++entry.calls;
  entry.payload += payload;
}

void Ledger::add(Ledger const& other) {
  for (auto const& [key, entry] : other.entries_) {
    entries_[key].calls += entry.calls;
    entries_[key].payload += entry.payload;
  }
}

Ledger::Totals Ledger::totals(Collective kind, Purpose purpose) const {
  Totals sum;
  for (auto const& [key, entry] : entries_)
    if (key.kind == kind && key.purpose == purpose) {
      sum.calls += entry.calls;
      sum.bytes += logical_bytes(kind, key.ranks, entry.payload);
    }
  return sum;
}

Ledger::Totals Ledger::totals(Purpose purpose) const {
  Totals sum;
  for (auto kind : all_collectives) {
    auto const part = totals(kind, purpose);
    sum.calls += part.calls;
    sum.bytes += part.bytes;
  }
  return sum;
}

} // namespace prowl
