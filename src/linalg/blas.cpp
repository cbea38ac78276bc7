#include <prowl/linalg/blas.hpp>

#include <prowl/core/checked.hpp>
#include <prowl/core/error.hpp>
#include <prowl/linalg/detail/complement.hpp>

#include <cblas.h>
#ifdef PROWL_HAS_KOKKOS_KERNELS
#include <KokkosBlas3_gemm.hpp>
#endif

namespace prowl {

namespace {

struct Extents {
  std::int64_t rows, columns;
};

template <class View>
Extents extents(Op op, View const& v) {
  auto const rows = std::int64_t(v.extent(0)), columns = std::int64_t(v.extent(1));
  return op == Op::none ? Extents{rows, columns} : Extents{columns, rows};
}

/// BLAS counts in int. Throws Error where an extent or stride needs more.
int blas_int(std::int64_t extent) { return checked_int(extent, "an extent of a matrix product"); }

// The host's BLAS where the host can reach the memory; declared for both types so that the templates below read once.
#define PROWL_CBLAS(T, prefix)                                                                               \
  [[maybe_unused]] void host_gemm(Op op_a, Op op_b, std::int64_t k, T alpha, Matrix<T const> const& a,       \
                                  Matrix<T const> const& b, T beta, Matrix<T> const& c) {                    \
    cblas_##prefix##gemm(CblasRowMajor, op_a == Op::none ? CblasNoTrans : CblasTrans,                        \
                         op_b == Op::none ? CblasNoTrans : CblasTrans, blas_int(c.extent(0)),                \
                         blas_int(c.extent(1)), blas_int(k), alpha, a.data(), blas_int(a.stride(0)),         \
                         b.data(), blas_int(b.stride(0)), beta, c.data(), blas_int(c.stride(0)));            \
  }                                                                                                          \
  [[maybe_unused]] void host_syrk(Op op, std::int64_t k, T alpha, Matrix<T const> const& a, T beta,          \
                                  Matrix<T> const& c) {                                                      \
    cblas_##prefix##syrk(CblasRowMajor, CblasUpper, op == Op::none ? CblasNoTrans : CblasTrans,              \
                         blas_int(c.extent(0)), blas_int(k), alpha, a.data(), blas_int(a.stride(0)), beta,   \
                         c.data(), blas_int(c.stride(0)));                                                   \
  }
PROWL_CBLAS(float, s)
PROWL_CBLAS(double, d)
#undef PROWL_CBLAS

template <class T>
void multiply([[maybe_unused]] Execution const& exec, Op op_a, Op op_b, T alpha, Matrix<T const> const& a,
              Matrix<T const> const& b, T beta, Matrix<T> const& c) {
#ifdef PROWL_HAS_KOKKOS_KERNELS
  char const* const names[] = {"N", "T"};
  // What is below Kokkos Kernels counts in int as well.
  blas_int(std::int64_t(c.extent(0)));
  blas_int(std::int64_t(c.extent(1)));
  blas_int(extents(op_a, a).columns);
#if KOKKOS_VERSION >= 40000
  KokkosBlas::gemm(exec, names[int(op_a)], names[int(op_b)], alpha, a, b, beta, c);
#else
  KokkosBlas::gemm(names[int(op_a)], names[int(op_b)], alpha, a, b, beta, c);
#endif
#else
  static_assert(host_accessible, "a device build needs Kokkos Kernels");
  host_gemm(op_a, op_b, extents(op_a, a).columns, alpha, a, b, beta, c);
#endif
}

} // namespace

template <class T>
void gemm(Execution const& exec, Op op_a, Op op_b, T alpha, std::type_identity_t<Matrix<T const>> const& a,
          std::type_identity_t<Matrix<T const>> const& b, std::type_identity_t<T> beta, Matrix<T> const& c) {
  auto const ea = extents(op_a, a), eb = extents(op_b, b), ec = extents(Op::none, c);
  if (ea.rows != ec.rows || eb.columns != ec.columns || ea.columns != eb.rows)
    throw Error("gemm: op(A) is {} x {} and op(B) is {} x {}, but C is {} x {}", ea.rows, ea.columns, eb.rows,
                eb.columns, ec.rows, ec.columns);
  if (ec.rows == 0 || ec.columns == 0) return;
  // An empty sum: BLAS implementations differ here, and Kokkos Kernels would leave C as it is.
  if (ea.columns == 0) return detail::scale_matrix<T>(exec, beta, c);
  multiply<T>(exec, op_a, op_b, alpha, a, b, beta, c);
}

template <class T>
void gemm(Execution const& exec, Op op_a, Op op_b, T alpha, std::type_identity_t<Batch<T const>> const& a,
          std::type_identity_t<Batch<T const>> const& b, std::type_identity_t<T> beta, Batch<T> const& c) {
  if (a.extent(0) != c.extent(0) || b.extent(0) != c.extent(0))
    throw Error("gemm: batches of {} and {} matrices for a result of {}", a.extent(0), b.extent(0),
                c.extent(0));
  auto const matrix = [](auto const& batch, std::size_t i) {
    using V = std::decay_t<decltype(batch)>;
    return Matrix<typename V::value_type>(batch.data() + i * batch.extent(1) * batch.extent(2),
                                          batch.extent(1), batch.extent(2));
  };
  for (std::size_t i = 0; i < c.extent(0); ++i)
    gemm<T>(exec, op_a, op_b, alpha, matrix(a, i), matrix(b, i), beta, matrix(c, i));
}

template <class T>
void syrk(Execution const& exec, Op op_a, T alpha, std::type_identity_t<Matrix<T const>> const& a,
          std::type_identity_t<T> beta, Matrix<T> const& c) {
  auto const ea = extents(op_a, a), ec = extents(Op::none, c);
  if (ec.rows != ec.columns || ec.rows != ea.rows)
    throw Error("syrk: op(A) is {} x {}, but C is {} x {}", ea.rows, ea.columns, ec.rows, ec.columns);
  if (ec.rows == 0) return;
  if (ea.columns == 0) return detail::scale_matrix<T>(exec, beta, c);
  if constexpr (host_accessible) {
    host_syrk(op_a, ea.columns, alpha, a, beta, c);
    detail::mirror_upper(exec, c);
  } else {
    multiply<T>(exec, op_a, op_a == Op::none ? Op::transpose : Op::none, alpha, a, a, beta, c);
  }
}

char const* gemm_backend() {
#ifdef PROWL_HAS_KOKKOS_KERNELS
  return "KokkosKernels";
#else
  return "CBLAS";
#endif
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void gemm<T>(Execution const&, Op, Op, T, std::type_identity_t<Matrix<T const>> const&,           \
                        std::type_identity_t<Matrix<T const>> const&, std::type_identity_t<T>,               \
                        Matrix<T> const&);                                                                   \
  template void gemm<T>(Execution const&, Op, Op, T, std::type_identity_t<Batch<T const>> const&,            \
                        std::type_identity_t<Batch<T const>> const&, std::type_identity_t<T>,                \
                        Batch<T> const&);                                                                    \
  template void syrk<T>(Execution const&, Op, T, std::type_identity_t<Matrix<T const>> const&,               \
                        std::type_identity_t<T>, Matrix<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl
