#include <data/commands.hpp>
#include <prowl/core/error.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

namespace prowl::data {

namespace {

std::string read_caption(fs::path const& picture) {
  auto const path = fs::path(picture).replace_extension(".txt");
  std::ifstream file(path);
  if (!file) throw Error("{}: no caption: {} cannot be read", picture.string(), path.string());
  std::string text(std::istreambuf_iterator<char>(file), {});
  auto const begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) throw Error("{}: empty, a caption expected", path.string());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

} // namespace

void make_images(Options const& options, std::string const& folder) {
  auto const background = parse_colour(options.background);
  if (!fs::is_directory(folder)) throw Error("{}: no such folder", folder);
  std::vector<fs::path> pictures;
  for (auto const& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".png") pictures.push_back(entry.path());
  if (pictures.empty()) throw Error("{}: no .png file in this folder", folder);
  std::sort(pictures.begin(), pictures.end());

  std::vector<Sample> samples;
  for (auto const& path : pictures) samples.push_back({read_caption(path), path.stem().string()});
  write_samples(options, folder, samples, [&](std::size_t i) {
    return scale(crop_to_square(premultiply(read_png(pictures[i].string()))), options.size, background);
  });
}

} // namespace prowl::data
