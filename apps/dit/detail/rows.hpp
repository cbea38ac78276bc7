/// Row kernels: a team for each row of a matrix. On the host a team is one thread and a row a plain loop that
/// the compiler vectorises; on a device the team shares the row.
#pragma once

#include <prowl/core/types.hpp>

#include <type_traits>

#if defined(__GNUC__) && !defined(__CUDACC__)
#define PROWL_DIT_IVDEP _Pragma("GCC ivdep")
#else
#define PROWL_DIT_IVDEP
#endif

namespace prowl::dit::detail {

using Rows = Kokkos::TeamPolicy<Execution>;
using Team = Rows::member_type;
inline constexpr bool on_host = std::is_same_v<Execution, Kokkos::DefaultHostExecutionSpace>;

/// A team for each of n rows.
inline Rows rows(Execution const& exec, std::int64_t n) { return Rows(exec, int(n), on_host ? 1 : 128); }

/// f(i) for i in [0, n), independent of each other, shared among the team.
template <class F>
KOKKOS_FORCEINLINE_FUNCTION void each([[maybe_unused]] Team const& team, int n, F const& f) {
  if constexpr (on_host) {
    PROWL_DIT_IVDEP
    for (int i = 0; i < n; ++i) f(i);
  } else {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), f);
  }
}

/// The sum of f(i), i in [0, n), known to the whole team. Lanes are summed apart on the host, so that it
/// vectorises.
template <class T, class F>
KOKKOS_FORCEINLINE_FUNCTION T sum([[maybe_unused]] Team const& team, int n, F const& f) {
  T total = 0;
  if constexpr (on_host) {
    constexpr int lanes = 16;
    T partial[lanes] = {};
    int i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int l = 0; l < lanes; ++l) partial[l] += f(i + l);
    for (; i < n; ++i) partial[0] += f(i);
    for (int l = 0; l < lanes; ++l) total += partial[l];
  } else {
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](int i, T& part) { part += f(i); }, total);
  }
  return total;
}

/// The largest f(i), i in [0, n), n > 0, known to the whole team.
template <class T, class F>
KOKKOS_FORCEINLINE_FUNCTION T maximum([[maybe_unused]] Team const& team, int n, F const& f) {
  T result = f(0);
  if constexpr (on_host) {
    for (int i = 1; i < n; ++i) result = f(i) > result ? f(i) : result;
  } else {
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](int i, T& part) { part = f(i) > part ? f(i) : part; },
        Kokkos::Max<T>(result));
  }
  return result;
}

/// Columns that one team sums.
inline constexpr int strip = 128;
inline std::int64_t strips(std::int64_t columns) { return (columns + strip - 1) / strip; }

/// out(j, sum over r in [0, count) of f(r, j)) for j in [0, n), n <= strip. Rows are outermost on the host,
/// columns on a device: contiguous either way. The order of a column's additions is fixed.
template <class T, class F, class Out>
KOKKOS_FORCEINLINE_FUNCTION void sum_columns(Team const& team, int n, int count, F const& f, Out const& out) {
  if constexpr (on_host) {
    T partial[strip] = {};
    for (int r = 0; r < count; ++r) {
      PROWL_DIT_IVDEP
      for (int j = 0; j < n; ++j) partial[j] += f(r, j);
    }
    each(team, n, [&](int j) { out(j, partial[j]); });
  } else {
    each(team, n, [&](int j) {
      T total = 0;
      for (int r = 0; r < count; ++r) total += f(r, j);
      out(j, total);
    });
  }
}

} // namespace prowl::dit::detail
