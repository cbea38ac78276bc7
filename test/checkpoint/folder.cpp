#include "fixture.hpp"

#include <prowl/io/detail/seal.hpp>
#include <prowl/io/hdf5.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

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
    EXPECT_NE(log[1].find(third + ": the checksum of its bytes is"), std::string::npos) << log[1];
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

/// Everything as `write` has it but one number, as a version that did not look would write it.
std::string write_unchecked(std::string const& folder, std::int64_t step, float value) {
  Data d = make(MPI_COMM_WORLD, Division::even);
  d.contents.attributes["step"] = step;
  if (auto& big = d.held[3]; !big.empty()) big.back() = value;
  auto const path = checkpoint_path(folder, step);
  write_array_file(MPI_COMM_WORLD, path, d.contents);
  return path;
}

TEST_F(Checkpoint, that_is_not_finite_is_not_written_and_the_message_names_the_element) {
  std::string const before = write(1);
  for (float const value : {NAN, INFINITY, -INFINITY})
    for (int giver = 0; giver < size; ++giver) {
      Data d = make(MPI_COMM_WORLD, Division::even);
      auto const [begin, end] = divide(Division::even, 130, rank, size);
      // The second column of the giver's first row.
      if (rank == giver) d.held[3][1] = value;
      std::int64_t row = begin;
      MPI_Bcast(&row, 1, MPI_INT64_T, giver, MPI_COMM_WORLD);
      auto const message = error_of([&] { write_checkpoint(MPI_COMM_WORLD, folder, 2, d.contents, 1); });
      EXPECT_EQ(message, fmt::format("{}: is not written: weights/big is not finite: row {}, column 1 is {}",
                                     checkpoint_path(folder, 2), row, value));
    }
  EXPECT_EQ(files(), std::vector<std::string>{"checkpoint-00000001.h5"});
  expect_read(MPI_COMM_WORLD, before, Division::even);
}

TEST_F(Checkpoint, that_is_not_finite_is_passed_over_and_counts_for_nothing_when_others_are_deleted) {
  auto const first = write(1);
  write(2);
  for (std::int64_t const step : {3, 4, 5}) write_unchecked(folder, step, NAN);
  std::vector<std::string> log;
  auto const newest =
      newest_intact_checkpoint(MPI_COMM_WORLD, folder, [&](std::string const& line) { log.push_back(line); });
  EXPECT_EQ(newest, checkpoint_path(folder, 2));
  if (rank == 0) {
    ASSERT_EQ(log.size(), 3u);
    EXPECT_EQ(log[0],
              fmt::format("skipped checkpoint: {}: is not finite: weights/big", checkpoint_path(folder, 5)));
  }
  EXPECT_EQ(error_of([&] { ArrayFileReader(MPI_COMM_WORLD, checkpoint_path(folder, 5)).require_finite(); }),
            checkpoint_path(folder, 5) + ": is not finite: weights/big");
  write(6, 2); // 6 and 2 are left of those that are finite
  EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint-00000002.h5", "checkpoint-00000003.h5",
                                               "checkpoint-00000004.h5", "checkpoint-00000005.h5",
                                               "checkpoint-00000006.h5"}));
  write(7, 2);
  EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint-00000006.h5", "checkpoint-00000007.h5"}));
}

/// Its first bytes are a seal of format 3, which says of itself that it is whole.
void write_newer(std::string const& path) {
  auto const block = detail::to_block({3, 4096, 1, ""});
  std::ofstream(path) << block << std::string(4096 - block.size(), 'x');
}

TEST_F(Checkpoint, of_which_nobody_can_tell_whether_it_is_intact_is_never_passed_over) {
  write(1);
  std::string const path = write(2);
  auto const choosing = [&] {
    return error_of([&] { newest_intact_checkpoint(MPI_COMM_WORLD, folder, [](auto const&) {}); });
  };
  EXPECT_EQ(choosing(), "");
  uid_t const user = ::geteuid();
  alone([&] { std::filesystem::permissions(folder, std::filesystem::perms::all); });
  alone([&] { std::filesystem::permissions(path, std::filesystem::perms::none); });
  if (user == 0) { // who may read everything
    ASSERT_EQ(::seteuid(65534), 0);
  }
  EXPECT_EQ(choosing(), path + ": cannot be opened: Permission denied");
  if (user == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  alone([&] { std::filesystem::permissions(path, std::filesystem::perms::owner_all); });
  {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    int const next = ::open("/dev/null", O_RDONLY);
    ::close(next);
    rlimit const none{rlim_t(next), before.rlim_max};
    if (rank == size - 1) setrlimit(RLIMIT_NOFILE, &none);
    auto const message = choosing();
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(message, size == 1 ? folder + ": cannot be listed: Too many open files"
                                 : path + ": cannot be opened: Too many open files");
  }
  {
    hdf5::Handle writer;
    alone([&] {
      hdf5::Lock const lock;
      writer = hdf5::Handle(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), path);
    });
    EXPECT_EQ(choosing(), path + ": is held open for writing by another process");
    alone([&] { writer = {}; });
  }
  EXPECT_EQ(choosing(), "");
  auto const third = checkpoint_path(folder, 3);
  alone([&] { write_newer(third); });
  EXPECT_EQ(choosing(), third + ": is of format 3; this version of Prowl reads format 2");
  alone([&] {
    std::filesystem::remove(third);
    hdf5::Lock const lock;
    hdf5::Handle(H5Fcreate(third.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), third);
  });
  EXPECT_TRUE(choosing().starts_with(third + ": not a file of Prowl's, format 2")) << choosing();
  alone([&] {
    std::filesystem::remove(third);
    ::mkfifo(third.c_str(), 0600);
  });
  EXPECT_EQ(choosing(), third + ": is not a regular file");
}

TEST_F(Checkpoint, keeps_the_last_ones_and_never_removes_later_or_other_files) {
  alone([&] {
    std::ofstream(folder + "/checkpoint-notes.h5") << "x";
    std::ofstream(folder + "/checkpoint-00000001.h5.orig") << "x";
    std::ofstream(folder + "/.checkpoint-00000007.h5.tmp") << "half";
    std::ofstream(folder + "/.step-00000003.h5.tmp") << "half";
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
