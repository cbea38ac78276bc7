#include <data/samples.hpp>
#include <prowl/io/dataset_writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace prowl::data {

bool in_validation(std::string const& group) { return (fnv1a(group) >> 32) % 20 == 0; }

void write_samples(Options const& options, std::string const& source, std::vector<Sample> const& samples,
                   std::function<std::vector<std::uint8_t>(std::size_t)> const& picture) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0);
  auto const validation = std::stable_partition(
      order.begin(), order.end(), [&](std::size_t i) { return !in_validation(samples[i].group); });

  HashedText const text(options.tokens, options.width);
  DatasetLayout layout;
  layout.size = std::int64_t(samples.size());
  layout.training_count = validation == order.begin() ? layout.size : validation - order.begin();
  layout.height = layout.width = options.size;
  layout.encoder = "words";
  layout.tokens = options.tokens;
  layout.text_width = layout.pooled_width = options.width;
  layout.text_encoding = hashed_words;
  layout.source = source;
  std::size_t cut = 0;
  DatasetWriter writer(options.output, layout);
  for (auto const i : order) {
    auto const& caption = samples[i].caption;
    writer.append(picture(i), caption, text.features(caption), text.pooled(caption));
    cut += std::int64_t(words_of(caption).size()) > options.tokens;
  }
  writer.finish();
  fmt::print("{}: {} training and {} validation samples of 3 x {} x {}\n", options.output,
             layout.training_count, layout.size - layout.training_count, options.size, options.size);
  if (cut > 0)
    fmt::print("{} captions have more than {} words: their token features end there\n", cut, options.tokens);
}

} // namespace prowl::data
