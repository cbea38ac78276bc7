#include <dit/heads.hpp>

#include <dit/detail/rows.hpp>
#include <dit/linear.hpp>
#include <dit/rms_norm.hpp>
#include <dit/rope.hpp>

#include <prowl/core/math.hpp>

namespace prowl::dit {

namespace {

constexpr int head_size = 64, pairs = head_size / 2;
/// Tokens whose part of the norm's gradient one team sums.
constexpr int chunk = 32;

using Lanes = Kokkos::TeamPolicy<Execution>;

/// A team a token; threads share the heads, lanes a head.
Lanes lanes(Execution const& exec, std::int64_t n, int threads) {
  return detail::on_host ? Lanes(exec, int(n), 1, 1) : Lanes(exec, int(n), threads, pairs);
}

template <class F>
KOKKOS_FORCEINLINE_FUNCTION void each_pair([[maybe_unused]] detail::Team const& team, F const& f) {
  if constexpr (detail::on_host) {
    PROWL_DIT_IVDEP
    for (int i = 0; i < pairs; ++i) f(i);
  } else {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, pairs), f);
  }
}

template <class T, class F>
KOKKOS_FORCEINLINE_FUNCTION T sum_pairs([[maybe_unused]] detail::Team const& team, F const& f) {
  T total = 0;
  if constexpr (detail::on_host) {
    constexpr int width = 8;
    T partial[width] = {};
    for (int i = 0; i < pairs; i += width)
      for (int l = 0; l < width; ++l) partial[l] += f(i + l);
    for (int l = 0; l < width; ++l) total += partial[l];
  } else {
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, pairs), [&](int i, T& part) { part += f(i); }, total);
  }
  return total;
}

/// Where a head of a token lies: `row` of the stream's rows, `joint` of the joint heads.
struct Place {
  std::int64_t row, joint;
};

KOKKOS_FORCEINLINE_FUNCTION Place place(HeadShape const& s, std::int64_t sample, int token, int head) {
  return {((sample * s.tokens + token) * s.heads + head) * head_size,
          ((sample * s.heads + head) * s.joint + s.offset + token) * head_size};
}

template <class T, class F>
void copy_heads(Execution const& exec, HeadShape shape, F const& copy) {
  Kokkos::parallel_for(
      "prowl::dit::copy_heads", lanes(exec, std::int64_t(shape.samples) * shape.tokens, 4),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank() / shape.tokens;
        int const token = team.league_rank() % shape.tokens;
        for (int head = team.team_rank(); head < shape.heads; head += team.team_size()) {
          auto const at = place(shape, sample, token, head);
          each_pair(team, [&](int i) {
            copy(at, 2 * i);
            copy(at, 2 * i + 1);
          });
        }
      });
}

template <class T>
struct ToHeads {
  T const* rows;
  T* heads;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place at, int i) const {
    heads[at.joint + i] = rows[at.row + i];
  }
};

template <class T>
struct FromHeads {
  T const* heads;
  T* rows;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place at, int i) const {
    rows[at.row + i] = heads[at.joint + i];
  }
};

} // namespace

template <class T>
void to_heads(Execution const& exec, HeadShape shape, Matrix<T const> const& rows, Batch<T> const& heads) {
  copy_heads<T>(exec, shape, ToHeads<T>{rows.data(), heads.data()});
}

template <class T>
void from_heads(Execution const& exec, HeadShape shape, Batch<T const> const& heads, Matrix<T> const& rows) {
  copy_heads<T>(exec, shape, FromHeads<T>{heads.data(), rows.data()});
}

template <class T>
void norm_to_heads(Execution const& exec, HeadShape shape, Matrix<T const> const& rows,
                   Matrix<T const> const& weight, Matrix<T const> const& rope, Batch<T> const& heads) {
  auto const in = rows.data(), w = weight.data(), table = rope.data();
  auto const out = heads.data();
  Kokkos::parallel_for(
      "prowl::dit::norm_to_heads", lanes(exec, std::int64_t(shape.samples) * shape.tokens, 4),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const sample = team.league_rank() / shape.tokens;
        int const token = team.league_rank() % shape.tokens;
        auto const angle = table ? table + std::int64_t(token) * head_size : table;
        for (int head = team.team_rank(); head < shape.heads; head += team.team_size()) {
          auto const at = place(shape, sample, token, head);
          auto const x = in + at.row;
          auto const y = out + at.joint;
          T const squares =
              sum_pairs<T>(team, [&](int i) { return x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1]; });
          T const r = T(1) / math::sqrt(squares / T(head_size) + T(norm_eps));
          if (angle)
            each_pair(team, [&](int i) {
              T a = x[2 * i] * r * w[2 * i], b = x[2 * i + 1] * r * w[2 * i + 1];
              rotate(angle[2 * i], angle[2 * i + 1], a, b);
              y[2 * i] = a;
              y[2 * i + 1] = b;
            });
          else
            each_pair(team, [&](int i) {
              y[2 * i] = x[2 * i] * r * w[2 * i];
              y[2 * i + 1] = x[2 * i + 1] * r * w[2 * i + 1];
            });
        }
      });
}

