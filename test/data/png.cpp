#include <common/png.hpp>
#include <prowl/core/error.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace fs = std::filesystem;

TEST(Png, what_is_written_is_read) {
  prowl::Picture picture(3, 2, 3);
  for (std::size_t i = 0; i < 18; ++i) picture.bytes[i] = std::uint8_t(14 * i);
  auto const path = (fs::temp_directory_path() / fmt::format("prowl-png-{}.png", ::getpid())).string();
  prowl::write_png(path, picture);
  auto const read = prowl::read_png(path);
  fs::remove(path);
  EXPECT_EQ(read.width, 3);
  EXPECT_EQ(read.height, 2);
  ASSERT_EQ(read.channels, 4);
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 3; ++x) {
      for (int c = 0; c < 3; ++c) EXPECT_EQ(read.pixel(x, y)[c], picture.pixel(x, y)[c]);
      EXPECT_EQ(read.pixel(x, y)[3], 255);
    }
}

TEST(Png, an_unwritable_file_is_named) {
  try {
    prowl::write_png("/dev/null/a.png", prowl::Picture(1, 1, 3));
    FAIL() << "no error";
  } catch (prowl::Error const& error) {
    EXPECT_STREQ(error.what(), "/dev/null/a.png: cannot be written: there is no folder /dev/null, and it "
                               "cannot be created: Not a directory");
  }
}

TEST(Png, a_grid_has_its_pictures_row_by_row) {
  std::vector<prowl::Picture> pictures;
  for (int i = 0; i < 5; ++i) pictures.emplace_back(2, 3, 3, std::uint8_t(10 * i));
  auto const grid = prowl::grid(pictures, 3, 1);
  EXPECT_EQ(grid.width, 10);
  EXPECT_EQ(grid.height, 9);
  EXPECT_EQ(grid.pixel(0, 0)[0], 255);
  EXPECT_EQ(grid.pixel(1, 1)[0], 0);
  EXPECT_EQ(grid.pixel(8, 3)[2], 20);
  EXPECT_EQ(grid.pixel(3, 1)[0], 255);
  EXPECT_EQ(grid.pixel(5, 7)[1], 40);
  EXPECT_EQ(grid.pixel(8, 7)[1], 255);
  pictures.emplace_back(2, 2, 3);
  EXPECT_THROW(prowl::grid(pictures, 3, 1), prowl::Error);
}

TEST(Png, planes_are_rounded_and_clamped) {
  float const planes[] = {-1, 1, 0, -7, 7, 0.2f};
  auto const picture = prowl::from_planes(planes, 1, 2);
  EXPECT_EQ(picture.bytes, (std::vector<std::uint8_t>{0, 128, 255, 255, 0, 153}));
}
