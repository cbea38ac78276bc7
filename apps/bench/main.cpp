// prowl-bench: the time and the communication of the optimizers, the speed of the kernels and of the machine.
#include <bench/calibrate.hpp>
#include <bench/kernels.hpp>
#include <bench/optimizer.hpp>
#include <common/command_line.hpp>

#include <prowl/comm/runtime.hpp>

#include <mpi.h>

namespace prowl::bench {

namespace {

void add_calibrate(CLI::App& app, Calibration& options) {
  auto* calibrate = app.add_subcommand(
      "calibrate", "Measures the node at hand, a rank for each of its devices, and describes it in a file");
  calibrate->add_option("OUTPUT", options.output, "TOML file to write")->required();
  calibrate->add_option("--name", options.name, "What the file describes; otherwise the processor's model");
  calibrate
      ->add_option("--capacity-gib", options.capacity_gib,
                   "Memory of a device; otherwise the host's, shared evenly by the ranks")
      ->check(CLI::Range(1e-3, 1e6));
  calibrate->add_flag("--quick", options.quick, "Small sizes, few repetitions: rough numbers in seconds");
}

int run(int argc, char** argv) {
  CLI::App app("Measures the optimizers and the kernels of Prowl", "prowl-bench");
  app.require_subcommand(1);
  OptimizerBench options;

  auto* optimizer = app.add_subcommand(
      "optimizer", "AdamW, Muon and Periodic Row-wise Muon in turn, on the ranks as launched (mpirun -n P)");
  optimizer
      ->add_option("--model", options.model,
                   "Shapes: mmdit-1.3b (or -4b, -9b, -15b), mmdit:d=256,L=4, or 64x256*6,256x64")
      ->required();
  optimizer->add_option("--steps", options.steps, "Steps of each, rounded up to whole periods")
      ->capture_default_str()
      ->check(positive_count);
  optimizer->add_option("--period", options.period, "K of the periodic ones")
      ->capture_default_str()
      ->check(positive_count);
  optimizer->add_option("--bucket-mib", options.bucket_mib, "Cap of a gathered bucket, MiB")
      ->capture_default_str()
      ->check(CLI::Range(1e-3, 1e6));
  optimizer->add_option("--wire", options.wire, "Momentum elements in a gather: fp32 or bf16")
      ->capture_default_str();
  optimizer
      ->add_option("--systems", options.systems,
                   "Periodic variants: all, or a list of naive,sharded_rownorm,buckets,overlap")
      ->capture_default_str();
  optimizer->add_option("--trace", options.trace, "File for a Chrome trace of one period of the full system");
  optimizer->add_option("--json", options.json, "File for all results");
  optimizer->add_option(
      "--hardware", options.hardware,
      "Description of this machine (prowl-bench calibrate): times that prowl-plan predicts, beside");

  auto* kernels = app.add_subcommand("kernels", "Each kernel alone, with Google Benchmark and its options");
  kernels->prefix_command();

  Calibration calibration;
  add_calibrate(app, calibration);

  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (auto const status = parse_command_line(app, argc, argv, rank == 0)) return *status;
  if (*optimizer)
    run_optimizer(options);
  else if (app.got_subcommand("calibrate"))
    run_calibration(calibration);
  else
    run_kernels(kernels->remaining());
  return 0;
}

} // namespace

} // namespace prowl::bench

int main(int argc, char** argv) {
  return prowl::run(
      argc, argv, [&] { return prowl::bench::run(argc, argv); }, prowl::exit_refused);
}
