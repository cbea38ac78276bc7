#include <prowl/optim/split_direction.hpp>

#include <prowl/kernels/newton_schulz.hpp>
#include <prowl/kernels/row_norm.hpp>
#include <prowl/placement/shard.hpp>

#include <algorithm>

namespace prowl {

namespace {

/// The side that is cut, and the other, of the whole.
struct Sides {
  int dimension;
  std::int64_t cut, other;
  bool by_gram() const { return cut >= other; }
};

Sides sides(Parameter const& p) {
  bool const rows = p.split->dimension == 0;
  return {p.split->dimension, p.split->extent, rows ? p.columns() : p.rows()};
}

/// Whether each rank has a part of every row of the oriented matrix.
bool sums_are_partial(Parameter const& p) { return is_tall(p) == (p.split->dimension == 0); }

std::int64_t gathered_part(Sides const& s, int ranks) { return padded_rows(s.cut, ranks) * s.other; }

/// The whole matrix from the gathered parts; where it lies.
Matrix<float> assemble(Execution const& exec, Parameter const& p, int ranks, Vector<float> const& received,
                       Vector<float> const& room) {
  auto const s = sides(p);
  // Rows of all ranks follow each other; only the last rank's padding is behind them.
  if (s.dimension == 0) return as_matrix(slice(received, 0, s.cut * s.other), s.cut, s.other);
  auto const whole = as_matrix(room, s.other, s.cut);
  for (int rank = 0; rank < ranks; ++rank) {
    auto const columns = shard_rows(s.cut, ranks, rank);
    auto const from = slice(received, rank * gathered_part(s, ranks), s.other * columns.size());
    Kokkos::deep_copy(exec, Kokkos::subview(whole, Kokkos::ALL, Kokkos::pair(columns.begin, columns.end)),
                      as_matrix(from, s.other, columns.size()));
  }
  return whole;
}

void by_gathering(Execution const& exec, Communicator const& group, Parameter const& p,
                  Matrix<float> const& part, Vector<float> const& workspace) {
  auto const s = sides(p);
  auto const each = gathered_part(s, group.size()), all = s.cut * s.other;
  auto const sent = slice(workspace, 0, each), received = slice(workspace, each, each * group.size());
  auto const room = slice(workspace, each * (group.size() + 1), s.dimension == 1 ? all : 0);
  auto const rest = each * (group.size() + 1) + std::int64_t(room.size());
  Kokkos::deep_copy(exec, sent, 0.0f);
  Kokkos::deep_copy(exec, slice(sent, 0, std::int64_t(part.size())), as_vector(part));
  group.all_gather(exec, sent, received, Purpose::optimizer).wait();
  auto const whole = assemble(exec, p, group.size(), received, room);
  newton_schulz(exec, whole, slice(workspace, rest, std::int64_t(workspace.size()) - rest));
  auto const mine = shard_rows(s.cut, group.size(), group.rank());
  auto const range = Kokkos::pair(mine.begin, mine.end);
  if (s.dimension == 0)
    Kokkos::deep_copy(exec, part, Kokkos::subview(whole, range, Kokkos::ALL));
  else
    Kokkos::deep_copy(exec, part, Kokkos::subview(whole, Kokkos::ALL, range));
}

} // namespace

std::int64_t split_workspace(Parameter const& p, int ranks) {
  auto const s = sides(p);
  auto const sums = std::max(p.rows(), p.columns());
  if (s.by_gram())
    return std::max(sums, s.other * s.other + newton_schulz_finish_workspace(p.rows(), p.columns(), s.other));
  return std::max(sums, gathered_part(s, ranks) * (ranks + 1) + (s.dimension == 1 ? s.cut * s.other : 0) +
                            newton_schulz_workspace(p.whole_rows(), p.whole_columns()));
}

std::vector<SplitCollective> split_collectives(Parameter const& p, int ranks, bool refreshes) {
  auto const s = sides(p);
  if (refreshes && s.by_gram()) return {{Collective::all_reduce, s.other * s.other}};
  if (refreshes) return {{Collective::all_gather, gathered_part(s, ranks) * ranks}};
  if (sums_are_partial(p)) return {{Collective::all_reduce, is_tall(p) ? p.columns() : p.rows()}};
  return {};
}

void split_newton_schulz(Execution const& exec, Communicator const& group, Parameter const& p,
                         Matrix<float> const& part, Vector<float> const& workspace) {
  auto const s = sides(p);
  if (!s.by_gram()) {
    by_gathering(exec, group, p, part, workspace);
    return;
  }
  bool const tall = s.dimension == 0;
  auto const size = s.other * s.other;
  auto const gram = slice(workspace, 0, size);
  newton_schulz_gram(exec, tall, part, as_matrix(gram, s.other, s.other));
  group.all_reduce(exec, gram, Purpose::optimizer).wait();
  newton_schulz_finish(exec, tall, as_matrix(gram, s.other, s.other), part,
                       slice(workspace, size, std::int64_t(workspace.size()) - size));
}

void split_row_norm(Execution const& exec, Communicator const& group, Parameter const& p, float gamma,
                    Matrix<float> const& part, Vector<float> const& workspace) {
  bool const tall = is_tall(p);
  auto const sums = slice(workspace, 0, tall ? p.columns() : p.rows());
  tall ? column_sum_squares(exec, part, sums) : row_sum_squares(exec, part, sums);
  if (sums_are_partial(p)) group.all_reduce_squares(exec, sums, Purpose::optimizer).wait();
  tall ? column_norm_finish(exec, gamma, sums, part) : row_norm_finish(exec, gamma, sums, part);
}

} // namespace prowl
