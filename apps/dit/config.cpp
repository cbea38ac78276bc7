#include <dit/config.hpp>

#include <prowl/core/checked.hpp>
#include <prowl/core/error.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace prowl::dit {

int ModelConfig::text_tokens() const {
  int sum = 0;
  for (auto const& encoder : encoders) sum += encoder.tokens;
  return sum;
}

ModelConfig preset(std::string const& name) {
  struct Size {
    char const* name;
    int hidden, layers;
  };
  static constexpr Size sizes[] = {
      {"mmdit-1.3b", 1216, 19}, {"mmdit-4b", 1920, 24}, {"mmdit-9b", 2560, 32}, {"mmdit-15b", 2880, 40}};
  for (auto const& size : sizes)
    if (name == size.name) {
      ModelConfig config;
      config.hidden = size.hidden;
      config.layers = size.layers;
      config.encoders = {{"clip_l", 768, 77}, {"clip_g", 1280, 77}, {"t5", 4096, 256}};
      return config;
    }
  throw Error("model preset \"{}\": expected mmdit-1.3b, mmdit-4b, mmdit-9b or mmdit-15b", name);
}

void validate(ModelConfig const& config) {
  auto const positive = [](std::string const& what, std::int64_t value,
                           std::int64_t most = std::numeric_limits<int>::max()) {
    if (value < 1 || value > most) throw Error("model: {} is {}, expected 1 to {}", what, value, most);
  };
  positive("hidden", config.hidden, most_hidden);
  positive("layers", config.layers, most_layers);
  positive("patch", config.patch);
  positive("channels", config.channels);
  positive("image_size", config.image_size);
  positive("pooled_width", config.pooled_width);
  if (config.hidden % ModelConfig::head_size != 0)
    throw Error("model: hidden is {}, expected a multiple of {} (the size of a head)", config.hidden,
                ModelConfig::head_size);
  if (config.image_size % config.patch != 0)
    throw Error("model: image_size is {}, expected a multiple of the patch, {}", config.image_size,
                config.patch);
  if (config.encoders.empty()) throw Error("model: no text encoder, expected at least one");
  positive("number of patches along a side, image_size / patch,", config.grid(), most_grid);
  positive("number of elements of a sample, channels x image_size^2,",
           checked_product({config.channels, config.image_size, config.image_size},
                           "model: elements of a sample"));
  std::set<std::string> names;
  std::int64_t text_tokens = 0;
  for (auto const& encoder : config.encoders) {
    if (encoder.name.empty() || encoder.name.find_first_of("./") != std::string::npos)
      throw Error("model: text encoder \"{}\": expected a name without '.' and '/'", encoder.name);
    if (!names.insert(encoder.name).second)
      throw Error("model: two text encoders are named \"{}\"", encoder.name);
    positive("width of text encoder " + encoder.name, encoder.width);
    positive("tokens of text encoder " + encoder.name, encoder.tokens, most_tokens);
    positive("features of a caption of text encoder " + encoder.name,
             std::int64_t(encoder.width) * encoder.tokens);
    text_tokens += encoder.tokens;
  }
  positive("number of text tokens", text_tokens, most_tokens);
}

std::int64_t most_samples(ModelConfig const& config) {
  // A row a token, or a head of each 32 tokens: see head_norm_partials.
  std::int64_t const rows =
      std::max<std::int64_t>(config.tokens(), std::int64_t(config.heads()) * (config.tokens() / 32 + 1));
  return std::numeric_limits<int>::max() / rows;
}

} // namespace prowl::dit
