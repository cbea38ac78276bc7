#include <dit/config.hpp>

#include <prowl/core/error.hpp>

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
  auto const positive = [](char const* what, int value) {
    if (value < 1) throw Error("model: {} is {}, expected at least 1", what, value);
  };
  positive("hidden", config.hidden);
  positive("layers", config.layers);
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
  std::set<std::string> names;
  for (auto const& encoder : config.encoders) {
    if (encoder.name.empty() || encoder.name.find_first_of("./") != std::string::npos)
      throw Error("model: text encoder \"{}\": expected a name without '.' and '/'", encoder.name);
    if (!names.insert(encoder.name).second)
      throw Error("model: two text encoders are named \"{}\"", encoder.name);
    positive(("width of text encoder " + encoder.name).c_str(), encoder.width);
    positive(("tokens of text encoder " + encoder.name).c_str(), encoder.tokens);
  }
}

} // namespace prowl::dit
