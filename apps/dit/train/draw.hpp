/// Pictures for captions, drawn by all ranks together.
#pragma once

#include <dit/model.hpp>
#include <dit/sampling.hpp>

#include <prowl/comm/communicator.hpp>
#include <prowl/io/dataset.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace prowl::dit {

/// Text features of some captions, row-major: of each encoder (count, T_e, D_e), and pooled (count, P).
struct CaptionFeatures {
  std::int64_t count = 0;
  std::vector<std::vector<float>> text;
  std::vector<float> pooled;
};

/// Throws Error unless the model was trained on hashed words: no other text encoder is part of Prowl.
CaptionFeatures encode_prompts(ModelConfig const& config, std::string const& text_encoding,
                               std::vector<std::string> const& prompts);
/// Those that the data set holds.
CaptionFeatures read_captions(Dataset const& data, std::vector<std::int64_t> const& indices);

/// (count, C, H, W) on every rank; each draws its share. Sample i starts from noise number i of the seed, so the pictures do
/// not depend on the number of ranks. The model's capacity must be at least 2.
std::vector<float> draw(Execution const& exec, Communicator const& world, Model<float>& model,
                        Parameters<float>& parameters, CaptionFeatures const& captions,
                        SamplingOptions const& options, std::uint64_t seed);

/// Writes a grid of pictures of 1 or 3 channels (of others: the first), enlarged to be seen. Throws Error naming the file.
void write_grid(std::string const& path, ModelConfig const& config, std::vector<float> const& samples,
                int columns);

} // namespace prowl::dit
