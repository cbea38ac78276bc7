/// The sizes of an MMDiT.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prowl::dit {

/// A frozen text encoder, whose token features are an input of the model.
struct Encoder {
  std::string name;
  int width;  ///< D_e, features of a token
  int tokens; ///< T_e, tokens of a caption, padded
};

/// Far above any model's; at these, what is counted and allocated is within 64 bits, and rows within 32.
constexpr int most_grid = 1 << 10;   ///< patches along a side
constexpr int most_tokens = 1 << 20; ///< of an image, and of all encoders
constexpr int most_hidden = 1 << 16, most_layers = 10000;

struct ModelConfig {
  int hidden = 0;      ///< d, a multiple of 64
  int layers = 0;      ///< L
  int patch = 2;       ///< p
  int channels = 16;   ///< C, of a latent
  int image_size = 64; ///< height and width of a latent
  std::vector<Encoder> encoders;
  int pooled_width = 2048; ///< P, of the pooled text features

  static constexpr int head_size = 64;
  int heads() const { return hidden / head_size; }
  int grid() const { return image_size / patch; }
  int image_tokens() const { return grid() * grid(); }
  int text_tokens() const;
  int tokens() const { return image_tokens() + text_tokens(); }
  int patch_size() const { return patch * patch * channels; }
  int pixels() const { return image_size * image_size; }
};

/// The paper's models: "mmdit-1.3b", "mmdit-4b", "mmdit-9b", "mmdit-15b". Throws Error for another name.
ModelConfig preset(std::string const& name);

/// Throws Error for sizes that no model can have.
void validate(ModelConfig const& config);

/// How many samples can be computed at once: rows of arrays are counted in 32 bits.
std::int64_t most_samples(ModelConfig const& config);

} // namespace prowl::dit
