/// HDF5 files of whole, named arrays whose rows are spread over ranks; they do not show how many ranks wrote
/// them.
///
/// In the file: each array is one contiguous dataset (little-endian float32, float64 or int64) under its
/// name, in which only '/' separates groups; each text is a scalar UTF-8 string dataset; each attribute is
/// one of the root group, beside `format`, the version. The attribute `checksum` of an array's dataset is
/// the sum modulo 2^64 over its elements of
///   mix(0x9E3779B97F4A7C15 * index + 0xD1B54A32D192ED03 * bits),
/// index the element's row-major index, bits its representation zero-extended to 64 bits, mix the finaliser
/// of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure
/// 16).
///
/// Every byte of the file is covered. The first 512 bytes, which HDF5 leaves to the user, are its seal, a text:
///   Prowl array file, format 2
///   bytes SIZE
///   checksum SUM
///   finite, or: not finite: NAME of the first array that has a NaN or an infinity
/// filled up with newlines; then, as its last 17 bytes, the checksum of its other 495 bytes and a newline. SUM
/// is the checksum of the bytes from 512 on, taken as little-endian 64-bit elements of which the last is filled
/// up with zeros. Checksums have 16 hexadecimal digits; that of the seal takes each byte as an element. A file
/// is damaged where its seal is, or where its size or its bytes are not those of the seal.
///
/// All functions here are collective over their communicator, on which nothing else may be under way, and
/// throw the same Error on every rank. They need MPI-IO that writes what it is given: Open MPI 4's default
/// component, ompio, does not always (set OMPI_MCA_io=^ompio before MPI_Init); a file that it damaged is
/// noticed and not put in place.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace prowl {

namespace detail {
class InputFile;
}

/// Rows are moved in pieces of about this many bytes: MPI-IO and the kernel count in 31 bits.
inline constexpr std::int64_t array_file_piece_bytes = std::int64_t{1} << 26;

enum class ElementType { float32, float64, int64 };

/// What an array is, whoever holds it. Dimension 0 counts the rows; every extent is at least 1.
struct ArrayShape {
  std::string name;
  std::vector<std::int64_t> shape;
  ElementType type = ElementType::float32;
};

/// Rows [begin, end) of an array (none where begin = end) that this rank gives: row-major, in host memory.
struct ArrayRows {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t begin, end;
  std::variant<float const*, double const*, std::int64_t const*> data;
};

/// Rows [begin, end) of an array that this rank wants.
struct ArrayTarget {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t begin, end;
  std::variant<float*, double*, std::int64_t*> data;
};

struct ArrayFileContents {
  /// Small values, below 32 KiB each. Rank 0's are written; so are the texts.
  std::map<std::string, std::variant<std::int64_t, std::string>> attributes;
  /// Of any length, without NUL.
  std::map<std::string, std::string> texts;
  /// Whether a NaN or an infinity in an array is refused, with array, row, column and value.
  bool finite = false;
  /// The same names, shapes and types in the same order on every rank. Together the ranks hold each row
  /// exactly once.
  std::vector<ArrayRows> arrays;
};

/// Whether the file there was written whole, as far as its seal and its size say, and all numbers in it are finite.
/// Not collective; cheap.
bool is_sealed_and_finite(std::string const& path);

/// Writes the file whole or not at all: beside it under `temporary_name(path)`, flushed to disk, read back
/// and compared by every rank, then renamed. A file that was at `path` stays until then.
void write_array_file(MPI_Comm comm, std::string const& path, ArrayFileContents const& contents);

/// The hidden name, in the same folder, under which `path` is written.
std::string temporary_name(std::string const& path);

/// A file opened for reading. Errors carry the file's and the dataset's name.
class ArrayFileReader {
public:
  /// Verifies every byte, each rank its share, then reads all but the arrays' elements. HDF5 sees no file that
  /// is damaged.
  ArrayFileReader(MPI_Comm comm, std::string path);

  /// The reader; none where the file is damaged, and then `damage` says how. Throws Error where that cannot be
  /// told: the file cannot be read, another process holds it open for writing, it is of another format.
  static std::optional<ArrayFileReader> open_intact(MPI_Comm comm, std::string const& path,
                                                    std::string& damage);

  std::string const& path() const { return path_; }
  bool has(std::string const& attribute) const { return attributes_.contains(attribute); }
  std::int64_t integer(std::string const& attribute) const;
  std::string const& string(std::string const& attribute) const;
  std::string const& text(std::string const& name) const;
  /// By name.
  std::vector<ArrayShape> arrays() const;

  /// Throws unless the arrays whose names begin with `prefix` are exactly the expected ones.
  void require_arrays(std::vector<ArrayShape> const& expected, std::string const& prefix = "") const;

  /// Throws unless every number was finite when the file was written.
  void require_finite() const;
  /// The first array with a NaN or an infinity; empty where there is none.
  std::string const& not_finite() const { return not_finite_; }

  /// Reads rows into the targets. The targets are the same arrays in the same order on every rank; any rows.
  /// Where together they are whole arrays, what was read is verified once more. Throws where the file has
  /// changed since it was opened.
  void read(std::vector<ArrayTarget> const& targets) const;
  void read(ArrayTarget const& target) const { read(std::vector<ArrayTarget>{target}); }

private:
  friend void write_array_file(MPI_Comm, std::string const&, ArrayFileContents const&);
  struct Entry {
    std::vector<std::int64_t> shape;
    ElementType type;
    std::uint64_t checksum;
  };

  ArrayFileReader(MPI_Comm comm, std::shared_ptr<detail::InputFile const> input);
  void open();
  void open_group(std::int64_t group, std::string const& prefix, int depth);
  std::uint64_t sum_of_rows(std::string const& name, std::int64_t begin, std::int64_t end) const;
  void require_shape(ArrayShape const& expected) const;
  void require_written(ArrayFileContents const& contents, std::vector<std::uint64_t> const& own) const;

  MPI_Comm comm_;
  std::string path_;
  std::shared_ptr<detail::InputFile const> input_;
  std::string not_finite_;
  std::map<std::string, std::variant<std::int64_t, std::string>> attributes_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, Entry> entries_;
};

} // namespace prowl
