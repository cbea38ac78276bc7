#include <bench/calibrate.hpp>

#include <bench/links.hpp>
#include <bench/measure.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>
#include <prowl/io/program_memory.hpp>
#include <prowl/kernels/momentum.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/kernels/row_norm.hpp>
#include <prowl/kernels/update.hpp>
#include <prowl/linalg/blas.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace prowl::bench {

namespace {

/// What is measured.
struct Sizes {
  Effort effort;
  std::vector<double> stream_mib;
  std::vector<std::int64_t> narrow, aspects;
  double most_flop; ///< of a product
  std::int64_t shared_product;
  double shared_stream_mib;
  std::vector<std::int64_t> messages; ///< bytes of whole arrays
  std::int64_t overlap_rows, overlap_columns, overlap_message;
};

constexpr std::int64_t kilobyte = 1024, megabyte = 1024 * kilobyte;

Sizes full_sizes() {
  return {.effort = {.seconds = 0.6, .samples = 15},
          .stream_mib = {0.25, 1, 4, 16, 64, 256},
          .narrow = {16, 32, 64, 128, 256, 512, 1024},
          .aspects = {1, 4, 8},
          .most_flop = 1e10,
          .shared_product = 512,
          .shared_stream_mib = 64,
          .messages = {kilobyte, 4 * kilobyte, 16 * kilobyte, 64 * kilobyte, 256 * kilobyte, megabyte,
                       4 * megabyte, 16 * megabyte, 32 * megabyte},
          .overlap_rows = 256,
          .overlap_columns = 1024,
          .overlap_message = 16 * megabyte};
}

Sizes quick_sizes() {
  return {.effort = {.seconds = 0.02, .samples = 5},
          .stream_mib = {0.25, 1, 4},
          .narrow = {4, 128},
          .aspects = {1, 4},
          .most_flop = 1e8,
          .shared_product = 128,
          .shared_stream_mib = 4,
          .messages = {kilobyte, 32 * kilobyte, megabyte},
          .overlap_rows = 64,
          .overlap_columns = 256,
          .overlap_message = megabyte};
}

struct Bench {
  Execution exec;
  Communicator world;
  Sizes sizes;

  /// A line on rank 0, seen at once.
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (world.rank() != 0) return;
    fmt::print("{}\n", fmt::format(format, std::forward<Arguments>(arguments)...));
    std::fflush(stdout);
  }
};

/// What is left of the time of a call without the latency of its kernels; at least half of it.
double work_seconds(Hardware const& hardware, double seconds, int kernels) {
  return std::max(seconds - kernels * hardware.kernel_us * 1e-6, seconds / 2);
}

void measure_kernel(Bench const& bench, Hardware& hardware) {
  auto const g = random_vector(16, 0), m = random_vector(16, 1);
  hardware.kernel_us =
      1e6 * seconds_a_call(bench.exec, bench.sizes.effort, [&] { momentum(bench.exec, 0.95f, g, m); });
  bench.say("kernel       {:10.3f} us", hardware.kernel_us);
}

/// The passes of a step without NS5 over matrices: the gradient's norm, momentum, RowNorm, update.
///
/// Alone, each predicts badly: in a CPU's caches the sums run at 22 GB/s and the updates at 118, in memory at 19 and 32. In the
/// shares of such a step their mean predicted those of `prowl-bench optimizer` and AdamW's within 12% for 48 to 590 MiB on an
/// EPYC, but for AdamW on arrays of 2^24 elements (1.8 times as long). Within its caches small matrices took 1.1 to 1.7 times
/// as long as predicted.
class Passes {
public:
  static constexpr int kernels = 4;

  explicit Passes(double working_set_mib) {
    constexpr std::int64_t columns = 256;
    auto const rows = std::int64_t(working_set_mib * mib) / (4 * 4 * columns);
    for (int i = 0; i < 4; ++i) arrays_[i] = random_vector(rows * columns, std::uint64_t(i));
    directions_ = as_matrix(arrays_[2], rows, columns);
  }

  double bytes() const { return 4 * (1 + 3 + 2 + 3) * double(arrays_[0].size()); }

  void operator()(Execution const& exec) const {
    auto const& [gradients, momenta, directions, weights] = arrays_;
    sum_squares(exec, gradients);
    momentum(exec, 0.95f, gradients, momenta);
    row_norm(exec, 1, directions_);
    decayed_update(exec, 1e-3f, 0.01f, 1, directions, weights);
  }

private:
  Vector<float> arrays_[4]; ///< read and written in turn
  Matrix<float> directions_;
};

