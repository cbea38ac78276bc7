// A folder shared by the ranks, arrays of every kind of shape with known bits, and ways to divide their rows.
#pragma once

#include <prowl/core/error.hpp>
#include <prowl/io/checkpoint.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace checkpoint_test {

using namespace prowl;
using Rows = std::pair<std::int64_t, std::int64_t>;

inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

inline int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

/// The message of the Error that `work` throws; empty where none. Fails where the ranks' messages differ.
template <class Work>
std::string error_of(Work const& work) {
  std::string message;
  try {
    work();
  } catch (Error const& e) {
    message = e.what();
  }
  char first[1024] = {};
  std::strncpy(first, message.c_str(), sizeof first - 1);
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT_EQ(message, first);
  return message;
}

/// Bit patterns of finite numbers: hashed, so with denormals; the first few are the awkward ones.
inline std::uint32_t bits_of(std::size_t array, std::int64_t index) {
  std::uint32_t const special[] = {0x80000000u, 0x7F7FFFFFu, 0xFF7FFFFFu, 0x00000001u, 0x807FFFFFu};
  if (index < 5) return special[index];
  std::uint32_t z = std::uint32_t(index) * 2654435761u + std::uint32_t(array) * 40503u + 12345u;
  z = (z ^ (z >> 15)) * 0x2C1B3C6Du;
  z ^= z >> 12;
  return (z & 0x7F800000u) == 0x7F800000u ? z ^ 0x00800000u : z;
}

inline std::vector<ArrayShape> const shapes = {
    {"weights/wide", {1, 7}},
    {"weights/tall", {7, 1}},
    {"weights/blocks.3.img.attn.q.weight", {5, 3}},
    {"weights/big", {130, 50}},
    {"weights/one", {1}},
    {"weights/bias", {17}},
    {"momentum/blocks.3.img.attn.q.weight", {5, 3}},
    {"adamw/exp_avg/bias", {17}},
};

inline std::int64_t columns_of(std::vector<std::int64_t> const& shape) {
  return shape.size() > 1 ? shape[1] : 1;
}

enum class Division { ceil, even, last, first, skewed };
inline constexpr Division divisions[] = {Division::ceil, Division::even, Division::last, Division::first,
                                         Division::skewed};

/// This rank's rows of `rows`.
inline Rows divide(Division division, std::int64_t rows, int rank, int size) {
  auto const clamp = [&](std::int64_t r) { return std::clamp<std::int64_t>(r, 0, rows); };
  std::int64_t const chunk = (rows + size - 1) / size;
  switch (division) {
  case Division::ceil:
    return {clamp(rank * chunk), clamp((rank + 1) * chunk)};
  case Division::even:
    return {rows * rank / size, rows * (rank + 1) / size};
  case Division::last:
    return rank == size - 1 ? Rows{0, rows} : Rows{0, 0};
  case Division::first:
    return rank == 0 ? Rows{0, rows} : Rows{rows, rows};
  default: // The last rank has the first rows, and the first rank the most.
    int const r = size - 1 - rank;
    return {clamp(2 * r), rank == 0 ? rows : clamp(2 * (r + 1))};
  }
}

struct Data {
  std::vector<std::vector<float>> held;
  ArrayFileContents contents;
};

inline Data make(MPI_Comm comm, Division division, std::vector<ArrayShape> const& list = shapes) {
  Data d;
  for (std::size_t a = 0; a < list.size(); ++a) {
    auto const [begin, end] = divide(division, list[a].shape[0], rank_in(comm), size_of(comm));
    std::int64_t const c = columns_of(list[a].shape);
    std::vector<float> v;
    for (std::int64_t i = begin * c; i < end * c; ++i) v.push_back(std::bit_cast<float>(bits_of(a, i)));
    d.held.push_back(std::move(v));
    d.contents.arrays.push_back({list[a].name, list[a].shape, begin, end, d.held.back().data()});
  }
  d.contents.attributes = {
      {"sample_position", std::int64_t{1} << 40}, {"seed", std::int64_t{-3}}, {"model", "mmdit, depth 2"}};
  d.contents.texts = {{"deck", "[train]\nsteps = 120 # \xC3\xA9\n"}, {"empty", ""}};
  return d;
}

/// Reads all arrays in a division and compares the bits.
inline void expect_read(MPI_Comm comm, std::string const& path, Division division) {
  ArrayFileReader const reader(comm, path);
  reader.require_arrays(shapes);
  std::vector<std::vector<float>> out(shapes.size());
  std::vector<ArrayTarget> targets;
  for (std::size_t a = 0; a < shapes.size(); ++a) {
    auto const [begin, end] = divide(division, shapes[a].shape[0], rank_in(comm), size_of(comm));
    out[a].resize(std::size_t((end - begin) * columns_of(shapes[a].shape)));
    targets.push_back({shapes[a].name, shapes[a].shape, begin, end, out[a].data()});
  }
  reader.read(targets);
  for (std::size_t a = 0; a < shapes.size(); ++a)
    for (std::size_t i = 0; i < out[a].size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[a][i]),
                bits_of(a, targets[a].begin * columns_of(shapes[a].shape) + std::int64_t(i)))
          << shapes[a].name;
}

class Checkpoint : public testing::Test {
protected:
  void SetUp() override {
    char name[64] = "/tmp/prowl-12:30-XXXXXX"; // With a colon, which MPI-IO treats specially.
    if (rank == 0 && !mkdtemp(name)) FAIL() << name;
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    folder = name;
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::filesystem::remove_all(folder);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  /// On rank 0, between barriers.
  template <class Work>
  void alone(Work const& work) const {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) work();
    MPI_Barrier(MPI_COMM_WORLD);
  }

  void flip(std::string const& path, std::int64_t offset, int bits = 0x10) const {
    alone([&] {
      std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(offset);
      char const byte = char(f.get() ^ bits);
      f.seekp(offset);
      f.put(byte);
    });
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (auto const& e : std::filesystem::directory_iterator(folder))
      names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string write(std::int64_t step, int keep = 0, Division division = Division::ceil) const {
    Data const d = make(MPI_COMM_WORLD, division);
    return write_checkpoint(MPI_COMM_WORLD, folder, step, d.contents, keep);
  }

  int const rank = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
  std::string folder;
};

} // namespace checkpoint_test
