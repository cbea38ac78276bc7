#include <prowl/core/error.hpp>
#include <prowl/io/folder_lock.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

namespace {

struct FolderLockTest : testing::Test {
  std::string const folder =
      std::filesystem::temp_directory_path() / ("prowl-lock-" + std::to_string(::getpid()));

  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string refused() const {
    try {
      prowl::FolderLock const lock(folder);
    } catch (prowl::Error const& error) {
      return error.what();
    }
    return "";
  }
};

} // namespace

TEST_F(FolderLockTest, has_one_holder_who_is_named) {
  {
    prowl::FolderLock const lock(folder);
    EXPECT_EQ(lock.warning(), "");
    EXPECT_EQ(refused().find(folder + ": in use by process " + std::to_string(::getpid()) + " on "), 0u)
        << refused();
  }
  EXPECT_EQ(refused(), "");
}

TEST_F(FolderLockTest, ends_with_a_process_that_is_killed) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t const child = ::fork();
  if (child == 0) {
    prowl::FolderLock const lock(folder);
    (void)!::write(ready[1], "y", 1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_NE(refused().find("process " + std::to_string(child) + " on"), std::string::npos) << refused();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(refused(), "");
}

TEST_F(FolderLockTest, a_folder_that_is_missing_is_an_error_with_its_path) {
  std::filesystem::remove_all(folder);
  EXPECT_EQ(refused(), folder + "/run.lock: cannot be opened: No such file or directory");
}