void measure_streams(Bench const& bench, Hardware& hardware) {
  for (double const size : bench.sizes.stream_mib) {
    Passes const passes(size);
    double const seconds = seconds_a_call(bench.exec, bench.sizes.effort, [&] { passes(bench.exec); });
    hardware.streams.push_back(
        {size, 1e-9 * passes.bytes() / work_seconds(hardware, seconds, Passes::kernels)});
    bench.say("stream       {:10.2f} MiB {:20.2f} GB/s", size, hardware.streams.back().gbs);
  }
}

/// The products of NS5 of narrow x wide: P (narrow x narrow) times X for gemm, X X^T for syrk.
void measure_products(Bench const& bench, Hardware& hardware) {
  auto const& exec = bench.exec;
  for (bool const symmetric : {false, true})
    for (auto const narrow : bench.sizes.narrow)
      for (auto const aspect : bench.sizes.aspects) {
        auto const wide = narrow * aspect;
        double const flop = 2 * double(narrow) * double(narrow) * double(wide);
        if (flop > bench.sizes.most_flop) continue;
        auto const square = random_matrix(narrow, narrow), x = random_matrix(narrow, wide),
                   y = random_matrix(narrow, wide);
        double const seconds = seconds_a_call(exec, bench.sizes.effort, [&] {
          if (symmetric)
            syrk(exec, Op::none, 1.0f, x, 0.0f, square);
          else
            gemm(exec, Op::none, Op::none, 1.0f, square, x, 0.0f, y);
        });
        hardware.products.push_back({symmetric ? "syrk" : "gemm", "float32", narrow, wide,
                                     1e-9 * flop / work_seconds(hardware, seconds, 1)});
        bench.say("{}         {:5} x {:5} {:21.2f} Gflop/s", hardware.products.back().operation, narrow, wide,
                  hardware.products.back().gflops);
      }
}

/// Collective: speed of `body` with all ranks at it, relative to rank 0 alone. The two in turn, so that what else the machine
/// does meets both.
template <class Body>
double shared_speed(Bench const& bench, Body const& body) {
  auto const& effort = bench.sizes.effort;
  seconds_of(bench.exec, body); // the first touch of its memory
  double const once = seconds_together(bench.world, bench.exec, body);
  int const calls = std::clamp(int(effort.seconds / effort.samples / std::max(once, 1e-7)), 1, 1 << 20);
  auto const work = [&] {
    for (int i = 0; i < calls; ++i) body();
  };
  std::vector<double> speeds;
  for (int i = 0; i < effort.samples; ++i) {
    double single = 0;
    alone(bench.world, [&] { single = seconds_of(bench.exec, work); });
    double const together = seconds_together(bench.world, bench.exec, work);
    speeds.push_back(single / together);
  }
  return std::min(median(speeds), 1.0);
}

void measure_sharing(Bench const& bench, Hardware& hardware) {
  auto const n = bench.sizes.shared_product;
  auto const a = random_matrix(n, n), b = random_matrix(n, n), c = random_matrix(n, n);
  hardware.shared_product =
      shared_speed(bench, [&] { gemm(bench.exec, Op::none, Op::none, 1.0f, a, b, 0.0f, c); });
  bench.say("{} at once  {:10.3f} of the speed of products alone", bench.world.size(),
            hardware.shared_product);
  Passes const passes(bench.sizes.shared_stream_mib);
  hardware.shared_stream = shared_speed(bench, [&] { passes(bench.exec); });
  bench.say("{} at once  {:10.3f} of the speed of streams alone", bench.world.size(), hardware.shared_stream);
}

void measure_links(Bench const& bench, Hardware& hardware) {
  auto const& [exec, world, sizes] = bench;
  std::vector<CollectiveTime> times;
  for (auto const kind : {Collective::all_gather, Collective::all_reduce})
    for (auto const payload : sizes.messages) {
      double const seconds = measure_collective(world, exec, kind, payload, 2 * sizes.effort.samples + 1);
      times.push_back({kind, payload, seconds});
      bench.say("{}   {:10} KiB {:20.5g} us", name(kind), payload / kilobyte, 1e6 * seconds);
    }
  hardware.intra = fit_link(world.size(), times);
  double worst = 1;
  for (auto const& t : times) {
    double const ratio = collective_seconds(hardware.intra, t.kind, world.size(), t.payload) / t.seconds;
    worst = std::max({worst, ratio, 1 / ratio});
  }
  bench.say("link         {:10.2f} us a stage, {:.3f} GB/s; within a factor of {:.2f} of these times",
            hardware.intra.latency_us, hardware.intra.bandwidth_gbs, worst);
  if (worst > 6)
    bench.say("warning      the link's times do not fit its model well; on a machine with other work, "
              "measure again");
  hardware.overlap_slowdown = overlap_slowdown(world, exec, sizes.overlap_rows, sizes.overlap_columns,
                                               sizes.overlap_message, sizes.effort.samples);
  bench.say("overlap      {:10.3f} s of NS5 lost to a second of gathers beside it",
            hardware.overlap_slowdown);
}

