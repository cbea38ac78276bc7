#include <common/png.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/dataset.hpp>
#include <prowl/io/dataset_writer.hpp>
#include <prowl/io/hashed_text.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <build_strings.hpp>

namespace fs = std::filesystem;

namespace {

struct Result {
  int status;
  std::string text; // both streams
};

// `largest_file`: bytes.
Result prowl_data(std::string const& arguments, std::int64_t largest_file = -1) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  if (largest_file >= 0) {
    rlimit const limit{rlim_t(largest_file), before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::FILE* pipe = ::popen((PROWL_DATA " " + arguments + " 2>&1").c_str(), "r");
  ::setrlimit(RLIMIT_FSIZE, &before);
  Result result{0, {}};
  std::array<char, 256> part{};
  while (std::fgets(part.data(), int(part.size()), pipe)) result.text += part.data();
  result.status = ::pclose(pipe);
  return result;
}

class DataTest : public testing::Test {
protected:
  void SetUp() override { fs::create_directories(folder / "in"); }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(std::string const& name) const { return (folder / name).string(); }
  void write(std::string const& name, std::string const& text) const { std::ofstream(path(name)) << text; }

  fs::path const folder = fs::temp_directory_path() / fmt::format("prowl-data-{}", ::getpid());
};

std::vector<float> picture_of(prowl::Dataset const& data, std::int64_t index) {
  std::vector<float> planes(static_cast<std::size_t>(data.sample_size()));
  data.read_samples(index, 1, planes.data());
  return planes;
}

} // namespace

TEST_F(DataTest, emoji_are_written_with_names_split_and_text) {
  auto const file = path("emoji.h5");
  auto const result = prowl_data("emoji " + file + " --size 32");
  ASSERT_EQ(result.status, 0) << result.text;
  prowl::Dataset const data(file);
  EXPECT_GT(data.size(), 3600);
  EXPECT_EQ(data.channels(), 3);
  EXPECT_EQ(data.height(), 32);
  EXPECT_EQ(data.width(), 32);
  EXPECT_EQ(data.text_encoding(), "hashed words");
  double const share = double(data.validation_count()) / double(data.size());
  EXPECT_GT(share, 0.03);
  EXPECT_LT(share, 0.07);

  std::map<std::string, std::int64_t> captions;
  std::set<std::string> groups[2];
  for (std::int64_t i = 0; i < data.size(); ++i) {
    auto const caption = data.caption(i);
    captions[caption] = i;
    groups[i >= data.training_count()].insert(caption.substr(0, caption.find(':')));
  }
  for (auto const& group : groups[1]) EXPECT_EQ(groups[0].count(group), 0u) << group;
  for (char const* name :
       {"grinning face", "red apple", "flag: France", "keycap: #", "thumbs up: dark skin tone",
        "family: man, woman, girl, boy", "woman technologist", "piñata"})
    EXPECT_EQ(captions.count(name), 1u) << name;

  // The middle of the apple is red, the corners are the background. Values are in [-1, 1].
  auto const apple = picture_of(data, captions.at("red apple"));
  int red = 0;
  for (std::size_t y = 12; y < 24; ++y)
    for (std::size_t x = 10; x < 22; ++x) {
      auto const at = y * 32 + x;
      red += apple[at] > 0.3f && apple[at] > apple[1024 + at] + 0.4f && apple[at] > apple[2048 + at] + 0.4f;
    }
  EXPECT_GT(red, 144 * 8 / 10);
  for (std::size_t const corner : {0, 31, 992, 1023})
    for (std::size_t const plane : {0, 1024, 2048}) EXPECT_EQ(apple[plane + corner], 1.0f);
  // France: blue, white and red stripes from the left.
  auto const flag = picture_of(data, captions.at("flag: France"));
  auto const channel = [&](std::size_t c, std::size_t x) { return flag[c * 1024 + 16 * 32 + x]; };
  EXPECT_GT(channel(2, 6), channel(0, 6) + 0.4f);
  EXPECT_GT(channel(1, 16), 0.6f);
  EXPECT_GT(channel(0, 26), channel(2, 26) + 0.4f);

  // Any program can encode a prompt as the data set's captions were.
  auto const& encoder = data.encoders().at(0);
  EXPECT_EQ(encoder.tokens, 12);
  EXPECT_EQ(encoder.width, 64);
  prowl::HashedText const text(encoder.tokens, encoder.width);
  std::vector<float> features(12 * 64), pooled(64);
  data.read_text(0, captions.at("red apple"), 1, features.data());
  data.read_pooled(captions.at("red apple"), 1, pooled.data());
  EXPECT_EQ(features, text.features("Red, apple!"));
  EXPECT_EQ(pooled, text.pooled("red apple"));
}

TEST_F(DataTest, emoji_without_a_single_glyph_are_skipped_and_counted) {
  write("list.txt", "# comment\n"
                    "1F34E ; fully-qualified     # x E0.6 red apple\n"
                    "2639  ; unqualified         # x E0.7 frowning face\n"
                    "1F34E 1F34F ; fully-qualified # x E0.6 two apples\n"
                    "E000  ; fully-qualified     # x E99.0 private character\n");
  auto const result = prowl_data(fmt::format("emoji {} --list {}", path("a.h5"), path("list.txt")));
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.text.find("2 emoji skipped"), std::string::npos) << result.text;
  prowl::Dataset const data(path("a.h5"));
  EXPECT_EQ(data.size(), 1);
  EXPECT_EQ(data.caption(0), "red apple");
}

