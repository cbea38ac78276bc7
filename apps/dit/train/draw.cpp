#include <dit/train/draw.hpp>

#include <dit/noise.hpp>

#include <common/png.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/hashed_text.hpp>
#include <prowl/io/loader.hpp>
#include <prowl/io/text.hpp>

#include <algorithm>
#include <cmath>

namespace prowl::dit {

namespace {

void append(std::vector<float>& to, std::vector<float> const& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// The inputs of captions [first, first + count) on the device.
Input<float> upload(ModelConfig const& config, CaptionFeatures const& captions, std::int64_t first,
                    std::int64_t count) {
  using Host = Kokkos::View<float const*, HostMemory>;
  auto const part = [&](auto const& view, std::vector<float> const& values, std::int64_t each) {
    Kokkos::deep_copy(Vector<float>(view.data(), view.size()),
                      Host(values.data() + first * each, std::size_t(count * each)));
  };
  Input<float> input;
  for (std::size_t e = 0; e < config.encoders.size(); ++e) {
    auto const& encoder = config.encoders[e];
    input.text.emplace_back("text", count, encoder.tokens, encoder.width);
    part(input.text.back(), captions.text[e], std::int64_t(encoder.tokens) * encoder.width);
  }
  input.pooled = Matrix<float>("pooled", count, config.pooled_width);
  part(input.pooled, captions.pooled, config.pooled_width);
  return input;
}

/// An RGB picture of one sample, each pixel `zoom` x `zoom`.
Picture picture(ModelConfig const& config, float const* sample, int zoom) {
  int const side = config.image_size;
  Picture result(side * zoom, side * zoom, 3);
  for (int y = 0; y < side * zoom; ++y)
    for (int x = 0; x < side * zoom; ++x)
      for (int c = 0; c < 3; ++c) {
        int const plane = config.channels == 3 ? c : 0;
        float const value = sample[(plane * side + y / zoom) * side + x / zoom];
        result.pixel(x, y)[c] = std::uint8_t(std::lround((std::clamp(value, -1.0f, 1.0f) + 1) * 127.5f));
      }
  return result;
}

} // namespace

CaptionFeatures encode_prompts(ModelConfig const& config, std::string const& text_encoding,
                               std::vector<std::string> const& prompts) {
  if (text_encoding != hashed_words || config.encoders.size() != 1)
    throw Error("prompts: the model was trained with text features '{}', expected '{}'; give captions of its "
                "data set",
                text_encoding, hashed_words);
  HashedText const hash(config.encoders[0].tokens, config.encoders[0].width);
  CaptionFeatures result;
  result.count = std::int64_t(prompts.size());
  result.text.resize(1);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].starts_with('@'))
      throw Error("prompt \"{}\": no file is read, expected the prompt itself", prompts[i]);
    auto const prompt = normalised(prompts[i], fmt::format("prompt {}", i + 1));
    append(result.text[0], hash.features(prompt));
    append(result.pooled, hash.pooled(prompt));
  }
  return result;
}

CaptionFeatures read_captions(Dataset const& data, std::vector<std::int64_t> const& indices) {
  CaptionFeatures result;
  result.count = std::int64_t(indices.size());
  result.text.resize(data.encoders().size());
  result.pooled.resize(std::size_t(result.count * data.pooled_width()));
  for (std::size_t e = 0; e < result.text.size(); ++e) {
    auto const each = data.encoders()[e].tokens * data.encoders()[e].width;
    result.text[e].resize(std::size_t(result.count * each));
    for (std::size_t i = 0; i < indices.size(); ++i)
      data.read_text(std::int64_t(e), indices[i], 1, result.text[e].data() + std::int64_t(i) * each);
  }
  for (std::size_t i = 0; i < indices.size(); ++i)
    data.read_pooled(indices[i], 1, result.pooled.data() + std::int64_t(i) * data.pooled_width());
  return result;
}

std::vector<float> draw(Execution const& exec, Communicator const& world, Model<float>& model,
                        Parameters<float>& parameters, CaptionFeatures const& captions,
                        SamplingOptions const& options, std::uint64_t seed) {
  auto const& config = model.config();
  auto const mine = local_range(captions.count, world.rank(), world.size());
  auto const most = local_range(captions.count, 0, world.size()).count;
  std::int64_t const at_once = std::max(1, model.capacity() / 2);
  std::int64_t const each = std::int64_t(config.channels) * config.pixels();
  std::vector<double> samples(std::size_t(captions.count * each), 0.0);
  // Every rank makes the same number of passes, some with no samples: a pass gathers weights from all ranks.
  for (std::int64_t done = 0; done < most; done += at_once) {
    auto const count = std::clamp<std::int64_t>(mine.count - done, 0, at_once);
    auto const first = mine.begin + std::min(done, mine.count);
    Batch<float> const latents("samples", count, config.channels, config.pixels());
    dit::fill_normal<float>(exec, seed, std::uint64_t(first), latents);
    sample<float>(exec, model, parameters, upload(config, captions, first, count), options, latents);
    auto const host = Kokkos::create_mirror_view_and_copy(HostMemory(), latents);
    std::copy_n(host.data(), host.size(), samples.begin() + first * each);
  }
  world.sum(samples);
  return {samples.begin(), samples.end()};
}

void write_grid(std::string const& path, ModelConfig const& config, std::vector<float> const& samples,
                int columns) {
  int const zoom = std::max(1, 128 / config.image_size);
  std::size_t const each = std::size_t(config.channels) * std::size_t(config.pixels());
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i * each < samples.size(); ++i)
    pictures.push_back(picture(config, samples.data() + i * each, zoom));
  write_png(path, grid(pictures, columns, 4));
}

} // namespace prowl::dit
