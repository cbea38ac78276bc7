#include "fixture.hpp"

#include <prowl/io/hdf5.hpp>

using namespace checkpoint_test;

namespace {

/// Where a dataset's elements lie in the file, by HDF5 itself.
std::int64_t offset_of(std::string const& path, std::string const& dataset) {
  hdf5::Lock const lock;
  hdf5::Handle const file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path);
  hdf5::Handle const data(H5Dopen2(file.get(), dataset.c_str(), H5P_DEFAULT), dataset);
  return std::int64_t(H5Dget_offset(data.get()));
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Checkpoint, with_a_flipped_byte_in_any_dataset_is_refused_by_its_name) {
  std::string const path = write(1);
  for (std::size_t a = 0; a < shapes.size(); ++a) {
    auto const& [name, shape, type] = shapes[a];
    std::int64_t const bytes = shape[0] * columns_of(shape) * 4;
    for (std::int64_t const at : {std::int64_t{0}, bytes / 2, bytes - 1}) {
      std::int64_t const offset = offset_of(path, name) + at;
      flip(path, offset);
      std::string const expected = path + ": dataset " + name + " is damaged";
      EXPECT_TRUE(contains(error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path).verify(); }), expected))
          << name;
      for (auto const division : divisions) {
        auto const reading = error_of([&] { expect_read(MPI_COMM_WORLD, path, division); });
        EXPECT_TRUE(contains(reading, expected)) << reading;
      }
      // Replicas, and rows that leave the damaged ones out.
      std::vector<float> out(std::size_t(shape[0] * columns_of(shape)));
      ArrayFileReader const reader(MPI_COMM_WORLD, path);
      EXPECT_TRUE(contains(error_of([&] { reader.read({name, shape, 0, shape[0], out.data()}); }), expected));
      EXPECT_TRUE(contains(error_of([&] { reader.read({name, shape, 0, 0, out.data()}); }), expected));
      flip(path, offset);
      EXPECT_EQ(error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path).verify(); }), "");
    }
  }
}

TEST_F(Checkpoint, with_a_changed_attribute_text_or_dataset_list_is_refused) {
  std::string const path = write(1);
  auto const change = [&](auto const& work) {
    alone([&] {
      hdf5::Lock const lock;
      hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), path);
      work(file.get());
    });
    return error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path); });
  };
  auto const set = [](hid_t file, char const* object, char const* name, std::int64_t value) {
    hdf5::Handle const o(H5Oopen(file, object, H5P_DEFAULT), object);
    hdf5::Handle const a(H5Aopen(o.get(), name, H5P_DEFAULT), name);
    hdf5::check(H5Awrite(a.get(), H5T_NATIVE_INT64, &value), name);
  };
  EXPECT_EQ(error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path); }), "");
  auto const damaged = path + ": is damaged";
  EXPECT_TRUE(contains(change([&](hid_t file) { set(file, "/", "step", 2); }), damaged));
  EXPECT_EQ(change([&](hid_t file) { set(file, "/", "step", 1); }), "");
  EXPECT_TRUE(contains(change([&](hid_t file) { set(file, "weights/big", "checksum", 1); }), damaged));
  write(1);
  EXPECT_TRUE(contains(change([&](hid_t file) { H5Ldelete(file, "weights/bias", H5P_DEFAULT); }), damaged));
  write(1);
  EXPECT_TRUE(contains(change([&](hid_t file) { H5Ldelete(file, "deck", H5P_DEFAULT); }), damaged));
  write(1);
  EXPECT_TRUE(contains(change([&](hid_t file) { H5Adelete(file, "seed"); }), damaged));
  write(1);
  EXPECT_TRUE(contains(change([&](hid_t file) { set(file, "/", "format", 99); }), "not a file of Prowl's"));
}

