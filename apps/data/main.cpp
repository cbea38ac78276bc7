// prowl-data: makes and shows image-caption data sets.
#include <common/command_line.hpp>
#include <common/png.hpp>
#include <data/commands.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/failure.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/io/dataset.hpp>
#include <prowl/io/dataset_summary.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace prowl::data {

namespace {

void show_info(std::string const& path) {
  Dataset const dataset(path);
  fmt::print("{}\n  samples     {} training, {} validation\n  {}     {} x {} x {}\n", path,
             dataset.training_count(), dataset.validation_count(),
             dataset.latents() ? "latents " : "pictures", dataset.channels(), dataset.height(),
             dataset.width());
  for (auto const& encoder : dataset.encoders())
    fmt::print("  text        {}: {} tokens of {} features\n", encoder.name, encoder.tokens, encoder.width);
  fmt::print("  pooled      {}\n  text made by  {}\n  source      {}\n", dataset.pooled_width(),
             dataset.text_encoding(), dataset.source());
  auto const summary = summarise(dataset);
  fmt::print("  values      mean {:.4g}, deviation {:.4g} ({} training samples, evenly spread)\n",
             summary.mean, summary.deviation, summary.samples);
  for (auto const& warning : summary.warnings) fmt::print("warning: {}\n", warning);
}

void export_pictures(std::string const& path, std::string const& folder, std::int64_t count) {
  Dataset const dataset(path);
  if (dataset.latents() || dataset.channels() != 3)
    throw Error("{}: holds {} of {} channels, pictures of 3 expected", path,
                dataset.latents() ? "latents" : "pictures", dataset.channels());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder, error))
    throw Error("{}: cannot be created: {}", folder,
                error ? error.message() : "there is a file of this name");
  count = std::min(count, dataset.size());
  std::vector<float> planes(static_cast<std::size_t>(dataset.sample_size()));
  for (std::int64_t i = 0; i < count; ++i) {
    auto const name = fmt::format("{}/{:06}", folder, i);
    dataset.read_samples(i, 1, planes.data());
    auto const caption = dataset.caption(i) + '\n';
    continue_unless_stopped();
    writing([&] {
      write_png(name + ".png", from_planes(planes.data(), int(dataset.height()), int(dataset.width())));
      write_file(name + ".txt", caption);
    });
  }
  fmt::print("{}: {} pictures with captions\n", folder, count);
}

void add_common(CLI::App& command, Options& options) {
  command.add_option("output", options.output, "The data set to write (HDF5)")->required();
  command.add_option("--size", options.size, "Pixels a side")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--background", options.background,
                  "white, black, grey or #rrggbb, seen where pictures are transparent")
      ->capture_default_str();
  command.add_option("--tokens", options.tokens, "Words of a caption that get token features")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command.add_option("--width", options.width, "Features of a word")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
}

int run(int argc, char** argv) {
  CLI::App app(
      "Makes and shows image-caption data sets (HDF5; the format is described in prowl/io/dataset.hpp)",
      "prowl-data");
  app.require_subcommand(1);
  Options options;

  std::string list = "/usr/share/unicode/emoji/emoji-test.txt";
  std::string font = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf";
  auto* emoji = app.add_subcommand("emoji", "All emoji with their English names, from a font");
  add_common(*emoji, options);
  emoji->add_option("--list", list, "Unicode's emoji-test.txt")->capture_default_str();
  emoji->add_option("--font", font, "A font with colour bitmaps")->capture_default_str();
  emoji->callback([&] { make_emoji(options, list, font); });

  std::string folder, dataset;
  auto* images =
      app.add_subcommand("images", "PNG files with captions in .txt files beside them, cropped to squares");
  images->add_option("folder", folder, "Where NAME.png and NAME.txt are")->required();
  add_common(*images, options);
  images->callback([&] { make_images(options, folder); });

  std::int64_t count = 100;
  auto* exports =
      app.add_subcommand("export", "Writes pictures and captions of a data set to a folder, to look at them");
  exports->add_option("dataset", dataset, "The data set")->required();
  exports->add_option("folder", folder, "Made where it is missing")->required();
  exports->add_option("--count", count, "How many, from the first on")
      ->capture_default_str()
      ->check(positive_count);
  exports->callback([&] { export_pictures(dataset, folder, count); });

  auto* info = app.add_subcommand("info", "What a data set holds");
  info->add_option("dataset", dataset, "The data set")->required();
  info->callback([&] { show_info(dataset); });

  return parse_command_line(app, argc, argv).value_or(0);
}

} // namespace

} // namespace prowl::data

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond the limit of its size is an error with its reason
  prowl::data::catch_stop_signals();
  try {
    return prowl::data::run(argc, argv);
  } catch (std::exception const& error) {
    fmt::print(stderr, "error: {}\n", prowl::failure_text(error));
    return prowl::data::failure_status;
  }
}
