/// Counter-based random numbers: a pure function of (seed, stream, index), so that no result depends on who
/// computes it.
///
/// Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <prowl/core/math.hpp>

#include <cstdint>

namespace prowl {

struct Philox {
  struct Words {
    std::uint32_t w[4];
  };

  /// The ten-round bijection of a counter under a key.
  KOKKOS_INLINE_FUNCTION static Words block(Words counter, std::uint32_t key0, std::uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
      std::uint64_t const p0 = std::uint64_t{0xD2511F53u} * counter.w[0];
      std::uint64_t const p1 = std::uint64_t{0xCD9E8D57u} * counter.w[2];
      counter = {{std::uint32_t(p1 >> 32) ^ counter.w[1] ^ key0, std::uint32_t(p1),
                  std::uint32_t(p0 >> 32) ^ counter.w[3] ^ key1, std::uint32_t(p0)}};
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    return counter;
  }
};

/// Numbers of one stream of one seed. Streams of different (seed, stream) are independent.
class Random {
public:
  KOKKOS_INLINE_FUNCTION Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  /// 64 random bits.
  KOKKOS_INLINE_FUNCTION std::uint64_t bits(std::uint64_t index) const {
    auto const b = words(index);
    return (std::uint64_t{b.w[1]} << 32) | b.w[0];
  }

  /// Uniform in (0, 1).
  KOKKOS_INLINE_FUNCTION double uniform(std::uint64_t index) const { return open_unit(bits(index)); }

  /// Standard normal (Box and Muller).
  KOKKOS_INLINE_FUNCTION double normal(std::uint64_t index) const {
    auto const b = words(index);
    double const u = open_unit((std::uint64_t{b.w[1]} << 32) | b.w[0]);
    double const v = open_unit((std::uint64_t{b.w[3]} << 32) | b.w[2]);
    return math::sqrt(-2.0 * math::log(u)) * math::cos(6.283185307179586 * v);
  }

private:
  KOKKOS_INLINE_FUNCTION Philox::Words words(std::uint64_t index) const {
    return Philox::block({{std::uint32_t(index), std::uint32_t(index >> 32), std::uint32_t(stream_),
                           std::uint32_t(stream_ >> 32)}},
                         std::uint32_t(seed_), std::uint32_t(seed_ >> 32));
  }
  KOKKOS_INLINE_FUNCTION static double open_unit(std::uint64_t bits) {
    return (double(bits >> 11) + 0.5) * 0x1p-53;
  }

  std::uint64_t seed_, stream_;
};

} // namespace prowl
