#include <bench/kernels.hpp>

#include <bench/measure.hpp>

#include <prowl/core/error.hpp>
#include <prowl/kernels/adamw.hpp>
#include <prowl/kernels/momentum.hpp>
#include <prowl/kernels/newton_schulz.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/kernels/row_norm.hpp>
#include <prowl/kernels/update.hpp>
#include <prowl/linalg/blas.hpp>

#include <benchmark/benchmark.h>
#include <mpi.h>

#include <algorithm>

namespace prowl::bench {

namespace {

using benchmark::Counter;

/// Times `body`, and counts `amount` (flop or bytes) a call.
template <class Body>
void measure(benchmark::State& state, char const* unit, double amount, Body const& body) {
  Execution const exec;
  for (auto _ : state) {
    body(exec);
    exec.fence();
  }
  state.counters[unit] = Counter(amount * 1e-9, Counter::kIsIterationInvariantRate);
}

void bench_gemm(benchmark::State& state) {
  auto const n = state.range(0), k = state.range(1);
  auto const a = random_matrix(n, k), b = random_matrix(k, n), c = random_matrix(n, n);
  measure(state, "GF/s", 2.0 * double(n * n * k),
          [&](Execution const& exec) { gemm<float>(exec, Op::none, Op::none, 1, a, b, 0, c); });
}

void bench_syrk(benchmark::State& state) {
  auto const n = state.range(0), k = state.range(1);
  auto const a = random_matrix(n, k), c = random_matrix(n, n);
  // As a product: so 2 n^2 k, though the host's BLAS does half of it.
  measure(state, "GF/s", 2.0 * double(n * n * k),
          [&](Execution const& exec) { syrk<float>(exec, Op::none, 1, a, 0, c); });
}

void bench_newton_schulz(benchmark::State& state) {
  auto const rows = state.range(0), columns = state.range(1);
  auto const x = random_matrix(rows, columns);
  auto const workspace = uninitialised<Vector<float>>("workspace", newton_schulz_workspace(rows, columns));
  measure(state, "GF/s", newton_schulz_flop(rows, columns),
          [&](Execution const& exec) { newton_schulz(exec, x, workspace); });
}

void bench_row_norm(benchmark::State& state) {
  auto const x = random_matrix(state.range(0), state.range(1));
  measure(state, "GB/s", 2 * 4.0 * double(x.size()), [&](Execution const& exec) { row_norm(exec, 1, x); });
}

void bench_column_sums(benchmark::State& state) {
  auto const x = random_matrix(state.range(0), state.range(1));
  Vector<float> const sums("sums", x.extent(1));
  measure(state, "GB/s", 4.0 * double(x.size()),
          [&](Execution const& exec) { column_sum_squares(exec, x, sums); });
}

void bench_column_finish(benchmark::State& state) {
  auto const x = random_matrix(state.range(0), state.range(1));
  Vector<float> const sums("sums", x.extent(1));
  Kokkos::deep_copy(sums, 1.0f);
  measure(state, "GB/s", 2 * 4.0 * double(x.size()),
          [&](Execution const& exec) { column_norm_finish(exec, 1, sums, x); });
}

void bench_momentum(benchmark::State& state) {
  auto const g = random_vector(state.range(0), 0), m = random_vector(state.range(0), 1);
  measure(state, "GB/s", 3 * 4.0 * double(g.size()),
          [&](Execution const& exec) { momentum(exec, 0.95f, g, m); });
}

void bench_adamw(benchmark::State& state) {
  auto const n = state.range(0);
  auto const g = random_vector(n, 0), m = random_vector(n, 1), w = random_vector(n, 2);
  Vector<float> const v("v", n);
  measure(state, "GB/s", 7 * 4.0 * double(n),
          [&](Execution const& exec) { adamw(exec, AdamW(), 10, g, m, v, w); });
}

void bench_decayed_update(benchmark::State& state) {
  auto const d = random_vector(state.range(0), 0), w = random_vector(state.range(0), 1);
  measure(state, "GB/s", 3 * 4.0 * double(d.size()),
          [&](Execution const& exec) { decayed_update(exec, 1e-3f, 0.01f, 1, d, w); });
}

void bench_sum_squares(benchmark::State& state) {
  auto const x = random_vector(state.range(0), 0);
  measure(state, "GB/s", 4.0 * double(x.size()),
          [&](Execution const& exec) { benchmark::DoNotOptimize(sum_squares(exec, x)); });
}

class Silent : public benchmark::BenchmarkReporter {
  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const&) override {}
};

void register_kernels() {
  auto const add = [](char const* name, void (*body)(benchmark::State&),
                      std::vector<std::vector<std::int64_t>> const& sizes) {
    auto* const b = benchmark::RegisterBenchmark(name, body);
    for (auto const& size : sizes) b->Args(size);
    b->UseRealTime();
  };
  std::vector<std::vector<std::int64_t>> const products = {
      {128, 128}, {256, 256}, {256, 2048}, {512, 512}, {1024, 1024}};
  std::vector<std::vector<std::int64_t>> const matrices = {{128, 128},  {256, 256}, {256, 1024},
                                                           {2048, 256}, {512, 512}, {1024, 1024}};
  std::vector<std::vector<std::int64_t>> const vectors = {{1 << 12}, {1 << 16}, {1 << 20}, {1 << 24}};
  add("gemm", bench_gemm, products);
  add("syrk", bench_syrk, products);
  add("newton_schulz", bench_newton_schulz, matrices);
  add("row_norm", bench_row_norm, matrices);
  add("column_sum_squares", bench_column_sums, matrices);
  add("column_norm_finish", bench_column_finish, matrices);
  add("momentum", bench_momentum, vectors);
  add("adamw", bench_adamw, vectors);
  add("decayed_update", bench_decayed_update, vectors);
  add("sum_squares", bench_sum_squares, vectors);
}

} // namespace

void run_kernels(std::vector<std::string> const& arguments) {
  std::vector<std::string> texts = {"prowl-bench kernels"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  int count = int(pointers.size());
  pointers.push_back(nullptr);
  register_kernels();
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) throw Error("kernels: unknown argument {}", pointers[1]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Silent silent;
  if (rank == 0)
    benchmark::RunSpecifiedBenchmarks();
  else
    benchmark::RunSpecifiedBenchmarks(&silent);
  benchmark::Shutdown();
}

} // namespace prowl::bench
