/// HDF5 files of whole, named arrays whose rows are spread over ranks; they do not show how many ranks wrote
/// them.
///
/// In the file: each array is one contiguous dataset (little-endian float32, float64 or int64) under its
/// name, in which only '/' separates groups; each text is a scalar UTF-8 string dataset; each attribute is
/// one of the root group, beside `format` (the version) and `header_checksum` (over attributes, texts, and
/// the names, types, shapes and checksums of the arrays). The attribute `checksum` of an array's dataset is
/// the sum modulo 2^64 over its elements of
///   mix(0x9E3779B97F4A7C15 * index + 0xD1B54A32D192ED03 * bits),
/// index the element's row-major index, bits its representation zero-extended to 64 bits, mix the finaliser
/// of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure
/// 16).
///
/// All functions here are collective over their communicator, on which nothing else may be under way, and
/// throw the same Error on every rank. They need MPI-IO that writes what it is given: Open MPI 4's default
/// component, ompio, does not always (set OMPI_MCA_io=^ompio before MPI_Init); a file that it damaged is
/// noticed and not put in place.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace prowl {

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
  /// The same names, shapes and types in the same order on every rank. Together the ranks hold each row
  /// exactly once.
  std::vector<ArrayRows> arrays;
};

/// Writes the file whole or not at all: beside it under `temporary_name(path)`, flushed to disk, read back
/// and compared by every rank, then renamed. A file that was at `path` stays until then.
void write_array_file(MPI_Comm comm, std::string const& path, ArrayFileContents const& contents);

/// The hidden name, in the same folder, under which `path` is written.
std::string temporary_name(std::string const& path);

/// A file opened for reading. Errors carry the file's and the dataset's name.
class ArrayFileReader {
public:
  /// Reads and verifies everything but the arrays' elements.
  ArrayFileReader(MPI_Comm comm, std::string path);

  std::string const& path() const { return path_; }
  bool has(std::string const& attribute) const { return attributes_.contains(attribute); }
  std::int64_t integer(std::string const& attribute) const;
  std::string const& string(std::string const& attribute) const;
  std::string const& text(std::string const& name) const;
  /// By name.
  std::vector<ArrayShape> arrays() const;

  /// Throws unless the arrays whose names begin with `prefix` are exactly the expected ones.
  void require_arrays(std::vector<ArrayShape> const& expected, std::string const& prefix = "") const;

  /// Reads rows into the targets, and verifies each array whole. The targets are the same arrays in the same
  /// order on every rank; any rows.
  void read(std::vector<ArrayTarget> const& targets) const;
  void read(ArrayTarget const& target) const { read(std::vector<ArrayTarget>{target}); }

  /// Verifies every array.
  void verify() const;

private:
  friend void write_array_file(MPI_Comm, std::string const&, ArrayFileContents const&);
  struct Entry {
    std::vector<std::int64_t> shape;
    ElementType type;
    std::uint64_t checksum;
  };

  void open();
  std::uint64_t sum_of_rows(std::string const& name, std::int64_t begin, std::int64_t end) const;
  std::uint64_t sum_of_share(std::string const& name) const;
  void require_shape(ArrayShape const& expected) const;

  MPI_Comm comm_;
  std::string path_;
  std::map<std::string, std::variant<std::int64_t, std::string>> attributes_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, Entry> entries_;
};

} // namespace prowl
