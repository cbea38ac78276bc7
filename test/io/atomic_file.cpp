#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace {

class AtomicFileTest : public testing::Test {
protected:
  void SetUp() override { fs::create_directory(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::string file(char const* name) const { return (folder / name).string(); }
  std::string content(char const* name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder), {}); }

  fs::path const folder = fs::temp_directory_path() / fmt::format("prowl-atomic-{}", ::getpid());
};

std::string error_of_writing(std::string const& path, std::string const& text) {
  try {
    prowl::write_file(path, text);
  } catch (prowl::Error const& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_F(AtomicFileTest, a_disk_that_is_full_is_said_with_the_reason_and_leaves_what_was_there) {
  prowl::write_file(file("a"), "before");
  EXPECT_EQ(error_of_writing("/dev/full", "text"), "/dev/full: cannot be written: No space left on device");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit const small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  auto const message = error_of_writing(file("a"), std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(message, file("a") + ": cannot be written: File too large");
  EXPECT_EQ(content("a"), "before");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, what_a_killed_process_left_goes_with_the_next_file_in_the_folder) {
  pid_t const child = ::fork();
  if (child == 0) {
    prowl::AtomicFile const unfinished(file("picture.png"));
    std::ofstream(unfinished.path()) << "half";
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(files(), 1);
  prowl::AtomicFile const alive(file("b")); // of a process that lives
  EXPECT_EQ(files(), 0);
  std::ofstream(alive.path()) << "half";
  std::ofstream(file("c.writing-") + std::to_string(child)) << "before hosts were named";
  std::ofstream(file("d.writing-") + std::to_string(child) + "-another.host") << "perhaps alive there";
  std::ofstream(file("e.writing-notes")) << "a user's";
  prowl::write_file(file("a"), "new");
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(files(), 4);
  EXPECT_TRUE(fs::exists(alive.path()));
  EXPECT_FALSE(fs::exists(file("c.writing-") + std::to_string(child)));
}
