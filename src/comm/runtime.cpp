#include <prowl/comm/runtime.hpp>

#include <prowl/comm/detail/progress.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/failure.hpp>
#include <prowl/core/types.hpp>

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// Present where the BLAS is OpenBLAS.
extern "C" __attribute__((weak)) char* openblas_get_corename();
extern "C" __attribute__((weak)) void openblas_set_num_threads(int);

namespace prowl {

namespace {

/// The name of an OpenBLAS kernel set for this processor, where OpenBLAS fell back to one from before AVX;
/// else nullptr.
char const* better_blas_core() {
#if defined(__x86_64__)
  if (!openblas_get_corename || std::getenv("OPENBLAS_CORETYPE")) return nullptr;
  if (std::string(openblas_get_corename()) != "Prescott") return nullptr;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
#endif
  return nullptr;
}

void prepare_environment(char** argv) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
  setenv("OMPI_MCA_io", "^ompio", 0);
#endif
  if (char const* core = better_blas_core()) {
    // OpenBLAS reads this when it is loaded, so the program starts once more.
    setenv("OPENBLAS_CORETYPE", core, 1);
    execv("/proc/self/exe", argv);
  }
}

/// Whether every rank gets here within a few seconds.
bool all_ranks_failed() {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int done = 0;
  while (!done && std::chrono::steady_clock::now() < end) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done;
}

void print_error(int rank, std::string const& message) {
  std::fflush(stdout);
  if (rank < 0)
    std::fprintf(stderr, "error: %s\n", message.c_str());
  else
    std::fprintf(stderr, "error (rank %d): %s\n", rank, message.c_str());
  std::fflush(stderr);
}

/// Prints the message of rank 0, and of each rank whose message is another one.
void report(int rank, std::string const& message) {
  int length = int(message.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string first = message;
  first.resize(std::size_t(length));
  MPI_Bcast(first.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0)
    print_error(-1, message);
  else if (first != message)
    print_error(rank, message);
}

/// Takes --kokkos-... out of the arguments: they are Kokkos's, and all others, such as --help, are not.
std::vector<char*> take_kokkos_arguments(int& argc, char** argv) {
  std::vector<char*> taken = {argv[0]};
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with("--kokkos-"))
      taken.push_back(argv[i]);
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  argv[argc] = nullptr;
  return taken;
}

} // namespace

std::string launcher_disagrees(int ranks) {
  auto const number = [](char const* name) {
    char const* const text = std::getenv(name);
    return text ? std::atoi(text) : 0;
  };
  bool const step =
      std::getenv("SLURM_STEP_ID") || std::getenv("SLURM_STEP_NUM_TASKS") || number("SLURM_PROCID") > 0;
  std::string found;
  for (auto const* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    if (std::string_view(name) == "SLURM_NTASKS" && !step) continue;
    int const tasks = number(name);
    if (tasks == ranks) return {}; // the launcher that started these ranks; another may have started it
    if (tasks > ranks && found.empty())
      found = fmt::format(
          "{} says {} tasks, but MPI has {} rank{}: start it with the launcher of the MPI library that "
          "Prowl was built with (srun --mpi=list shows what srun offers)",
          name, tasks, ranks, ranks == 1 ? "" : "s");
  }
  return found;
}

int run(int& argc, char**& argv, std::function<int()> const& body, int const& error_status) {
  prepare_environment(argv);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int status = 0;
  try {
    if (auto const contradiction = launcher_disagrees(ranks); !contradiction.empty())
      throw Error("{}", contradiction);
    if (provided < MPI_THREAD_MULTIPLE)
      throw Error("the MPI library gives thread level {}, expected MPI_THREAD_MULTIPLE", provided);
    auto arguments = take_kokkos_arguments(argc, argv);
    int count = int(arguments.size());
    arguments.push_back(nullptr);
    Kokkos::ScopeGuard const kokkos(count, arguments.data());
    if (openblas_set_num_threads && !std::getenv("OPENBLAS_NUM_THREADS"))
      openblas_set_num_threads(host_accessible ? Execution().concurrency() : 1);
    status = body();
  } catch (std::exception const& error) {
    auto const text = failure_text(error);
    if (!all_ranks_failed()) {
      print_error(rank, text);
      MPI_Abort(MPI_COMM_WORLD, error_status);
    }
    report(rank, text);
    status = error_status;
  }
  detail::stop_progress();
  MPI_Finalize();
  return status;
}

} // namespace prowl
