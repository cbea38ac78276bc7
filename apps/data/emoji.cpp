#include <data/commands.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/text.hpp>

#include <ft2build.h>
#include FT_FREETYPE_H
#include <hb-ft.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

namespace prowl::data {

namespace {

struct Emoji {
  std::vector<std::uint32_t> sequence;
  std::string name;
};

// A line of emoji-test.txt: "1F34E ; fully-qualified # 🍎 E0.6 red apple".
std::optional<Emoji> parse_line(std::string const& line) {
  auto const semicolon = line.find(';'), hash = line.find('#');
  if (semicolon == std::string::npos || hash == std::string::npos || hash < semicolon) return {};
  std::istringstream status(line.substr(semicolon + 1, hash - semicolon - 1));
  std::string word;
  if (!(status >> word) || word != "fully-qualified") return {};

  Emoji emoji;
  std::istringstream codes(line.substr(0, semicolon));
  for (std::uint32_t code = 0; codes >> std::hex >> code;) emoji.sequence.push_back(code);
  std::istringstream comment(line.substr(hash + 1));
  std::string symbol, version;
  comment >> symbol >> version >> std::ws;
  std::getline(comment, emoji.name);
  if (auto const end = emoji.name.find_last_not_of(" \r\t"); end != std::string::npos)
    emoji.name.resize(end + 1);
  if (emoji.sequence.empty() || emoji.name.empty() || version.empty() || version[0] != 'E') return {};
  return emoji;
}

std::vector<Emoji> read_list(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw Error("{}: cannot be read; Debian: apt-get install unicode-data", path);
  std::vector<Emoji> list;
  int number = 0;
  for (std::string line; std::getline(file, line);)
    if (auto emoji = parse_line(normalised(line, fmt::format("{}: line {}", path, ++number))))
      list.push_back(std::move(*emoji));
  if (list.empty())
    throw Error("{}: no fully-qualified emoji in it, Unicode's emoji-test.txt expected", path);
  return list;
}

// A font of colour bitmaps: sequences to glyphs by HarfBuzz, glyphs to pictures by FreeType.
class EmojiFont {
public:
  explicit EmojiFont(std::string path);

  // The one glyph, with a picture, that draws the sequence; none where the font has no such.
  std::optional<FT_UInt> glyph(std::vector<std::uint32_t> const& sequence);
  Premultiplied picture(FT_UInt glyph);

private:
  template <auto function>
  struct Call {
    template <class T>
    void operator()(T* object) const {
      function(object);
    }
  };

  std::string path_;
  std::unique_ptr<FT_LibraryRec_, Call<FT_Done_FreeType>> library_;
  std::unique_ptr<FT_FaceRec_, Call<FT_Done_Face>> face_;
  std::unique_ptr<hb_font_t, Call<hb_font_destroy>> font_;
  std::unique_ptr<hb_buffer_t, Call<hb_buffer_destroy>> buffer_;
};

EmojiFont::EmojiFont(std::string path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_))
    throw Error("{}: no such font; Debian: apt-get install fonts-noto-color-emoji", path_);
  FT_Library library = nullptr;
  if (FT_Init_FreeType(&library) != 0) throw Error("FreeType cannot be started");
  library_.reset(library);
  FT_Face face = nullptr;
  if (FT_New_Face(library, path_.c_str(), 0, &face) != 0) throw Error("{}: cannot be read as a font", path_);
  face_.reset(face);
  if (face->num_fixed_sizes < 1 || FT_Select_Size(face, 0) != 0)
    throw Error("{}: holds no colour bitmaps, a font with a CBDT table expected", path_);
  font_.reset(hb_ft_font_create_referenced(face));
  buffer_.reset(hb_buffer_create());
}

std::optional<FT_UInt> EmojiFont::glyph(std::vector<std::uint32_t> const& sequence) {
  auto* const buffer = buffer_.get();
  hb_buffer_reset(buffer);
  // Variation selectors and joiners that took part in no ligature leave no glyph behind.
  hb_buffer_set_flags(buffer, HB_BUFFER_FLAG_REMOVE_DEFAULT_IGNORABLES);
  hb_buffer_add_utf32(buffer, sequence.data(), int(sequence.size()), 0, int(sequence.size()));
  hb_buffer_guess_segment_properties(buffer);
  hb_shape(font_.get(), buffer, nullptr, 0);
  unsigned count = 0;
  auto const* glyphs = hb_buffer_get_glyph_infos(buffer, &count);
  if (count != 1 || glyphs[0].codepoint == 0) return {};
  if (FT_Load_Glyph(face_.get(), glyphs[0].codepoint, FT_LOAD_COLOR | FT_LOAD_BITMAP_METRICS_ONLY) != 0)
    return {};
  return glyphs[0].codepoint;
}

Premultiplied EmojiFont::picture(FT_UInt glyph) {
  if (FT_Load_Glyph(face_.get(), glyph, FT_LOAD_COLOR) != 0 ||
      face_->glyph->bitmap.pixel_mode != FT_PIXEL_MODE_BGRA)
    throw Error("{}: glyph {} has no colour bitmap", path_, glyph);
  auto const& bitmap = face_->glyph->bitmap;
  Premultiplied result{int(bitmap.width), int(bitmap.rows), {}};
  result.values.reserve(std::size_t(bitmap.width) * bitmap.rows * 4);
  for (int y = 0; y < result.height; ++y)
    for (int x = 0; x < result.width; ++x) {
      unsigned char const* bgra = bitmap.buffer + y * bitmap.pitch + 4 * x;
      for (int const c : {2, 1, 0, 3}) result.values.push_back(float(bgra[c]));
    }
  return result;
}

} // namespace

void make_emoji(Options const& options, std::string const& list, std::string const& font_path) {
  auto const background = parse_colour(options.background);
  refuse_as_output(options, list);
  refuse_as_output(options, font_path);
  EmojiFont font(font_path);
  std::vector<Sample> samples;
  std::vector<FT_UInt> glyphs;
  std::size_t skipped = 0;
  for (auto const& emoji : read_list(list)) {
    if (auto const glyph = font.glyph(emoji.sequence)) {
      samples.push_back({emoji.name, emoji.name.substr(0, emoji.name.find(':'))});
      glyphs.push_back(*glyph);
    } else {
      ++skipped;
    }
  }
  write_samples(options, fmt::format("{} drawn with {}", list, font_path), samples, [&](std::size_t i) {
    return scale(pad_to_square(font.picture(glyphs[i])), options.size, background);
  });
  if (skipped > 0) fmt::print("{} emoji skipped: the font has no single glyph for them\n", skipped);
}

} // namespace prowl::data
