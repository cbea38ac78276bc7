#include <bench/measure.hpp>

#include <prowl/core/error.hpp>
#include <prowl/kernels/fill.hpp>

#include <chrono>
#include <thread>

namespace prowl::bench {

namespace {

void check(int code) {
  if (code != MPI_SUCCESS) throw Error("the ranks could not wait for each other (MPI error {})", code);
}

} // namespace

double median(std::vector<double> values) {
  auto const middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Vector<float> random_vector(std::int64_t size, std::uint64_t stream) {
  auto const v = uninitialised<Vector<float>>("random", size);
  fill_normal(Execution(), Random(1, stream), 0, 1, v);
  Execution().fence();
  return v;
}

Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns) {
  auto const m = uninitialised<Matrix<float>>("random", rows, columns);
  Kokkos::deep_copy(as_vector(m), random_vector(rows * columns, 0));
  return m;
}

void sleep_until_all(Communicator const& world) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(world.mpi(), &request));
  int done = 0;
  while (true) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace prowl::bench
