#include <data/samples.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/dataset_writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <optional>

namespace prowl::data {

namespace {

volatile std::sig_atomic_t stop_signal = 0;

} // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { stop_signal = signal; };
  action.sa_flags = int(SA_RESTART | SA_RESETHAND);
  for (int const signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void continue_unless_stopped() {
  if (stop_signal != 0) writing([] { throw Error("stopped by signal {}", int(stop_signal)); });
}

bool in_validation(std::string const& group) { return (fnv1a(group) >> 32) % 20 == 0; }

void refuse_as_output(Options const& options, std::string const& input) {
  std::error_code none; // one of them is not there
  if (std::filesystem::equivalent(options.output, input, none))
    throw Error("{}: is read, and cannot be the data set to write", options.output);
}

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
  std::size_t cut = 0, wordless = 0;
  std::optional<DatasetWriter> writer;
  writing([&] { writer.emplace(options.output, layout); });
  for (auto const i : order) {
    continue_unless_stopped();
    auto const& caption = samples[i].caption;
    auto const planes = picture(i);
    writing([&] { writer->append(planes, caption, text.features(caption), text.pooled(caption)); });
    auto const words = std::int64_t(words_of(caption).size());
    cut += words > options.tokens;
    wordless += words == 0;
  }
  writing([&] { writer->finish(); });
  fmt::print("{}: {} training and {} validation samples of 3 x {} x {}\n", options.output,
             layout.training_count, layout.size - layout.training_count, options.size, options.size);
  if (cut > 0)
    fmt::print("{} captions have more than {} words: their token features end there\n", cut, options.tokens);
  if (wordless > 0) fmt::print("{} captions have no word: their features are zeros\n", wordless);
}

} // namespace prowl::data