/// Every byte that matters is under a checksum: flipped, the file is refused; else what is read stays the
/// same.
TEST_F(Checkpoint, with_any_flipped_byte_is_refused_or_reads_the_same) {
  std::string const path = write(1);
  std::int64_t const bytes = std::int64_t(std::filesystem::file_size(path));
  std::int64_t const big = offset_of(path, "weights/big"), big_end = big + 130 * 50 * 4;
  int refused = 0, tried = 0;
  std::int64_t const stride = size == 1 ? 1 : 41;
  for (std::int64_t at = 0; at < bytes; at += at >= big && at < big_end ? 997 : stride) {
    flip(path, at);
    ++tried;
    std::string message = error_of([&] {
      ArrayFileReader const reader(MPI_COMM_WORLD, path);
      reader.verify();
      EXPECT_EQ(reader.integer("step"), 1);
      EXPECT_EQ(reader.string("model"), "mmdit, depth 2");
      EXPECT_EQ(reader.text("deck"), "[train]\nsteps = 120 # \xC3\xA9\n");
      expect_read(MPI_COMM_WORLD, path, Division::ceil);
    });
    refused += !message.empty();
    if (!message.empty()) {
      EXPECT_TRUE(contains(message, path)) << message;
    }
    flip(path, at);
  }
  EXPECT_EQ(error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path).verify(); }), "");
  RecordProperty("refused", refused);
  EXPECT_GT(refused, tried / 4); // HDF5 leaves unused gaps between its structures.
  if (rank == 0) std::printf("%d of %d flipped bytes refused\n", refused, tried);
}

TEST_F(Checkpoint, when_truncated_at_any_length_is_refused_by_its_name) {
  std::string const path = write(1);
  auto const bytes = std::filesystem::file_size(path);
  std::filesystem::path const whole = folder + "/whole";
  alone([&] { std::filesystem::copy(path, whole); });
  for (auto const length : {std::uintmax_t{0}, std::uintmax_t{1}, std::uintmax_t{100}, bytes / 4, bytes / 2,
                            bytes - 4096, bytes - 100, bytes - 1}) {
    alone([&] {
      std::filesystem::copy(whole, path, std::filesystem::copy_options::overwrite_existing);
      std::filesystem::resize_file(path, length);
    });
    auto const message = error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path).verify(); });
    EXPECT_TRUE(contains(message, path)) << length << " " << message;
  }
}

TEST_F(Checkpoint, of_another_model_is_refused_with_the_dataset_expected_and_found) {
  std::string const path = write(1);
  ArrayFileReader const reader(MPI_COMM_WORLD, path);
  auto const refusal = [&](std::vector<ArrayShape> const& expected) {
    return error_of([&] { reader.require_arrays(expected); });
  };
  EXPECT_EQ(refusal(shapes), "");
  auto other = shapes;
  other[2].shape = {5, 4};
  EXPECT_EQ(refusal(other),
            path + ": comes from another model: dataset weights/blocks.3.img.attn.q.weight is 5x3 of "
                   "float32, expected 5x4 of float32");
  other = shapes;
  other.push_back({"weights/more", {2, 2}});
  EXPECT_EQ(refusal(other),
            path + ": comes from another model: it has no dataset weights/more (expected: 2x2 of float32)");
  other = shapes;
  other.pop_back();
  EXPECT_EQ(refusal(other),
            path + ": comes from another model: dataset adamw/exp_avg/bias (17 of float32) is not expected");
  EXPECT_EQ(error_of([&] { reader.require_arrays({shapes[6]}, "momentum/"); }), "");
  std::vector<float> out(20);
  EXPECT_TRUE(contains(error_of([&] {
                         reader.read({shapes[2].name, {3, 5}, 0, 3, out.data()});
                       }),
                       "weights/blocks.3.img.attn.q.weight is 5x3"));
  EXPECT_TRUE(contains(error_of([&] {
                         reader.read({"weights/none", {3, 5}, 0, 3, out.data()});
                       }),
                       "weights/none"));
}

TEST_F(Checkpoint, that_is_no_hdf5_file_or_not_prowls_is_refused_by_its_name) {
  std::string const path = folder + "/x.h5";
  auto const opening = [&] { return error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path); }); };
  EXPECT_TRUE(contains(opening(), path));
  alone([&] { std::ofstream(path) << "hello"; });
  EXPECT_TRUE(contains(opening(), path));
  alone([&] {
    hdf5::Lock const lock;
    hdf5::Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), path);
  });
  EXPECT_TRUE(contains(opening(), path + ": not a file of Prowl's"));
}

} // namespace
