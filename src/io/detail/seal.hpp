/// The seal of an array file: its first 512 bytes, which HDF5 skips (its user block), say what all others are.
/// It is checked without HDF5, which does not survive every damaged file.
#pragma once

#include <prowl/io/detail/input_file.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace prowl::detail {

inline constexpr std::int64_t seal_bytes = 512;

struct Seal {
  std::int64_t format = 0;
  std::int64_t bytes = 0;     ///< of the whole file
  std::uint64_t checksum = 0; ///< of all bytes after the seal
  std::string not_finite;     ///< the first array with a NaN or an infinity; empty where there is none
};

/// The bytes of the seal.
std::string to_block(Seal const& seal);

/// None where the block is no seal, or damaged. Of another format only `format` is known.
std::optional<Seal> from_block(std::string const& block);

/// The seal at the beginning of the file.
std::optional<Seal> read_seal(InputFile const& file);

/// The part of the file's checksum of the share of `rank` of `ranks`; none where the file ends before.
std::optional<std::uint64_t> checksum_of_share(InputFile const& file, int rank, int ranks);

} // namespace prowl::detail
