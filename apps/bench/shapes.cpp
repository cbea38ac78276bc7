#include <bench/shapes.hpp>

#include <dit/layout.hpp>

#include <prowl/core/error.hpp>

#include <charconv>
#include <string_view>

namespace prowl::bench {

namespace {

constexpr char const* expected = "expected mmdit-1.3b, -4b, -9b or -15b, mmdit:d=256,L=4 or 64x256*6,256x64";

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    auto const end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

constexpr std::size_t most_matrices = 100000;

int positive(std::string_view digits, std::string const& whole) {
  int value = 0;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1)
    throw Error("--model {}: '{}' is not a positive number; {}", whole, digits, expected);
  return value;
}

dit::ModelConfig parse_mmdit(std::string const& text, std::string_view sizes) {
  dit::ModelConfig config;
  config.channels = 3;
  config.image_size = 32;
  config.encoders = {{"words", 64, 16}};
  config.pooled_width = 64;
  for (auto const part : split(sizes, ',')) {
    auto const equals = part.find('=');
    auto const key = part.substr(0, equals);
    if (equals == std::string_view::npos || (key != "d" && key != "L"))
      throw Error("--model {}: '{}'; {}", text, part, expected);
    (key == "d" ? config.hidden : config.layers) = positive(part.substr(equals + 1), text);
  }
  try {
    validate(config);
  } catch (Error const& error) {
    throw Error("--model {}: {}", text, error.what());
  }
  return config;
}

} // namespace

std::vector<Parameter> parse_shapes(std::string const& text) {
  std::string_view const mmdit = "mmdit:";
  if (text.starts_with(mmdit))
    return dit::parameters(parse_mmdit(text, std::string_view(text).substr(mmdit.size())));
  if (text.starts_with("mmdit-")) return dit::parameters(dit::preset(text));
  std::vector<Parameter> parameters;
  for (auto const part : split(text, ',')) {
    auto const star = part.find('*');
    auto const extents = split(part.substr(0, star), 'x');
    if (extents.size() != 2) throw Error("--model {}: '{}'; {}", text, part, expected);
    int const rows = positive(extents[0], text), columns = positive(extents[1], text);
    int const count = star == std::string_view::npos ? 1 : positive(part.substr(star + 1), text);
    if (parameters.size() + std::size_t(count) > most_matrices)
      throw Error("--model {}: more than {} matrices", text, most_matrices);
    for (int i = 0; i < count; ++i) {
      auto const unit = fmt::format("blocks.{}", parameters.size());
      parameters.push_back({unit + ".weight", {rows, columns}, unit});
    }
  }
  return parameters;
}

} // namespace prowl::bench
