// What a user of the installed library writes: multiplies two small matrices and checks the product.
#include <prowl/io/hdf5.hpp>
#include <prowl/linalg/blas.hpp>

#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  {
    Kokkos::ScopeGuard const kokkos(argc, argv);
    prowl::Matrix<float> const a("a", 2, 3), b("b", 3, 2), c("c", 2, 2);
    auto const host_a = Kokkos::create_mirror_view(a);
    auto const host_b = Kokkos::create_mirror_view(b);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) {
        host_a(i, j) = static_cast<float>(3 * i + j + 1); // 1 2 3 / 4 5 6
        host_b(j, i) = static_cast<float>(2 * j + i + 7); // 7 8 / 9 10 / 11 12
      }
    Kokkos::deep_copy(a, host_a);
    Kokkos::deep_copy(b, host_b);
    prowl::gemm(prowl::Execution(), prowl::Op::none, prowl::Op::none, 1.0F, a, b, 0.0F, c);
    auto const host_c = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);

    // Worked by hand: small integers, so exact in float.
    bool const right = host_c(0, 0) == 58 && host_c(0, 1) == 64 && host_c(1, 0) == 139 && host_c(1, 1) == 154;
    bool refused = false;
    try {
      prowl::hdf5::check(-1, "outside");
    } catch (prowl::Error const&) {
      refused = true;
    }
    std::printf("product %s, error %s\n", right ? "right" : "WRONG", refused ? "thrown" : "LOST");
    status = right && refused ? 0 : 1;
  }
  MPI_Finalize();
  return status;
}
