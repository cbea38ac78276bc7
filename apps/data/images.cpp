#include <data/commands.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

namespace fs = std::filesystem;

namespace prowl::data {

namespace {

// What is in a folder, each list in the order of the names.
struct Folder {
  std::vector<fs::path> pictures;
  std::map<std::string, fs::path> captions;                // by the name without .txt
  std::map<std::string, std::vector<std::string>> skipped; // names by kind
};

std::string lower_extension(fs::path const& path) {
  auto extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return extension;
}

char const* kind_of_other(std::string const& extension) {
  for (char const* jpeg : {".jpg", ".jpeg", ".jpe", ".jfif"})
    if (extension == jpeg) return "JPEG pictures";
  return extension == ".webp" ? "WebP pictures" : "other files";
}

void add_caption(Folder& found, fs::path const& path) {
  auto const [other, added] = found.captions.emplace(path.stem().string(), path);
  if (!added)
    throw Error("{}: {} is there too, one caption for a picture expected", path.string(),
                other->second.string());
}

void add(Folder& found, fs::directory_entry const& entry) {
  auto const& path = entry.path();
  auto const extension = lower_extension(path);
  std::error_code error;
  auto const status = entry.status(error);
  if (fs::is_directory(status))
    found.skipped["subfolders"].push_back(path.filename().string());
  else if (!fs::is_regular_file(status))
    found.skipped["links to nothing and devices"].push_back(path.filename().string());
  else if (extension == ".png")
    found.pictures.push_back(path);
  else if (extension == ".txt")
    add_caption(found, path);
  else
    found.skipped[kind_of_other(extension)].push_back(path.filename().string());
}

Folder look_into(std::string const& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw Error("{}: no such folder", folder);
  Folder found;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) add(found, *entries);
  if (error) throw Error("{}: cannot be read: {}", folder, error.message());
  std::sort(found.pictures.begin(), found.pictures.end());

  auto unused = found.captions;
  for (auto const& picture : found.pictures) unused.erase(picture.stem().string());
  for (auto const& [stem, path] : unused)
    found.skipped["captions without a PNG"].push_back(path.filename().string());
  for (auto& [kind, names] : found.skipped) std::sort(names.begin(), names.end());
  return found;
}

std::string counted(std::string const& kind, std::vector<std::string> const& names) {
  constexpr std::size_t shown = 3;
  std::string list;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i)
    list += (i > 0 ? ", " : "") + printable(names[i]);
  if (names.size() > shown) list += fmt::format(" and {} more", names.size() - shown);
  return fmt::format("{}: {} ({})", kind, names.size(), list);
}

void require_pictures(std::string const& folder, Folder const& found) {
  if (!found.pictures.empty()) return;
  std::string rest;
  for (auto const& [kind, names] : found.skipped)
    rest += (rest.empty() ? "; it has " : "; ") + counted(kind, names);
  throw Error("{}: no .png file in this folder{}", folder, rest);
}

void require_captions(Folder const& found) {
  std::vector<std::string> missing;
  for (auto const& picture : found.pictures)
    if (!found.captions.contains(picture.stem().string())) missing.push_back(picture.string());
  if (missing.empty()) return;
  auto const rest =
      missing.size() > 1 ? fmt::format(" (nor those of {} other pictures)", missing.size() - 1) : "";
  throw Error("{}: no caption: {} cannot be read{}", missing[0],
              fs::path(missing[0]).replace_extension(".txt").string(), rest);
}

std::string read_caption(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(fs::file_size(path), '\0');
  if (!file.read(text.data(), std::streamsize(text.size())))
    throw Error("{}: cannot be read: {}", path.string(), std::strerror(errno));
  text = normalised(text, path.string());
  auto const begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) throw Error("{}: empty, a caption expected", path.string());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

} // namespace

void make_images(Options const& options, std::string const& folder) {
  auto const background = parse_colour(options.background);
  auto const found = look_into(folder);
  require_pictures(folder, found);
  require_captions(found);

  std::vector<Sample> samples;
  for (auto const& picture : found.pictures) {
    auto const stem = picture.stem().string();
    auto const& caption = found.captions.at(stem);
    refuse_as_output(options, picture.string());
    refuse_as_output(options, caption.string());
    samples.push_back({read_caption(caption), stem});
  }
  write_samples(options, folder, samples, [&](std::size_t i) {
    return scale(crop_to_square(premultiply(read_png(found.pictures[i].string()))), options.size, background);
  });
  for (auto const& [kind, names] : found.skipped)
    fmt::print(stderr, "prowl-data: {}: skipped {}\n", folder, counted(kind, names));
}

} // namespace prowl::data
