#include <prowl/kernels/row_norm.hpp>

#include <prowl/core/math.hpp>
#include <prowl/core/square_sum.hpp>
#include <prowl/kernels/detail/elementwise.hpp>
#include <prowl/kernels/detail/sum_squares.hpp>

namespace prowl {

namespace {

using Policy = Kokkos::TeamPolicy<Execution>;
using Team = Policy::member_type;

// Teams of one thread on the host. On a device a row is shared by 128 threads; a block of columns by 16 x 32.
constexpr int row_team = host_accessible ? 1 : 128;
constexpr int column_team = host_accessible ? 1 : 16;
constexpr int column_lanes = host_accessible ? 1 : 32;
// Columns that a team sums: on the host enough for contiguous access, few enough for the nearest cache.
constexpr std::int64_t column_block = host_accessible ? 256 : 32;

/// Rounded to a float, so that a product with a float is rounded as floats are, unless it is below those of
/// full precision.
KOKKOS_INLINE_FUNCTION double norm_factor(float gamma, double sum) {
  double const norm = math::sqrt(sum);
  // Written so that a NaN stays one.
  double const factor = gamma / (norm < row_norm_epsilon ? row_norm_epsilon : norm);
  return factor < 0x1p-126 ? factor : double(float(factor));
}

/// Exact before it is rounded where the factor is a float.
KOKKOS_INLINE_FUNCTION float times(float x, double factor) { return float(double(x) * factor); }

/// The sum of the squares of a row, shared by a team.
KOKKOS_INLINE_FUNCTION double row_sum(Team const& team, float const* row, std::int64_t columns) {
  auto const runs = (columns + detail::sum_run - 1) / detail::sum_run;
  double sum = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, runs),
      [&](std::int64_t run, double& partial) {
        auto const begin = run * detail::sum_run;
        auto const rest = columns - begin;
        partial += detail::sum_squares(row + begin, rest < detail::sum_run ? rest : detail::sum_run);
      },
      sum);
  return sum;
}

} // namespace

void row_norm(Execution const& exec, float gamma, Matrix<float> const& x) {
  auto const rows = std::int64_t(x.extent(0)), columns = std::int64_t(x.extent(1));
  if (rows == 0 || columns == 0) return;
  auto const data = x.data();
  Kokkos::parallel_for(
      "prowl::row_norm", Policy(exec, detail::teams("row_norm", rows), row_team),
      KOKKOS_LAMBDA(Team const& team) {
        float* const row = data + team.league_rank() * columns;
        double const factor = norm_factor(gamma, row_sum(team, row, columns));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, columns),
                             [&](std::int64_t j) { row[j] = times(row[j], factor); });
      });
}

void row_sum_squares(Execution const& exec, Matrix<float const> const& x, Vector<float> const& sums) {
  auto const rows = std::int64_t(x.extent(0)), columns = std::int64_t(x.extent(1));
  detail::require_size("row_sum_squares", "sums", sums.size(), x.extent(0));
  if (rows == 0) return;
  auto const data = x.data();
  auto const result = sums.data();
  Kokkos::parallel_for(
      "prowl::row_sum_squares", Policy(exec, detail::teams("row_sum_squares", rows), row_team),
      KOKKOS_LAMBDA(Team const& team) {
        double const sum = row_sum(team, data + team.league_rank() * columns, columns);
        Kokkos::single(Kokkos::PerTeam(team), [&]() { result[team.league_rank()] = store_square_sum(sum); });
      });
}

void row_norm_finish(Execution const& exec, float gamma, Vector<float const> const& sums,
                     Matrix<float> const& x) {
  auto const rows = std::int64_t(x.extent(0)), columns = std::int64_t(x.extent(1));
  detail::require_size("row_norm_finish", "sums", sums.size(), x.extent(0));
  if (rows == 0 || columns == 0) return;
  auto const data = x.data();
  auto const sum = sums.data();
  Kokkos::parallel_for(
      "prowl::row_norm_finish", Policy(exec, detail::teams("row_norm_finish", rows), row_team),
      KOKKOS_LAMBDA(Team const& team) {
        float* const row = data + team.league_rank() * columns;
        double const factor = norm_factor(gamma, load_square_sum(sum[team.league_rank()]));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, columns),
                             [&](std::int64_t j) { row[j] = times(row[j], factor); });
      });
}

