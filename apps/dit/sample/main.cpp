// prowl-sample CHECKPOINT --prompt "...": draws pictures with a trained model.
#include <common/command_line.hpp>
#include <dit/layout.hpp>
#include <dit/train/draw.hpp>
#include <dit/train/setup.hpp>
#include <dit/train/state.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/comm/runtime.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/array_file.hpp>
#include <prowl/io/atomic_file.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>

namespace {

using namespace prowl;
using namespace prowl::dit;

struct SampleRun {
  std::string checkpoint, data, png = "sample.png", arrays;
  std::vector<std::string> prompts;
  std::vector<std::int64_t> indices;
  std::int64_t count = 0, steps = 50, seed = 0, columns = 0, at_once = 16;
  double guidance = 5;
  bool grid = false;
};

void declare(CLI::App& app, SampleRun& o) {
  app.add_option("checkpoint", o.checkpoint, "checkpoint of prowl-train (HDF5)")->required();
  app.add_option("--prompt", o.prompts, "a caption; may be given several times");
  app.add_option("--data", o.data,
                 "draw captions of this data set, with its text features, instead of prompts");
  app.add_option("--index", o.indices, "samples of the data set");
  app.add_option("--count", o.count, "instead: so many, evenly spread over its training samples")
      ->check(positive_count);
  app.add_flag("--grid", o.grid, "one file with all pictures, instead of one file each");
  app.add_option("--output", o.png, "PNG file; without --grid, -0, -1, ... are put before its suffix");
  app.add_option("--columns", o.columns, "of the grid; 0: near a square")->check(CLI::Range(0, 1 << 16));
  app.add_option("--arrays", o.arrays,
                 "also write samples (count, C, H, W) and data set indices to this HDF5 file");
  app.add_option("--steps", o.steps, "Euler steps")->check(CLI::Range(1, 100000));
  app.add_option("--guidance", o.guidance, "weight of classifier-free guidance; 1: none")
      ->check(CLI::Validator(
          [](std::string& text) { // Range takes NaN
            double value = 0;
            bool const good = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 1e6;
            return good ? "" : text + ", expected a number from 0 to 1000000";
          },
          "NUMBER"));
  app.add_option("--seed", o.seed, "of the noise")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  app.add_option("--at-once", o.at_once, "pictures drawn at once on a rank")->check(CLI::Range(1, 1 << 20));
}

CaptionFeatures captions(SampleRun& o, Description const& model) {
  if (o.data.empty()) {
    if (o.prompts.empty()) throw Error("no prompt given: --prompt \"...\", or --data and --index or --count");
    return encode_prompts(model.config, model.text_encoding, o.prompts);
  }
  Dataset const data(o.data);
  auto const same = [](TextEncoder const& a, Encoder const& b) {
    return a.tokens == b.tokens && a.width == b.width;
  };
  if (!std::ranges::equal(data.encoders(), model.config.encoders, same) ||
      data.pooled_width() != model.config.pooled_width)
    throw Error("{}: its text features do not fit the model of {}", o.data, o.checkpoint);
  if (o.count > data.training_count())
    throw Error("--count {}: {} has {} training samples", o.count, o.data, data.training_count());
  for (std::int64_t i = 0; i < o.count; ++i) o.indices.push_back(i * data.training_count() / o.count);
  for (auto index : o.indices)
    if (index < 0 || index >= data.size())
      throw Error("--index {}: expected 0 to {}", index, data.size() - 1);
  if (o.indices.empty()) throw Error("--data needs --index or --count");
  return read_captions(data, o.indices);
}

void write_pictures(SampleRun const& o, ModelConfig const& config, std::vector<float> const& samples,
                    std::int64_t count) {
  if (o.grid) {
    int columns = int(o.columns);
    for (columns = std::max(1, columns); o.columns == 0 && std::int64_t(columns) * columns < count;)
      ++columns;
    write_grid(o.png, config, samples, columns);
    fmt::print("wrote {}\n", o.png);
    return;
  }
  auto const each = samples.size() / std::size_t(count);
  std::filesystem::path const path = o.png;
  for (std::int64_t i = 0; i < count; ++i) {
    auto name = path;
    if (count > 1)
      name.replace_filename(fmt::format("{}-{}{}", path.stem().string(), i, path.extension().string()));
    auto const begin = samples.begin() + i * std::int64_t(each);
    write_grid(name.string(), config, {begin, begin + std::int64_t(each)}, 1);
    fmt::print("wrote {}\n", name.string());
  }
}

void write_arrays(SampleRun const& o, ModelConfig const& config, std::vector<float> const& samples,
                  std::int64_t count, Communicator const& world) {
  bool const here = world.rank() == 0;
  together_on(0, world.mpi(), [&] {
    std::filesystem::create_directories(std::filesystem::absolute(o.arrays).parent_path());
  });
  ArrayFileContents contents;
  contents.arrays.push_back({"samples",
                             {count, config.channels, config.image_size, config.image_size},
                             0,
                             here ? count : 0,
                             static_cast<float const*>(samples.data())});
  if (!o.indices.empty())
    contents.arrays.push_back(
        {"indices", {count}, 0, here ? count : 0, static_cast<std::int64_t const*>(o.indices.data())});
  write_array_file(world.mpi(), o.arrays, contents);
  if (here) fmt::print("wrote {}\n", o.arrays);
}

int run_sample(int argc, char** argv, int& error_status) {
  CLI::App app("Draws pictures with a trained model.", "prowl-sample");
  SampleRun o;
  declare(app, o);
  Communicator const world(MPI_COMM_WORLD);
  if (auto const status = parse_command_line(app, argc, argv, world.rank() == 0)) return *status;
  ArrayFileReader const file(world.mpi(), o.checkpoint);
  auto const model = parse_description(file.string("model"), o.checkpoint);
  auto const wanted = captions(o, model);
  Execution const exec;
  Mesh const mesh(world);
  Store store(exec, mesh, parameters(model.config));
  load_weights(store, file);
  Model<float> network(model.config, int(2 * o.at_once));
  together_on(0, world.mpi(), [&] { // before the pictures are drawn
    AtomicFile const png(o.png);
    if (!o.arrays.empty()) AtomicFile const arrays(o.arrays);
  });
  error_status = exit_failed;
  auto const samples =
      draw(exec, world, network, store, wanted, {int(o.steps), o.guidance}, std::uint64_t(o.seed));
  together_on(0, world.mpi(), [&] { write_pictures(o, model.config, samples, wanted.count); });
  if (!o.arrays.empty()) write_arrays(o, model.config, samples, wanted.count, world);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  int error_status = prowl::exit_refused;
  return prowl::run(
      argc, argv, [&] { return run_sample(argc, argv, error_status); }, error_status);
}