TEST_F(DataTest, images_are_cropped_scaled_by_area_and_put_on_the_background) {
  // 6 x 4: the outer columns are cut. The square's quarters: black and white columns, red, clear, half-clear
  // blue.
  prowl::Picture picture(6, 4, 4);
  for (int y = 0; y < 4; ++y)
    for (int x = 1; x < 5; ++x) {
      auto* p = picture.pixel(x, y);
      bool const left = x < 3, top = y < 2;
      if (left && top) p[0] = p[1] = p[2] = x == 1 ? 0 : 255;
      if (!left && top) p[0] = 255;
      if (!left && !top) p[2] = 255;
      p[3] = left && !top ? 0 : !left && !top ? 51 : 255;
    }
  // "a" is for validation by its hash and comes last.
  for (char const* name : {"a", "b"}) {
    prowl::write_png(path(fmt::format("in/{}.png", name)), picture);
    write(fmt::format("in/{}.txt", name), fmt::format("  picture {}\r\n", name));
  }
  auto const result = prowl_data(fmt::format(
      "images {} {} --size 2 --background '#ff8000' --tokens 3 --width 5", path("in"), path("out.h5")));
  ASSERT_EQ(result.status, 0) << result.text;
  prowl::Dataset const data(path("out.h5"));
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.training_count(), 1);
  EXPECT_EQ(data.caption(0), "picture b");
  EXPECT_EQ(data.caption(1), "picture a");
  EXPECT_EQ(data.encoders().at(0).tokens, 3);
  EXPECT_EQ(data.pooled_width(), 5);
  // 127.5 rounds up; a fifth of blue and four fifths of (255, 128, 0).
  int const expected[] = {128, 255, 255, 204, 128, 0, 128, 102, 128, 0, 0, 51};
  auto const planes = picture_of(data, 0);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR((planes[i] + 1) * 127.5f, float(expected[i]), 1e-3f) << i;

  ASSERT_EQ(prowl_data(fmt::format("export {} {} --count 1", path("out.h5"), path("back"))).status, 0);
  auto const back = prowl::read_png(path("back/000000.png"));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(back.pixel(i % 2, i / 2 % 2)[i / 4], expected[i]);
  EXPECT_FALSE(fs::exists(path("back/000001.png")));
  EXPECT_NE(prowl_data("info " + path("out.h5")).text.find("3 tokens of 5 features"), std::string::npos);
}

TEST_F(DataTest, problems_name_the_file_and_leave_no_data_set) {
  auto const expect = [&](std::string const& arguments, std::string const& message, int status = 2) {
    auto const result = prowl_data(arguments);
    EXPECT_TRUE(WIFEXITED(result.status) && WEXITSTATUS(result.status) == status) << result.status;
    EXPECT_EQ(result.text.substr(0, 7 + message.size()), "error: " + message);
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
    for (auto const& entry : fs::directory_iterator(folder)) EXPECT_EQ(entry.path().filename(), "in");
  };
  auto const run = "images " + path("in") + " " + path("out.h5");
  expect(run, path("in") + ": no .png file in this folder");
  prowl::Picture noise(64, 64, 3);
  for (std::size_t i = 0; i < noise.bytes.size(); ++i) noise.bytes[i] = std::uint8_t((i * i) >> 3);
  prowl::write_png(path("in/a.png"), noise);
  expect(run, path("in/a.png") + ": no caption: " + path("in/a.txt") + " cannot be read");
  write("in/a.txt", "\n");
  expect(run, path("in/a.txt") + ": empty, a caption expected");
  write("in/a.txt", "noise");
  prowl::write_png(path("in/b.png"), noise);
  write("in/b.txt", "noise");
  fs::resize_file(path("in/b.png"), fs::file_size(path("in/b.png")) / 2);
  expect(run, path("in/b.png") + ": cannot be read as PNG: ");
  write("in/b.png", "no picture");
  expect(run, path("in/b.png") + ": cannot be read as PNG: ");
  fs::remove(path("in/b.png"));
  expect(run + " --background pink", "background \"pink\": white, black, grey or #rrggbb expected");
  expect("images " + path("none") + " " + path("out.h5"), path("none") + ": no such folder");
  expect("images " + path("in") + " " + path("in/a.png/out.h5"),
         path("in/a.png/out.h5") + ": cannot be written: there is no", 1);
  write("in/a.txt", "caf\xe9");
  expect("images " + path("in") + " " + path("new/out.h5"), path("in/a.txt") + ": byte 0xe9 at offset 3");
  write("in/a.txt", "noise");
  write("in/b.png", "no picture");
  expect("images " + path("in") + " " + path("new/deep/out.h5"),
         path("in/b.png") + ": cannot be read as PNG: ");
  fs::remove(path("in/b.png"));
  expect("emoji " + path("out.h5") + " --font " + path("f.ttf"), path("f.ttf") + ": no such font");
  expect("emoji " + path("out.h5") + " --list " + path("l.txt"), path("l.txt") + ": cannot be read");
  expect("info " + path("out.h5"), path("out.h5") + ": no such data set");
  write("in/list", "1F34E ; fully-qualified # x E0.6 red caf\xe9\n");
  expect("emoji " + path("out.h5") + " --list " + path("in/list"),
         path("in/list") + ": line 1: byte 0xe9 at offset ");
}

