#include <dit/attention.hpp>

#include <dit/detail/rows.hpp>

#include <prowl/core/math.hpp>
#include <prowl/linalg/blas.hpp>

namespace prowl::dit {

namespace {

/// 1 / sqrt(64), exact.
constexpr float attention_scale = 0.125F;

/// The heads of one sample.
template <class T>
Batch<T> of_sample(Batch<T> const& all, int heads, int sample) {
  return Batch<T>(all.data() + std::int64_t(sample) * heads * all.extent(1) * all.extent(2), heads,
                  all.extent(1), all.extent(2));
}

template <class T>
void softmax(Execution const& exec, Batch<T> const& scores) {
  auto const p = scores.data();
  int const n = int(scores.extent(2));
  Kokkos::parallel_for(
      "prowl::dit::softmax", detail::rows(exec, std::int64_t(scores.extent(0) * scores.extent(1))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        auto const row = p + std::int64_t(team.league_rank()) * n;
        T const top = detail::maximum<T>(team, n, [&](int j) { return row[j]; });
        team.team_barrier();
        detail::each(team, n, [&](int j) { row[j] = math::exp(row[j] - top); });
        team.team_barrier();
        T const inverse = T(1) / detail::sum<T>(team, n, [&](int j) { return row[j]; });
        detail::each(team, n, [&](int j) { row[j] *= inverse; });
      });
}

/// ds <- p * (dp - sum of p * dp over the row), in place of dp.
template <class T>
void softmax_backward(Execution const& exec, Batch<T> const& probabilities, Batch<T> const& gradient) {
  auto const p = probabilities.data(), dp = gradient.data();
  int const n = int(gradient.extent(2));
  Kokkos::parallel_for(
      "prowl::dit::softmax_backward",
      detail::rows(exec, std::int64_t(gradient.extent(0) * gradient.extent(1))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        auto const row = p + std::int64_t(team.league_rank()) * n;
        auto const drow = dp + std::int64_t(team.league_rank()) * n;
        T const dot = detail::sum<T>(team, n, [&](int j) { return row[j] * drow[j]; });
        detail::each(team, n, [&](int j) { drow[j] = row[j] * (drow[j] - dot); });
      });
}

template <class T>
void probabilities(Execution const& exec, Batch<T> const& q, Batch<T> const& k, Batch<T> const& scores) {
  gemm<T>(exec, Op::none, Op::transpose, T(attention_scale), q, k, T(0), scores);
  softmax<T>(exec, scores);
}

} // namespace

template <class T>
void attention(Execution const& exec, int heads, Batch<T> const& q, Batch<T> const& k, Batch<T> const& v,
               Batch<T> const& scores, Batch<T> const& out) {
  int const samples = int(q.extent(0)) / heads;
  for (int s = 0; s < samples; ++s) {
    probabilities<T>(exec, of_sample(q, heads, s), of_sample(k, heads, s), scores);
    gemm<T>(exec, Op::none, Op::none, T(1), scores, of_sample(v, heads, s), T(0), of_sample(out, heads, s));
  }
}

template <class T>
void attention_backward(Execution const& exec, int heads, Batch<T> const& q, Batch<T> const& k,
                        Batch<T> const& v, Batch<T> const& scores, Batch<T> const& dscores,
                        Batch<T> const& dout) {
  int const samples = int(q.extent(0)) / heads;
  for (int s = 0; s < samples; ++s) {
    auto const qs = of_sample(q, heads, s), ks = of_sample(k, heads, s), vs = of_sample(v, heads, s);
    auto const ds = of_sample(dout, heads, s);
    probabilities<T>(exec, qs, ks, scores);
    gemm<T>(exec, Op::none, Op::transpose, T(1), ds, vs, T(0), dscores);
    gemm<T>(exec, Op::transpose, Op::none, T(1), scores, ds, T(0), vs); // dv; v is not needed any more
    softmax_backward<T>(exec, scores, dscores);
    gemm<T>(exec, Op::none, Op::none, T(attention_scale), dscores, ks, T(0), ds);      // dq
    gemm<T>(exec, Op::transpose, Op::none, T(attention_scale), dscores, qs, T(0), ks); // dk
  }
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void attention<T>(Execution const&, int, Batch<T> const&, Batch<T> const&, Batch<T> const&,       \
                             Batch<T> const&, Batch<T> const&);                                              \
  template void attention_backward<T>(Execution const&, int, Batch<T> const&, Batch<T> const&,               \
                                      Batch<T> const&, Batch<T> const&, Batch<T> const&, Batch<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