/// The processor's model as Linux names it, or the host's name.
std::string machine_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (auto const colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  char host[256] = "";
  return ::gethostname(host, sizeof(host) - 1) == 0 && *host ? host : "this machine";
}

double capacity_gib(Calibration const& options, int ranks) {
  if (options.capacity_gib > 0) return options.capacity_gib;
  if (!host_accessible) throw Error("--capacity-gib: missing, expected the memory of a device");
  auto const pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || size <= 0)
    throw Error("--capacity-gib: missing, and the host does not tell its memory; expected that of a device");
  return double(pages) * double(size) / gib / ranks;
}

/// Collective.
void require_one_node(Communicator const& world) {
  together(world.mpi(), [&] {
    MPI_Comm node = MPI_COMM_NULL;
    int size = 0;
    if (MPI_Comm_split_type(world.mpi(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS ||
        MPI_Comm_size(node, &size) != MPI_SUCCESS || MPI_Comm_free(&node) != MPI_SUCCESS)
      throw Error("calibrate: MPI does not tell which ranks share a node");
    if (size != world.size())
      throw Error("calibrate: {} of {} ranks are on one node, expected all", size, world.size());
  });
}

/// Collective. Throws Error where the file could not be written now.
void require_writable(Communicator const& world, std::string const& path) {
  together_on(0, world.mpi(), [&] {
    AtomicFile const file(path); // removes it again
    if (!std::ofstream(file.path())) throw Error("{}: cannot be written", path);
  });
}

/// Collective.
void write_hardware(Communicator const& world, std::string const& path, Hardware const& hardware) {
  together_on(0, world.mpi(), [&] {
    AtomicFile file(path);
    std::ofstream stream(file.path());
    stream << hardware_toml(hardware);
    stream.close();
    if (!stream) throw Error("{}: cannot be written", path);
    read_hardware(file.path()); // what it would refuse does not appear
    file.commit();
  });
}

/// Four digits, more than the measurements have.
void shorten(Hardware& h) {
  auto const all = [](auto&... values) { ((values = std::stod(fmt::format("{:.4g}", values))), ...); };
  all(h.capacity_gib, h.reserved_gib, h.kernel_us, h.shared_product, h.shared_stream, h.overlap_slowdown,
      h.intra.latency_us, h.intra.bandwidth_gbs, h.inter.latency_us, h.inter.bandwidth_gbs);
  for (auto& row : h.streams) all(row.gbs);
  for (auto& row : h.products) all(row.gflops);
}

} // namespace

void run_calibration(Calibration const& options) {
  Bench const bench{Execution(), Communicator(MPI_COMM_WORLD), options.quick ? quick_sizes() : full_sizes()};
  auto const& world = bench.world;
  require_one_node(world);
  require_writable(world, options.output);
  Hardware hardware;
  hardware.name = options.name.empty() ? machine_name() : options.name;
  hardware.host = host_accessible;
  hardware.devices = world.size();
  hardware.max_nodes = 1;
  hardware.capacity_gib = capacity_gib(options, world.size());
  if (hardware.host) hardware.reserved_gib = double(program_bytes()) / gib;
  if (hardware.reserved_gib >= hardware.capacity_gib)
    throw Error("--capacity-gib {}: expected more than the {:.3f} that this program takes",
                hardware.capacity_gib, hardware.reserved_gib);
  bench.say("{}: {} devices of {:.2f} GiB, concurrency {}", hardware.name, hardware.devices,
            hardware.capacity_gib, bench.exec.concurrency());
  alone(world, [&] {
    measure_kernel(bench, hardware);
    measure_streams(bench, hardware);
    measure_products(bench, hardware);
  });
  if (world.size() > 1) {
    measure_sharing(bench, hardware);
    measure_links(bench, hardware);
  } else {
    hardware.intra = {1, 10};
    bench.say("link         not measured by one rank: {} us and {} GB/s are nominal",
              hardware.intra.latency_us, hardware.intra.bandwidth_gbs);
  }
  hardware.inter = hardware.intra;
  bench.say("link         between nodes: not measured on one node, written as within it");
  shorten(hardware);
  write_hardware(world, options.output, hardware);
  bench.say("{}: written", options.output);
}

} // namespace prowl::bench