std::int64_t head_norm_partials(HeadShape shape) {
  return std::int64_t(shape.samples) * shape.heads * ((shape.tokens + chunk - 1) / chunk);
}

namespace {

/// The gradient of one head of one token; adds the weight's part to `part`.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void norm_head_backward(detail::Team const& team, T const* dy, T const* w,
                                                    T const* angle, T* x, T* part) {
  T const squares =
      sum_pairs<T>(team, [&](int i) { return x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1]; });
  T const r = T(1) / math::sqrt(squares / T(head_size) + T(norm_eps));
  auto const unrotated = [&](int i, T& a, T& b) {
    a = dy[2 * i];
    b = dy[2 * i + 1];
    if (angle) rotate(angle[2 * i], -angle[2 * i + 1], a, b);
  };
  T const mean = sum_pairs<T>(team,
                              [&](int i) {
                                T a, b;
                                unrotated(i, a, b);
                                return a * w[2 * i] * x[2 * i] + b * w[2 * i + 1] * x[2 * i + 1];
                              }) *
                 r / T(head_size);
  each_pair(team, [&](int i) {
    T a, b;
    unrotated(i, a, b);
    T const xa = x[2 * i] * r, xb = x[2 * i + 1] * r;
    part[2 * i] += a * xa;
    part[2 * i + 1] += b * xb;
    x[2 * i] = r * (a * w[2 * i] - xa * mean);
    x[2 * i + 1] = r * (b * w[2 * i + 1] - xb * mean);
  });
}

} // namespace

template <class T>
void norm_to_heads_backward(Execution const& exec, HeadShape shape, Batch<T const> const& dheads,
                            Matrix<T const> const& weight, Matrix<T const> const& rope, Matrix<T> const& rows,
                            Matrix<T> const& partials, Matrix<T> const& dweight) {
  auto const upstream = dheads.data(), w = weight.data(), table = rope.data();
  auto const x = rows.data(), sums = partials.data();
  int const chunks = (shape.tokens + chunk - 1) / chunk;
  Kokkos::parallel_for(
      "prowl::dit::norm_to_heads_backward", lanes(exec, head_norm_partials(shape), 1),
      KOKKOS_LAMBDA(detail::Team const& team) {
        int const head = team.league_rank() / chunks % shape.heads;
        std::int64_t const sample = team.league_rank() / chunks / shape.heads;
        int const begin = team.league_rank() % chunks * chunk;
        int const end = begin + chunk < shape.tokens ? begin + chunk : shape.tokens;
        auto const part = sums + std::int64_t(team.league_rank()) * head_size;
        each_pair(team, [&](int i) { part[2 * i] = part[2 * i + 1] = T(0); });
        for (int token = begin; token < end; ++token) {
          auto const at = place(shape, sample, token, head);
          auto const angle = table ? table + std::int64_t(token) * head_size : table;
          norm_head_backward<T>(team, upstream + at.joint, w, angle, x + at.row, part);
        }
      });
  sum_rows<T>(exec, Matrix<T>(partials.data(), head_norm_partials(shape), head_size), dweight);
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void to_heads<T>(Execution const&, HeadShape, Matrix<T const> const&, Batch<T> const&);           \
  template void from_heads<T>(Execution const&, HeadShape, Batch<T const> const&, Matrix<T> const&);         \
  template void norm_to_heads<T>(Execution const&, HeadShape, Matrix<T const> const&,                        \
                                 Matrix<T const> const&, Matrix<T const> const&, Batch<T> const&);           \
  template void norm_to_heads_backward<T>(Execution const&, HeadShape, Batch<T const> const&,                \
                                          Matrix<T const> const&, Matrix<T const> const&, Matrix<T> const&,  \
                                          Matrix<T> const&, Matrix<T> const&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
