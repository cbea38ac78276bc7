#include <prowl/io/program_memory.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/process_memory.hpp>
#include <prowl/core/types.hpp>
#include <prowl/io/array_file.hpp>
#include <prowl/linalg/blas.hpp>

#include <unistd.h>

#include <filesystem>

namespace prowl {

namespace {

void use_blas() {
  constexpr int n = 512; // large enough for its buffers
  Matrix<float> const a("a", n, n), c("c", n, n);
  Execution const exec;
  gemm<float>(exec, Op::none, Op::transpose, 1, a, a, 0, c);
  syrk<float>(exec, Op::none, 1, a, 0, c);
  exec.fence();
}

void use_hdf5() {
  std::error_code error;
  auto const path = std::filesystem::temp_directory_path(error) / fmt::format("prowl-{}.h5", getpid());
  if (error) return;
  std::vector<float> values(1 << 16), read(values.size());
  std::int64_t const rows = 256, columns = std::int64_t(values.size()) / rows;
  ArrayFileContents contents;
  contents.attributes["step"] = std::int64_t{0};
  contents.texts["deck"] = "none";
  contents.arrays.push_back({"values", {rows, columns}, 0, rows, static_cast<float const*>(values.data())});
  try {
    write_array_file(MPI_COMM_SELF, path.string(), contents);
    ArrayFileReader(MPI_COMM_SELF, path.string())
        .read(ArrayTarget{"values", {rows, columns}, 0, rows, read.data()});
  } catch (Error const&) { // no room there: what was not used is not counted
  }
  std::filesystem::remove(path, error);
}

} // namespace

std::int64_t program_bytes() {
  use_blas();
  use_hdf5();
  return resident_bytes();
}

} // namespace prowl
