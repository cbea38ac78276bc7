#include <prowl/core/error.hpp>
#include <prowl/io/dataset.hpp>
#include <prowl/io/dataset_writer.hpp>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <build_strings.hpp>

namespace fs = std::filesystem;

namespace {

class DatasetTest : public testing::Test {
protected:
  void SetUp() override { fs::create_directory(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::string file(char const* name) const { return (folder / name).string(); }
  // A data set that h5py wrote; none where Python has no h5py.
  bool make(std::string const& path, std::string const& flaw = "") const {
    auto const command = fmt::format(PROWL_PYTHON " {} {} '{}'", PROWL_TEST_MAKE_DATASET, path, flaw);
    return std::system(command.c_str()) == 0;
  }
  static std::string message(std::string const& path) {
    try {
      prowl::Dataset const dataset(path);
    } catch (prowl::Error const& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path const folder = fs::temp_directory_path() / fmt::format("prowl-dataset-{}", ::getpid());
};

prowl::DatasetLayout small_layout() {
  prowl::DatasetLayout layout;
  layout.size = 3;
  layout.training_count = 2;
  layout.height = 2;
  layout.width = 1;
  layout.encoder = "words";
  layout.tokens = 2;
  layout.text_width = 3;
  layout.pooled_width = 1;
  layout.text_encoding = "by hand";
  layout.source = "this test";
  return layout;
}

} // namespace

TEST_F(DatasetTest, what_is_written_is_read) {
  auto const path = file("a.h5");
  prowl::DatasetWriter writer(path, small_layout());
  for (int i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> const picture{0, 255, 51, 102, std::uint8_t(i), 204};
    writer.append(picture, fmt::format("número {}", i), std::vector<float>(6, float(i)), {0.5f * float(i)});
    EXPECT_FALSE(fs::exists(path));
  }
  writer.finish();
  prowl::Dataset const data(path);
  EXPECT_FALSE(data.latents());
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.training_count(), 2);
  EXPECT_EQ(data.validation_count(), 1);
  EXPECT_EQ(data.channels(), 3);
  EXPECT_EQ(data.height(), 2);
  EXPECT_EQ(data.width(), 1);
  EXPECT_EQ(data.text_encoding(), "by hand");
  EXPECT_EQ(data.source(), "this test");
  EXPECT_EQ(data.caption(1), "número 1");
  std::vector<float> pictures(12), text(12), pooled(2);
  data.read_samples(1, 2, pictures.data());
  // 51 is a fifth of 255, 102 two fifths, 204 four fifths of the way from -1 to 1.
  float const expected[] = {-1, 1, -0.6f, -0.2f, 2 / 127.5f - 1, 0.6f};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(pictures[std::size_t(6 + i)], expected[i], 2e-7f);
  data.read_text(0, 1, 2, text.data());
  EXPECT_EQ(text, (std::vector<float>{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}));
  data.read_pooled(1, 2, pooled.data());
  EXPECT_EQ(pooled, (std::vector<float>{0.5f, 1.0f}));
  EXPECT_THROW(data.read_pooled(2, 2, pooled.data()), prowl::Error);
  EXPECT_THROW(data.caption(3), prowl::Error);
}

TEST_F(DatasetTest, an_unfinished_file_leaves_nothing) {
  {
    prowl::DatasetWriter writer(file("a.h5"), small_layout());
    EXPECT_THROW(writer.append({1, 2}, "", {}, {}), prowl::Error);
    EXPECT_THROW(writer.finish(), prowl::Error);
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(DatasetTest, latents_and_features_made_elsewhere_are_read_as_they_are) {
  if (!make(file("b.h5"))) GTEST_SKIP() << "python3-h5py is not installed";
  prowl::Dataset const data(file("b.h5"));
  EXPECT_TRUE(data.latents());
  EXPECT_EQ(data.size(), 5);
  EXPECT_EQ(data.training_count(), 4);
  EXPECT_EQ(data.text_encoding(), "CLIP-L and T5");
  std::vector<float> latents(5 * 24);
  data.read_samples(0, 5, latents.data());
  float const expected[] = {0, 1, -65504, 0x1p-14f, 0x1p-24f, -0x1p-24f, 65504};
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(latents[i], expected[i]) << i;
  // Rounding to half precision is off by at most 2^-11 of the value, here at most 2.
  for (std::size_t i = 7; i < 120; ++i) EXPECT_NEAR(latents[i], -2 + 4.0 * double(i) / 119, 0x1p-10);

  ASSERT_EQ(data.encoders().size(), 2u);
  EXPECT_EQ(data.encoders()[0].name, "clip");
  EXPECT_EQ(data.encoders()[0].tokens, 2);
  EXPECT_EQ(data.encoders()[0].width, 4);
  EXPECT_EQ(data.encoders()[1].name, "t5");
  std::vector<float> text(8);
  data.read_text(0, 4, 1, text.data());
  EXPECT_EQ(text, (std::vector<float>{32, 33, 34, 35, 36, 37, 38, 39}));
  text.resize(6);
  data.read_text(1, 1, 1, text.data());
  EXPECT_EQ(text, (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(data.pooled_width(), 4);
  EXPECT_EQ(data.caption(1), "piñata");
  EXPECT_EQ(data.caption(2), "");
}

TEST_F(DatasetTest, errors_name_the_file_the_dataset_and_what_was_expected) {
  auto const path = file("c.h5");
  EXPECT_EQ(message(path), path + ": no such data set");
  std::ofstream(path) << "not HDF5";
  EXPECT_NE(message(path).find(path), std::string::npos);
  EXPECT_NE(message(path), "no error");
  if (!make(path)) GTEST_SKIP() << "python3-h5py is not installed";
  std::pair<char const*, char const*> const flaws[] = {
      {"format", ": attribute \"format\" is \"pictures\", \"prowl data set\" expected"},
      {"version", ": data set version 2, 1 expected"},
      {"training_count", ": attribute \"training_count\" is 6, 1 to 5 expected"},
      {"no latents", ": neither /images nor /latents, exactly one of them expected"},
      {"integers", ": /latents: integer numbers of 4 bytes, float16 or float32 expected"},
      {"captions", ": /captions: shape (4), 5 strings of variable length (UTF-8) expected"},
      {"text shape", ": /text/t5/features: shape (5, 6), (5, tokens, width) expected"},
      {"no pooled", ": /pooled: missing, (5, width) expected"},
      {"doubles", ": /pooled: floating-point numbers of 8 bytes, float16 or float32 expected"},
  };
  for (auto const& [flaw, expected] : flaws) {
    ASSERT_TRUE(make(path, flaw));
    EXPECT_EQ(message(path), path + expected);
  }
}

TEST_F(DatasetTest, what_is_not_in_the_file_itself_whole_is_refused) {
  auto const path = file("d.h5");
  if (!make(path)) GTEST_SKIP() << "python3-h5py is not installed";
  EXPECT_EQ(message(path), "no error");
  std::pair<char const*, char const*> const flaws[] = {
      {"external", ": /latents: has external storage: its elements would be read from other files"},
      {"virtual", ": /latents: is virtual: its elements would be read from other files"},
      {"soft link", ": is a soft or an external link, which are not followed"},
      {"external link", ": is a soft or an external link, which are not followed"},
      {"filter", ": /latents: is stored with filter 32000 (lzf), which this HDF5 does not have"},
      {"half of the chunks", ": /latents: was not written whole: it has 2 of 5 chunks"},
      {"never written", ": /latents: was never written"},
      {"huge", ": /latents: says that it has 11258999068426240 bytes"},
      {"too many", ": /latents: 5 x 1073741824 x 1073741824 x 1073741824 elements are more"},
  };
  for (auto const& [flaw, expected] : flaws) {
    ASSERT_TRUE(make(path, flaw));
    EXPECT_TRUE(message(path).starts_with(path + expected)) << flaw << ": " << message(path);
  }
}

TEST_F(DatasetTest, a_value_that_is_not_finite_is_named_by_file_array_sample_and_element) {
  auto const path = file("e.h5");
  if (!make(path)) GTEST_SKIP() << "python3-h5py is not installed";
  std::vector<float> values(5 * 24);
  auto const reading = [&](std::int64_t first, std::int64_t count) -> std::string {
    prowl::Dataset const data(path);
    try {
      data.read_samples(first, count, values.data());
      for (std::int64_t e : {0, 1}) data.read_text(e, first, count, values.data());
      data.read_pooled(first, count, values.data());
    } catch (prowl::Error const& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(reading(0, 5), "");
  ASSERT_TRUE(make(path, "latent NaN"));
  for (std::int64_t first = 0; first <= 3; ++first)
    EXPECT_EQ(reading(first, 5 - first),
              path + ": /latents: sample 3: element (1, 2, 0) is nan, a finite number expected");
  EXPECT_EQ(reading(0, 3), "");
  EXPECT_EQ(reading(4, 1), "");
  ASSERT_TRUE(make(path, "text infinity"));
  EXPECT_EQ(reading(2, 3),
            path + ": /text/t5/features: sample 4: element (2, 1) is -inf, a finite number expected");
  ASSERT_TRUE(make(path, "pooled NaN"));
  EXPECT_EQ(reading(0, 1), path + ": /pooled: sample 0: element (3) is nan, a finite number expected");
}

TEST_F(DatasetTest, a_file_that_changes_while_it_is_open_is_an_error_and_gives_no_zeros) {
  auto const path = file("f.h5");
  for (bool const shorter : {true, false}) {
    if (!make(path)) GTEST_SKIP() << "python3-h5py is not installed";
    prowl::Dataset const data(path);
    std::vector<float> values(24);
    data.read_samples(0, 1, values.data());
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the clock of file systems
    if (shorter)
      fs::resize_file(path, 100);
    else
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(5000) << "other";
    try {
      data.read_samples(4, 1, values.data());
      FAIL() << "no error";
    } catch (prowl::Error const& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path + ": has changed while in use")) << error.what();
    }
  }
}

TEST_F(DatasetTest, what_cannot_be_opened_is_said_with_the_reason) {
  fs::create_directory(folder / "g.h5");
  EXPECT_EQ(message(file("g.h5")), file("g.h5") + ": is not a regular file");
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(file("pipe")), file("pipe") + ": is not a regular file");
  ASSERT_EQ(::symlink("loop", file("loop").c_str()), 0);
  EXPECT_EQ(message(file("loop")), file("loop") + ": cannot be opened: Too many levels of symbolic links");
}
