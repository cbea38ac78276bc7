#include <prowl/store/registration.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace prowl {

namespace {

std::vector<std::string> lines_of(Layout const& layout) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < layout.parameters().size(); ++i) {
    auto const& p = layout.parameters()[i];
    auto const& owner = layout.placement(i);
    auto const shape = p.is_matrix() ? fmt::format("{}, {}", p.whole_rows(), p.whole_columns())
                                     : fmt::format("{}", p.rows());
    auto const split = p.split ? fmt::format(" split along {}", p.split->dimension) : "";
    auto const where =
        owner ? fmt::format("owned by shard {} replica {}", owner->shard, owner->replica) : "sharded";
    lines.push_back(fmt::format("{} [{}]{} in unit {}, {}", p.name, shape, split, p.unit, where));
  }
  return lines;
}

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// What is wrong with the part of a split matrix here, or nothing.
std::string wrong_part(Layout const& layout) {
  auto const& place = layout.place();
  for (auto const& p : layout.parameters()) {
    if (!p.split) continue;
    auto const part = shard_rows(p.split->extent, place.tensors, place.tensor).size();
    auto const here = p.shape[std::size_t(p.split->dimension)];
    if (here != part)
      return fmt::format("parameter {}: rank {} of a tensor group of {} has {} {}, expected {} of {}", p.name,
                         place.tensor, place.tensors, here, p.split->dimension == 0 ? "rows" : "columns",
                         part, p.split->extent);
  }
  return "";
}

} // namespace

void require_same_registration(Communicator const& world, Layout const& layout) {
  auto const mine = lines_of(layout);
  auto text = fmt::format("{}", fmt::join(mine, "\n"));
  std::uint64_t length = text.size();
  MPI_Bcast(&length, 1, MPI_UINT64_T, 0, world.mpi());
  text.resize(length);
  MPI_Bcast(text.data(), int(length), MPI_CHAR, 0, world.mpi());
  auto const first = split(text);
  auto failure = wrong_part(layout);
  auto const [here, there] = std::ranges::mismatch(mine, first);
  if (failure.empty() && (here != mine.end() || there != first.end()))
    failure = fmt::format(
        "parameter number {}: rank {} registers {}, but rank 0 {}; all ranks must register the same "
        "parameters in the same order",
        here - mine.begin(), world.rank(), here == mine.end() ? "no more" : *here,
        there == first.end() ? "no more" : *there);
  agree(world.mpi(), failure);
}

} // namespace prowl
