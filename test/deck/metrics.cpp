#include <prowl/core/error.hpp>
#include <prowl/io/metrics.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace {

struct MetricsFile : testing::Test {
  std::filesystem::path const folder =
      std::filesystem::temp_directory_path() / ("prowl-metrics-" + std::to_string(::getpid()));
  std::string const path = folder / "metrics.jsonl";

  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string text() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(std::string const& content) const { std::ofstream(path, std::ios::binary) << content; }
};

} // namespace

TEST_F(MetricsFile, holds_a_line_a_step_as_soon_as_it_is_appended) {
  prowl::Metrics metrics(path, 0);
  metrics.append(0, {{"loss", 0.5}, {"images", std::int64_t(64)}, {"note", std::string("a \"b\"")}});
  EXPECT_EQ(text(), "{\"step\":0,\"loss\":0.5,\"images\":64,\"note\":\"a \\\"b\\\"\"}\n");
  metrics.append(1, {{"loss", 0.25}});
  EXPECT_EQ(text().substr(text().find('\n') + 1), "{\"step\":1,\"loss\":0.25}\n");
}

TEST_F(MetricsFile, writes_null_for_numbers_that_are_not_finite) {
  prowl::Metrics metrics(path, 0);
  double const infinity = std::numeric_limits<double>::infinity();
  metrics.append(0, {{"a", std::numeric_limits<double>::quiet_NaN()}, {"b", infinity}, {"c", -infinity}});
  EXPECT_EQ(text(), "{\"step\":0,\"a\":null,\"b\":null,\"c\":null}\n");
}

TEST_F(MetricsFile, resuming_removes_the_steps_that_will_be_done_again) {
  std::string const before = "{\"step\":0,\"loss\":1.5}\n{\"step\":1,\"loss\":1.25}\n";
  write(before + "{\"step\":2,\"loss\":1.0}\n{\"step\":3,\"loss\":0.5}\n");
  prowl::Metrics metrics(path, 2);
  EXPECT_EQ(metrics.removed(), 2);
  EXPECT_EQ(text(), before);
  metrics.append(2, {{"loss", 1.0}});
  EXPECT_EQ(text(), before + "{\"step\":2,\"loss\":1.0}\n");
  // Nothing beside the file is left over.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(MetricsFile, resuming_removes_a_torn_last_line_at_any_byte) {
  std::string const before = "{\"step\":0,\"loss\":1.5}\n";
  std::string const torn = "{\"step\":1,\"loss\":1.25}";
  for (std::size_t bytes = 1; bytes < torn.size(); ++bytes) {
    write(before + torn.substr(0, bytes));
    prowl::Metrics metrics(path, 100);
    EXPECT_EQ(text(), before) << bytes;
    EXPECT_EQ(metrics.removed(), 1) << bytes;
  }
  write(before + torn); // whole but for its line end
  prowl::Metrics metrics(path, 100);
  EXPECT_EQ(text(), before + torn + "\n");
}

TEST_F(MetricsFile, from_step_0_starts_afresh) {
  write("{\"step\":0,\"loss\":1.5}\n");
  prowl::Metrics metrics(path, 0);
  EXPECT_EQ(text(), "");
}

TEST_F(MetricsFile, that_cannot_be_written_is_an_error_with_its_path) {
  std::string const bad = folder / "no" / "metrics.jsonl";
  try {
    prowl::Metrics metrics(bad, 0);
    FAIL();
  } catch (prowl::Error const& error) {
    EXPECT_EQ(std::string(error.what()), bad + ": cannot open: No such file or directory");
  }
  std::filesystem::create_directory(path);
  EXPECT_THROW(prowl::Metrics(path, 0), prowl::Error);
}
