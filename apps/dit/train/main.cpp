// prowl-train DECK [key=value ...]: trains an MMDiT on image-caption pairs. Run as mpirun -n P or srun -n P.
#include <common/command_line.hpp>
#include <dit/layout.hpp>
#include <dit/train/setup.hpp>
#include <dit/train/trainer.hpp>

#include <prowl/comm/runtime.hpp>
#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/program_memory.hpp>
#include <prowl/linalg/blas.hpp>

namespace {

using namespace prowl;
using namespace prowl::dit;

/// The resolved deck, parameter counts, and memory of the rank that holds most.
void print_plan(TrainOptions const& options, ModelConfig const& config, std::string const& deck,
                Communicator const& world) {
  auto const count = counts(config);
  Mesh const mesh(world, int(options.parallel.replicate));
  auto const optimizer = optimizer_options(options.optimizer);
  std::int64_t muon = 0;
  auto const list = parameters(config);
  auto const routes = route(list, optimizer);
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (routes[i].rule == Rule::muon) muon += list[i].size();
  auto plan = largest_memory(options, config, mesh.place());
  plan.process = program_bytes();
  if (world.rank() != 0) return;
  fmt::print("{}\n", deck);
  fmt::print("# parameters: {} trainable, {} with buffers, {} ({:.2f}%) updated by Muon\n", count.trainable,
             count.total, muon, 100.0 * double(muon) / double(count.trainable));
  fmt::print("# ranks: {} ({} replicate x {} shard)\n", world.size(), mesh.replicate().size(),
             mesh.shard().size());
  std::string parts;
  for (auto const& part : plan.parts())
    parts += fmt::format("{}{} {:.1f}", parts.empty() ? "" : ", ", part.name, double(part.bytes) / mib);
  fmt::print("# memory a rank, MiB: {}; in all {:.1f}\n", parts, double(plan.total()) / mib);
}

/// `error_status` becomes that of a run that fails once its input is accepted.
int train(int argc, char** argv, int& error_status) {
  CLI::App app("Trains an MMDiT with Periodic Row-wise Muon, as a deck says.", "prowl-train");
  std::string deck_path;
  std::vector<std::string> overrides;
  bool list = false, dry = false;
  app.add_option("deck", deck_path, "input deck (TOML)");
  app.add_option("overrides", overrides, "key=value, over the deck's values");
  app.add_flag("--list-options", list, "print every key, its type, default and meaning");
  app.add_flag("--dry-run", dry,
               "print the resolved deck, parameter counts and memory a rank; train nothing");
  Ledger ledger;
  Communicator const world(MPI_COMM_WORLD, &ledger);
  if (auto const status = parse_command_line(app, argc, argv, world.rank() == 0)) return *status;
  TrainOptions options;
  Deck deck;
  declare(deck, options);
  if (list) {
    if (world.rank() == 0) fmt::print("{}", deck.list_options());
    return 0;
  }
  if (deck_path.empty()) throw Error("no deck given: prowl-train DECK [key=value ...] (prowl-train --help)");
  deck.read_file(deck_path);
  for (auto const& assignment : overrides) deck.set(assignment);
  check(deck, options);
  if (!dry && options.data.path.empty()) deck.refuse("data.path", "a data set made by prowl-data");
  auto const config = checked_model(deck, options, world.size());
  if (dry) {
    print_plan(options, config, deck.resolved(), world);
    return 0;
  }
  catch_stop_signals();
  Trainer trainer(Execution(), world, ledger, options, deck.resolved());
  error_status = exit_failed;
  return trainer.run() ? 0 : exit_stopped;
}

} // namespace

int main(int argc, char** argv) {
  int error_status = prowl::exit_refused;
  return prowl::run(
      argc, argv, [&] { return train(argc, argv, error_status); }, error_status);
}
