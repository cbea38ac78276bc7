#include "fixture.hpp"

#include <sys/resource.h>

#include <csignal>

using namespace checkpoint_test;

namespace {

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// While it lives, writing beyond `bytes` of a file fails in this process, as on a full disk.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit const now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  FileSizeLimit(FileSizeLimit const&) = delete;
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

private:
  rlimit before_{};
};

TEST_F(Checkpoint, failing_on_any_one_rank_fails_on_all_and_leaves_what_was_there) {
  write(1);
  write(2);
  for (int failing = 0; failing < size; ++failing) {
    Data const d = make(MPI_COMM_WORLD, Division::even);
    std::string message;
    {
      FileSizeLimit const limit(rank == failing ? 4096 : RLIM_INFINITY);
      message = error_of([&] { write_checkpoint(MPI_COMM_WORLD, folder, 3, d.contents, 1); });
    }
    EXPECT_TRUE(contains(message, folder)) << message;
    EXPECT_TRUE(contains(message, failing == 0 ? "cannot reserve" : "cannot write")) << message;
    EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint-00000001.h5", "checkpoint-00000002.h5"}));
    expect_read(MPI_COMM_WORLD, checkpoint_path(folder, 2), Division::ceil);
  }
  write(3, 1);
  EXPECT_EQ(files(), std::vector<std::string>{"checkpoint-00000003.h5"});
}

TEST_F(Checkpoint, that_fails_while_replacing_one_of_the_same_step_leaves_it) {
  std::string const path = write(1);
  Data const d = make(MPI_COMM_WORLD, Division::even);
  std::string message;
  {
    FileSizeLimit const limit(rank == size - 1 ? 4096 : RLIM_INFINITY);
    message = error_of([&] { write_checkpoint(MPI_COMM_WORLD, folder, 1, d.contents, 0); });
  }
  EXPECT_NE(message, "");
  expect_read(MPI_COMM_WORLD, path, Division::even);
}

TEST_F(Checkpoint, into_a_folder_that_cannot_be_written_is_one_clear_error) {
  Data const d = make(MPI_COMM_WORLD, Division::ceil);
  auto const writing = [&](std::string const& where) {
    return error_of([&] { write_checkpoint(MPI_COMM_WORLD, where, 1, d.contents, 1); });
  };
  EXPECT_TRUE(contains(writing(folder + "/none"), folder + "/none"));
  alone([&] { std::ofstream(folder + "/file") << "x"; });
  EXPECT_TRUE(contains(writing(folder + "/file"), folder + "/file"));
  EXPECT_TRUE(contains(writing("/proc/self"), "/proc/self/.checkpoint-00000001.h5.tmp: cannot open"));
  EXPECT_TRUE(contains(error_of([&] { write_array_file(MPI_COMM_WORLD, folder + "/none/x.h5", d.contents); }),
                       folder + "/none/.x.h5.tmp"));
  EXPECT_EQ(files(), std::vector<std::string>{"file"});
}

TEST_F(Checkpoint, of_rows_that_are_no_partition_or_of_bad_arrays_is_refused_by_the_arrays_name) {
  std::vector<float> const data(100);
  auto const refusal = [&](std::int64_t begin, std::int64_t end, float const* p) {
    ArrayFileContents c;
    c.arrays = {{"weights/x", {10, 2}, begin, end, p}};
    auto const message = error_of([&] { write_checkpoint(MPI_COMM_WORLD, folder, 1, c, 1); });
    EXPECT_TRUE(contains(message, "weights/x") || message.empty()) << message;
    return message;
  };
  bool const last = rank == size - 1;
  EXPECT_TRUE(contains(refusal(0, last ? 9 : 0, data.data()), "exactly once"));
  EXPECT_TRUE(contains(refusal(1, last ? 10 : 1, data.data()), "exactly once"));
  EXPECT_TRUE(contains(refusal(0, 0, data.data()), "exactly once"));
  if (size > 1) {
    EXPECT_TRUE(contains(refusal(0, 10, data.data()), "exactly once"));
    EXPECT_TRUE(contains(refusal(last ? 4 : 0, last ? 10 : rank == 0 ? 6 : 0, data.data()), "exactly once"));
  }
  EXPECT_TRUE(contains(refusal(0, last ? 11 : 0, data.data()), "do not exist"));
  EXPECT_TRUE(contains(refusal(0, last ? 10 : 0, nullptr), "no data"));
  EXPECT_EQ(files(), std::vector<std::string>{});
  EXPECT_EQ(refusal(0, last ? 10 : 0, data.data()), "");
}

TEST_F(Checkpoint, of_different_lists_on_the_ranks_is_refused) {
  if (size == 1) GTEST_SKIP() << "needs two ranks";
  Data d = make(MPI_COMM_WORLD, Division::ceil);
  if (rank == size - 1) d.contents.arrays.pop_back();
  EXPECT_TRUE(contains(error_of([&] { write_checkpoint(MPI_COMM_WORLD, folder, 1, d.contents, 1); }),
                       "do not give the same list"));
}

} // namespace
