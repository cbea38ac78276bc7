#include "fixture.hpp"

#include <prowl/io/hdf5.hpp>

#include <chrono>
#include <random>
#include <thread>

using namespace checkpoint_test;

namespace {

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

std::string opening(std::string const& path) {
  return error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path); });
}

TEST_F(Checkpoint, with_any_flipped_byte_is_refused_by_its_name) {
  std::string const path = write(1);
  std::int64_t const bytes = std::int64_t(std::filesystem::file_size(path));
  int tried = 0, refused = 0;
  for (std::int64_t at = 0; at < bytes; at += at < 4096 && size == 1 ? 1 : 97) {
    flip(path, at);
    ++tried;
    refused += contains(opening(path), path + ": is damaged: ");
    flip(path, at);
  }
  EXPECT_GT(tried, 300);
  EXPECT_EQ(refused, tried);
  EXPECT_EQ(opening(path), "");
}

/// PROWL_TEST_FLIPS says how many.
TEST_F(Checkpoint, with_a_random_bit_flipped_gives_way_to_the_one_before) {
  std::string const older = write(1), newer = write(2);
  char const* const wanted = std::getenv("PROWL_TEST_FLIPS");
  int const flips = wanted ? std::atoi(wanted) : 200;
  std::mt19937_64 random(1);
  auto const bytes = std::filesystem::file_size(newer);
  for (int i = 0; i < flips; ++i) {
    auto const at = std::int64_t(random() % bytes);
    int const bit = 1 << random() % 8;
    flip(newer, at, bit);
    std::string log;
    auto const chosen =
        newest_intact_checkpoint(MPI_COMM_WORLD, folder, [&](std::string const& line) { log += line; });
    EXPECT_EQ(chosen, older) << "bits " << bit << " of byte " << at;
    EXPECT_EQ(log.starts_with("skipped checkpoint: " + newer), rank == 0) << log;
    flip(newer, at, bit);
  }
  EXPECT_EQ(newest_intact_checkpoint(MPI_COMM_WORLD, folder, [](auto const&) {}), newer);
}

TEST_F(Checkpoint, of_any_other_length_is_refused_by_its_name) {
  std::string const path = write(1);
  auto const bytes = std::filesystem::file_size(path);
  std::filesystem::path const whole = folder + "/whole";
  alone([&] { std::filesystem::copy(path, whole); });
  for (auto const length :
       {std::uintmax_t{0}, std::uintmax_t{1}, std::uintmax_t{100}, std::uintmax_t{511}, std::uintmax_t{512},
        bytes / 4, bytes / 2, bytes - 4096, bytes - 100, bytes - 1, bytes + 1, bytes + 8, bytes + 4096}) {
    alone([&] {
      std::filesystem::copy(whole, path, std::filesystem::copy_options::overwrite_existing);
      std::filesystem::resize_file(path, length);
    });
    EXPECT_TRUE(contains(opening(path), path + ": is damaged: ")) << length;
  }
}

TEST_F(Checkpoint, that_changes_after_it_was_opened_is_refused_when_it_is_read) {
  for (int const way : {0, 1}) {
    std::string const path = write(1);
    ArrayFileReader const reader(MPI_COMM_WORLD, path);
    std::vector<float> out(130 * 50);
    auto const reading = [&] {
      return error_of([&] { reader.read({"weights/big", {130, 50}, 0, 0, out.data()}); });
    };
    EXPECT_EQ(reading(), "");
    alone([&] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }); // the clock of file systems
    if (way == 0)
      alone([&] { std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1); });
    else
      flip(path, 5000);
    EXPECT_TRUE(contains(reading(), path + ": has changed while in use")) << reading();
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
  EXPECT_TRUE(contains(opening(path), path));
  alone([&] { std::ofstream(path) << "hello"; });
  EXPECT_TRUE(contains(opening(path), path));
  alone([&] {
    hdf5::Lock const lock;
    hdf5::Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), path);
  });
  EXPECT_TRUE(contains(opening(path), path + ": not a file of Prowl's"));
}

} // namespace