void column_sum_squares(Execution const& exec, Matrix<float const> const& x, Vector<float> const& sums) {
  auto const rows = std::int64_t(x.extent(0)), columns = std::int64_t(x.extent(1));
  detail::require_size("column_sum_squares", "sums", sums.size(), x.extent(1));
  if (columns == 0) return;
  auto const data = x.data();
  auto const result = sums.data();
  auto const blocks = (columns + column_block - 1) / column_block;
  // Every thread of a team adds every column_team-th row in its own part of the scratch memory, then the
  // parts are added in order: no atomics, always the same bits.
  Kokkos::parallel_for(
      "prowl::column_sum_squares",
      Policy(exec, detail::teams("column_sum_squares", blocks), column_team, column_lanes)
          .set_scratch_size(0, Kokkos::PerTeam(int(sizeof(double) * column_team * column_block))),
      KOKKOS_LAMBDA(Team const& team) {
        auto const begin = team.league_rank() * column_block;
        auto const width = columns - begin < column_block ? columns - begin : column_block;
        auto* const scratch =
            static_cast<double*>(team.team_scratch(0).get_shmem(sizeof(double) * column_team * column_block));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, column_team), [&](int part) {
          double* const partial = scratch + part * column_block;
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width),
                               [&](std::int64_t j) { partial[j] = 0; });
          for (std::int64_t i = part; i < rows; i += column_team) {
            float const* const row = data + i * columns + begin;
            Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width),
                                 [&](std::int64_t j) { partial[j] += double(row[j]) * double(row[j]); });
          }
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 1), [&](int) {
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width), [&](std::int64_t j) {
            double sum = 0;
            for (int part = 0; part < column_team; ++part) sum += scratch[part * column_block + j];
            result[begin + j] = store_square_sum(sum);
          });
        });
      });
}

void column_norm_finish(Execution const& exec, float gamma, Vector<float const> const& sums,
                        Matrix<float> const& x) {
  auto const rows = std::int64_t(x.extent(0)), columns = std::int64_t(x.extent(1));
  detail::require_size("column_norm_finish", "sums", sums.size(), x.extent(1));
  if (rows == 0 || columns == 0) return;
  auto const data = x.data();
  auto const sum = sums.data();
  // A team scales a few rows by a block of columns, whose factors it computes once.
  constexpr std::int64_t height = 64;
  auto const blocks = (columns + column_block - 1) / column_block, strips = (rows + height - 1) / height;
  Kokkos::parallel_for(
      "prowl::column_norm_finish",
      Policy(exec, detail::teams("column_norm_finish", blocks * strips), column_team, column_lanes)
          .set_scratch_size(0, Kokkos::PerTeam(int(sizeof(double) * column_block))),
      KOKKOS_LAMBDA(Team const& team) {
        auto const begin = team.league_rank() % blocks * column_block;
        auto const width = columns - begin < column_block ? columns - begin : column_block;
        auto const top = team.league_rank() / blocks * height;
        auto const end = top + height < rows ? top + height : rows;
        auto* const factors =
            static_cast<double*>(team.team_scratch(0).get_shmem(sizeof(double) * column_block));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 1), [&](int) {
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width), [&](std::int64_t j) {
            factors[j] = norm_factor(gamma, load_square_sum(sum[begin + j]));
          });
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, top, end), [&](std::int64_t i) {
          float* const row = data + i * columns + begin;
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width),
                               [&](std::int64_t j) { row[j] = times(row[j], factors[j]); });
        });
      });
}

} // namespace prowl
