#include "fixture.hpp"

#include <chrono>
#include <cmath>
#include <thread>

#include <build_strings.hpp>

using namespace checkpoint_test;

namespace {

TEST_F(Checkpoint, is_read_bit_for_bit_in_any_division_of_the_rows) {
  for (auto const writing : divisions) {
    std::string const path = write(1, 0, writing);
    for (auto const reading : divisions) expect_read(MPI_COMM_WORLD, path, reading);
  }
}

TEST_F(Checkpoint, is_read_by_any_number_of_ranks) {
  for (int writers = 1; writers <= size; ++writers) {
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, rank < writers ? 0 : MPI_UNDEFINED, rank, &some);
    if (some != MPI_COMM_NULL) {
      Data const d = make(some, Division::ceil);
      write_checkpoint(some, folder, writers, d.contents, 0);
      MPI_Comm_free(&some);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int readers = 1; readers <= size; ++readers) {
      MPI_Comm_split(MPI_COMM_WORLD, rank < readers ? 0 : MPI_UNDEFINED, rank, &some);
      if (some == MPI_COMM_NULL) continue;
      for (auto const reading : divisions) expect_read(some, checkpoint_path(folder, writers), reading);
      MPI_Comm_free(&some);
    }
  }
}

TEST_F(Checkpoint, has_the_same_bytes_whoever_held_the_rows) {
  std::string const first = write(1, 0, Division::first), other = write(2, 0, Division::even);
  Data const d = make(MPI_COMM_WORLD, Division::even);
  write_array_file(MPI_COMM_WORLD, folder + "/a.h5", make(MPI_COMM_WORLD, Division::first).contents);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100)); // HDF5's time stamps count seconds
  write_array_file(MPI_COMM_WORLD, folder + "/b.h5", d.contents);
  auto const bytes = [](std::string const& path) {
    std::ifstream f(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(f), {});
  };
  EXPECT_GT(bytes(folder + "/a.h5").size(), 130u * 50 * 4);
  EXPECT_TRUE(bytes(folder + "/a.h5") == bytes(folder + "/b.h5"));
  EXPECT_FALSE(bytes(first) == bytes(other)); // The steps differ.
}

TEST_F(Checkpoint, gives_back_attributes_and_texts) {
  ArrayFileReader const reader(MPI_COMM_WORLD, write(120));
  EXPECT_EQ(reader.integer("step"), 120);
  EXPECT_EQ(reader.integer("sample_position"), std::int64_t{1} << 40);
  EXPECT_EQ(reader.integer("seed"), -3);
  EXPECT_EQ(reader.string("model"), "mmdit, depth 2");
  EXPECT_EQ(reader.text("deck"), "[train]\nsteps = 120 # \xC3\xA9\n");
  EXPECT_EQ(reader.text("empty"), "");
  EXPECT_EQ(error_of([&] { reader.integer("model"); }), reader.path() + ": has no integer attribute model");
  EXPECT_EQ(reader.arrays().size(), shapes.size());
}

TEST_F(Checkpoint, may_be_read_by_several_replicas_or_in_part) {
  std::string const path = write(1);
  ArrayFileReader const reader(MPI_COMM_WORLD, path);
  auto const& shape = shapes[3];
  for (auto const& [begin, end] : {Rows{0, 130}, Rows{0, 65 + rank}, Rows{7, 7}, Rows{129, 130}}) {
    std::vector<float> out(std::size_t(end - begin) * 50);
    reader.read({shape.name, shape.shape, begin, end, out.data()});
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), bits_of(3, begin * 50 + std::int64_t(i)));
  }
}

TEST_F(Checkpoint, writer_takes_float64_int64_more_dimensions_and_what_is_not_finite) {
  std::vector<double> doubles = {NAN, INFINITY};
  std::vector<std::int64_t> integers;
  for (int i = 2; i < 24; ++i) doubles.push_back(1.0 / (i + 1));
  for (int i = 0; i < 6; ++i) integers.push_back((std::int64_t{1} << 60) + i);
  std::int64_t const here = rank == 0;
  std::string const path = folder + "/dump.h5";
  ArrayFileContents c;
  c.arrays = {{"batch/noise", {2, 3, 4}, 0, 2 * here, doubles.data()},
              {"batch/index", {6}, 0, 6 * here, integers.data()}};
  write_array_file(MPI_COMM_WORLD, path, c);
  std::vector<double> d(24);
  std::vector<std::int64_t> i(6);
  ArrayFileReader const reader(MPI_COMM_WORLD, path);
  reader.read({{"batch/noise", {2, 3, 4}, 0, 2, d.data()}, {"batch/index", {6}, 0, 6, i.data()}});
  EXPECT_EQ(std::memcmp(d.data(), doubles.data(), 24 * sizeof(double)), 0);
  EXPECT_EQ(reader.not_finite(), "batch/noise");
  EXPECT_EQ(i, integers);
}

TEST_F(Checkpoint, is_read_by_h5py_and_h5dump_and_its_checksums_recomputed) {
  std::vector<float> values;
  for (int i = 0; i < 35; ++i) values.push_back(0.5f * float(i) - 3);
  auto const [begin, end] = divide(Division::ceil, 5, rank, size);
  ArrayFileContents c;
  c.arrays = {{"weights/blocks.3.img.attn.q.weight", {5, 7}, begin, end, values.data() + begin * 7}};
  c.attributes = {{"seed", std::int64_t{7}}, {"model", "mmdit"}};
  c.texts = {{"deck", "[train]\nsteps = 120\n"}};
  std::string const path = write_checkpoint(MPI_COMM_WORLD, folder, 120, c, 0);
  int status = -1;
  alone([&] { status = std::system(PROWL_PYTHON " -c 'import h5py' 2>/dev/null"); });
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (status != 0) GTEST_SKIP() << "no h5py here: the file is NOT read by it";
  alone([&] { status = std::system((PROWL_PYTHON " " READ_SCRIPT " " + path).c_str()); });
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT_EQ(status, 0);
}

} // namespace
