#include <prowl/io/detail/array_format.hpp>
#include <prowl/io/detail/seal.hpp>

#include <cstdio>

namespace prowl::detail {

namespace {

/// A seal of any format ends with the checksum of its other bytes, 16 hexadecimal digits, and a newline.
constexpr std::size_t text_bytes = std::size_t(seal_bytes) - 17;

std::string ending(std::string const& text) {
  return fmt::format("{:016x}\n", checksum(text.data(), 0, std::int64_t(text_bytes)));
}

} // namespace

std::string to_block(Seal const& seal) {
  std::string text = fmt::format("Prowl array file, format {}\nbytes {}\nchecksum {:016x}\n", seal.format,
                                 seal.bytes, seal.checksum);
  if (seal.not_finite.empty()) {
    text += "finite";
  } else {
    text += "not finite: ";
    for (char const c : seal.not_finite.substr(0, 256)) text += c < ' ' && c >= 0 ? '?' : c;
  }
  text.resize(text_bytes, '\n');
  return text + ending(text);
}

std::optional<Seal> from_block(std::string const& block) {
  if (block.size() != std::size_t(seal_bytes) || !block.ends_with(ending(block))) return {};
  Seal seal;
  long long format = 0, bytes = 0;
  unsigned long long sum = 0;
  char name[257] = {};
  int const fields = std::sscanf(
      block.c_str(), "Prowl array file, format %18lld bytes %18lld checksum %16llx not finite: %256[^\n]",
      &format, &bytes, &sum, name);
  if (fields < 1) return {};
  seal = {format, bytes, sum, name};
  if (format == array_format && to_block(seal) != block) return {};
  return seal;
}

std::optional<Seal> read_seal(InputFile const& file) {
  std::string block(std::size_t(seal_bytes), '\0');
  if (!file.read(0, seal_bytes, block.data())) return {};
  return from_block(block);
}

std::optional<std::uint64_t> checksum_of_share(InputFile const& file, int rank, int ranks) {
  std::int64_t const bytes = std::max<std::int64_t>(0, file.bytes() - seal_bytes), words = (bytes + 7) / 8;
  std::int64_t const end = words * (rank + 1) / ranks;
  constexpr std::int64_t piece = std::int64_t{1} << 17;
  std::vector<std::uint64_t> buffer;
  std::uint64_t sum = 0;
  for (std::int64_t word = words * rank / ranks; word < end; word += piece) {
    std::int64_t const count = std::min(piece, end - word);
    buffer.assign(std::size_t(count), 0); // a last word is filled up with zeros
    if (!file.read(seal_bytes + 8 * word, std::min(8 * count, bytes - 8 * word), buffer.data())) return {};
    sum += checksum(buffer.data(), word, count);
  }
  return sum;
}

} // namespace prowl::detail