TEST_F(DataTest, folders_of_an_output_are_created) {
  write("list.txt", "1F34E ; fully-qualified # x E0.6 red apple\n");
  auto const emoji = "emoji " + path("new/deep/a.h5") + " --size 4 --list " + path("list.txt");
  ASSERT_EQ(prowl_data(emoji).status, 0);
  ASSERT_EQ(prowl_data("export " + path("new/deep/a.h5") + " " + path("other/deep")).status, 0);
  EXPECT_EQ(prowl::read_png(path("other/deep/000000.png")).width, 4);
  prowl::write_png(path("third/deep/a.png"), prowl::Picture(1, 1, 3));
  EXPECT_TRUE(fs::exists(path("third/deep/a.png")));
}

// A limit of the file's size stands for a full disk: writing fails in the same places.
TEST_F(DataTest, a_full_disk_is_one_message_and_leaves_nothing) {
  for (int i = 0; i < 20; ++i) {
    prowl::write_png(path(fmt::format("in/{}.png", i)), prowl::Picture(2, 2, 3));
    write(fmt::format("in/{}.txt", i), std::string(20000, 'a') + std::to_string(i));
  }
  auto const run = "images " + path("in") + " " + path("new/out.h5") + " --size 32";
  ASSERT_EQ(prowl_data(run).status, 0);
  auto const size = std::int64_t(fs::file_size(path("new/out.h5")));
  EXPECT_LT(size, 20 * (3072 + 12 * 64 * 4 + 64 * 4 + 20000) + (1 << 16));
  fs::remove_all(path("new"));
  // Before the arrays, between them, before the captions, at the last byte.
  for (auto const limit :
       {std::int64_t(1), std::int64_t(4000), size / 8, size / 4, size / 2, size * 3 / 4, size - 1}) {
    auto const result = prowl_data(run, limit);
    EXPECT_TRUE(WIFEXITED(result.status) && WEXITSTATUS(result.status) == 1) << result.status;
    EXPECT_EQ(result.text.substr(0, result.text.find(", ")),
              "error: " + path("new/out.h5") + ": cannot be written")
        << limit;
    EXPECT_NE(result.text.find("File too large\n"), std::string::npos) << result.text;
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
    EXPECT_FALSE(fs::exists(path("new")));
  }
  ASSERT_EQ(prowl_data(run, 4 * size).status, 0);
  auto const exported = prowl_data("export " + path("new/out.h5") + " " + path("back"), 50);
  EXPECT_TRUE(WIFEXITED(exported.status) && WEXITSTATUS(exported.status) == 1);
  EXPECT_NE(exported.text.find(path("back/000000.png") + ": cannot be written: "), std::string::npos)
      << exported.text;
  EXPECT_TRUE(fs::is_empty(path("back")));
}

TEST_F(DataTest, a_writer_takes_captions_in_utf8_alone) {
  prowl::DatasetLayout layout;
  layout.size = layout.training_count = layout.height = layout.width = 1;
  layout.encoder = "words";
  layout.tokens = layout.text_width = layout.pooled_width = 1;
  layout.source = "caf\xe9";
  auto const append = [](prowl::DatasetWriter& writer, std::string const& caption) {
    writer.append(std::vector<std::uint8_t>(3), caption, {0.0f}, {0.0f});
  };
  {
    prowl::DatasetWriter writer(path("a.h5"), layout);
    for (auto const& caption : {std::string("caf\xe9"), std::string("red\0", 4)}) {
      try {
        append(writer, caption);
        FAIL() << "no error";
      } catch (prowl::Error const& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, path("a.h5").size() + 20),
                  path("a.h5") + ": sample 0: caption:");
      }
    }
    append(writer, "cafe\u0301");
    writer.finish();
  }
  prowl::Dataset const data(path("a.h5"));
  EXPECT_EQ(data.caption(0), "caf\u00e9");
  EXPECT_EQ(data.source(), "caf\ufffd");
}
