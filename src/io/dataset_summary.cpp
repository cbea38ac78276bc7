#include <prowl/io/dataset_summary.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace prowl {

namespace {

// Channels are few and sides are many, so a last dimension that is shorter than both others is probably the
// channels.
bool channels_seem_last(Dataset const& data) {
  auto const [c, h, w] = std::array{data.channels(), data.height(), data.width()};
  return w < h && w < c && (w <= 4 || c == h || 2 * w <= std::min(c, h));
}

std::string value_warning(Dataset const& data, DatasetSummary const& s) {
  if (s.deviation == 0) return fmt::format("all samples looked at are {:.4g} everywhere", s.mean);
  bool const usual = std::abs(s.mean) <= 0.5 && s.deviation >= 0.5 && s.deviation <= 2;
  if (!data.latents() || usual) return {};
  return fmt::format(
      "latents of mean {:.4g} and deviation {:.4g}: about 0 and 1 expected, as of the noise they are mixed "
      "with; apply the autoencoder's shift and scale (FLUX.1: (latent - 0.1159) * 0.3611)",
      s.mean, s.deviation);
}

} // namespace

std::string shape_warning(Dataset const& data) {
  char const* const what = data.latents() ? "latents" : "pictures";
  auto const shape = fmt::format("({}, {}, {})", data.channels(), data.height(), data.width());
  if (channels_seem_last(data))
    return fmt::format(
        "{} of shape {} look like (height, width, channels): (channels, height, width) expected", what,
        shape);
  bool const usual = data.channels() == 1 || data.channels() == 3 || data.channels() == 4;
  if (!data.latents() && !usual)
    return fmt::format(
        "{} of shape {} have {} channels: (channels, height, width) with 1, 3 or 4 channels expected", what,
        shape, data.channels());
  return {};
}

DatasetSummary summarise(Dataset const& data) {
  DatasetSummary result;
  constexpr std::int64_t most_values = std::int64_t{1} << 25;
  result.samples =
      std::min(data.training_count(), std::clamp<std::int64_t>(most_values / data.sample_size(), 16, 256));
  std::vector<float> values(static_cast<std::size_t>(data.sample_size()));
  double sum = 0, squares = 0;
  double origin = 0; // near the mean, so that the difference of squares keeps its digits
  for (std::int64_t i = 0; i < result.samples; ++i) {
    // i * training_count / samples, without its overflow.
    auto const step = data.training_count() / result.samples, rest = data.training_count() % result.samples;
    data.read_samples(i * step + i * rest / result.samples, 1, values.data());
    if (i == 0) origin = values[0];
    for (float const value : values) {
      sum += value - origin;
      squares += (value - origin) * (value - origin);
    }
  }
  auto const count = double(result.samples) * double(data.sample_size());
  result.mean = origin + sum / count;
  result.deviation = std::sqrt(std::max(0.0, squares / count - (sum / count) * (sum / count)));
  for (auto& warning : {shape_warning(data), value_warning(data, result)})
    if (!warning.empty()) result.warnings.push_back(warning);
  return result;
}

std::vector<std::string> lines(Dataset const& data, DatasetSummary const& summary) {
  std::vector<std::string> result{fmt::format("{}: {} of mean {:.4g} and deviation {:.4g} ({} samples)",
                                              data.path(), data.latents() ? "latents" : "pictures",
                                              summary.mean, summary.deviation, summary.samples)};
  for (auto const& warning : summary.warnings)
    result.push_back(fmt::format("warning: {}: {}", data.path(), warning));
  return result;
}

} // namespace prowl
