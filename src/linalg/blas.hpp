/// Dense linear algebra on row-major views, for T = float and double.
///
/// One interface over Kokkos Kernels (any execution space) and CBLAS (host). Calls are asynchronous where the execution
/// space is; they allocate nothing. Shapes that do not fit together throw Error.
#pragma once

#include <prowl/core/types.hpp>

#include <type_traits>

namespace prowl {

enum class Op { none, transpose };

/// C <- alpha op(A) op(B) + beta C. With beta = 0 the old C is not read.
template <class T>
void gemm(Execution const& exec, Op op_a, Op op_b, T alpha, std::type_identity_t<Matrix<T const>> const& a,
          std::type_identity_t<Matrix<T const>> const& b, std::type_identity_t<T> beta, Matrix<T> const& c);

/// The same for every index of the first dimension.
template <class T>
void gemm(Execution const& exec, Op op_a, Op op_b, T alpha, std::type_identity_t<Batch<T const>> const& a,
          std::type_identity_t<Batch<T const>> const& b, std::type_identity_t<T> beta, Batch<T> const& c);

/// C <- alpha A A^T + beta C (op none) or alpha A^T A + beta C (op transpose), with a symmetric C, which is
/// written whole. For a symmetric A, the first is A^2, at half the work of gemm on the host.
template <class T>
void syrk(Execution const& exec, Op op_a, T alpha, std::type_identity_t<Matrix<T const>> const& a,
          std::type_identity_t<T> beta, Matrix<T> const& c);

/// "KokkosKernels" or "CBLAS": what gemm calls.
char const* gemm_backend();

} // namespace prowl
