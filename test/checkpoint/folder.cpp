#include "fixture.hpp"

using namespace checkpoint_test;

namespace {

TEST_F(Checkpoint, newest_intact_one_is_found_and_the_log_says_what_was_skipped) {
  std::vector<std::string> log;
  auto const newest = [&] {
    log.clear();
    return newest_intact_checkpoint(MPI_COMM_WORLD, folder,
                                    [&](std::string const& line) { log.push_back(line); });
  };
  EXPECT_EQ(newest(), std::nullopt);
  std::string const first = write(9), second = write(100), third = write(200), fourth = write(123456789);
  EXPECT_EQ(newest(), fourth);
  EXPECT_EQ(log.size(), 0u);
  alone([&] { std::filesystem::resize_file(fourth, 1000); });
  // In the last of the arrays' elements, which lie at the end of the file or before HDF5's last structures.
  std::uintmax_t const bytes = std::filesystem::file_size(third);
  flip(third, std::int64_t(bytes / 2));
  EXPECT_EQ(newest(), second);
  ASSERT_EQ(log.size(), rank == 0 ? 2u : 0u);
  if (rank == 0) {
    EXPECT_NE(log[0].find(fourth), std::string::npos) << log[0];
    EXPECT_NE(log[1].find(third + ": dataset weights/big is damaged"), std::string::npos) << log[1];
  }
  // A file under another step's name is not what it says.
  alone([&] { std::filesystem::rename(first, checkpoint_path(folder, 150)); });
  EXPECT_EQ(newest(), second);
  if (rank == 0) {
    EXPECT_EQ(log.size(), 3u);
  }
  alone([&] { std::filesystem::remove(second); });
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(Checkpoint, keeps_the_last_ones_and_never_removes_later_or_other_files) {
  alone([&] {
    std::ofstream(folder + "/checkpoint-notes.h5") << "x";
    std::ofstream(folder + "/checkpoint-00000001.h5.orig") << "x";
    std::ofstream(folder + "/.checkpoint-00000007.h5.tmp") << "half";
    std::ofstream(folder + "/metrics.jsonl") << "x";
  });
  std::vector<std::string> const others = {"checkpoint-00000001.h5.orig", "checkpoint-notes.h5",
                                           "metrics.jsonl"};
  auto const expect = [&](std::vector<std::string> expected) {
    expected.insert(expected.end(), others.begin(), others.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(files(), expected);
  };
  for (std::int64_t step = 1; step <= 5; ++step) write(step, 2);
  expect({"checkpoint-00000004.h5", "checkpoint-00000005.h5"});
  write(3, 1);
  expect({"checkpoint-00000003.h5", "checkpoint-00000004.h5", "checkpoint-00000005.h5"});
  write(6, 0);
  expect({"checkpoint-00000003.h5", "checkpoint-00000004.h5", "checkpoint-00000005.h5",
          "checkpoint-00000006.h5"});
  write(6, 3);
  expect({"checkpoint-00000004.h5", "checkpoint-00000005.h5", "checkpoint-00000006.h5"});
}

} // namespace
