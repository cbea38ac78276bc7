#include <bench/timeline.hpp>

#include <prowl/comm/agree.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/io/atomic_file.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace prowl::bench {

namespace {

void check(int code) {
  if (code != MPI_SUCCESS) throw Error("the spans of the ranks could not be gathered (MPI error {})", code);
}

/// On rank 0, the texts of all ranks joined by commas.
std::string gather_text(Communicator const& world, std::string const& text) {
  int const size = int(text.size());
  std::vector<int> sizes(std::size_t(world.size())), offsets(sizes.size());
  check(MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, world.mpi()));
  for (std::size_t r = 1; r < sizes.size(); ++r) offsets[r] = offsets[r - 1] + sizes[r - 1] + 1;
  std::string joined(world.rank() == 0 ? std::size_t(offsets.back() + sizes.back()) : 0, ',');
  check(MPI_Gatherv(text.data(), size, MPI_CHAR, joined.data(), sizes.data(), offsets.data(), MPI_CHAR, 0,
                    world.mpi()));
  return joined;
}

} // namespace

Overlap measure_overlap(Communicator const& world) {
  std::vector<trace::Event> ns5, gathers;
  for (auto const& event : trace::events()) {
    if (event.track == trace::Track::compute && event.name == "NS5") ns5.push_back(event);
    if (event.track == trace::Track::communication && event.name.starts_with("optimizer all_gather"))
      gathers.push_back(event);
  }
  double sums[5] = {};
  for (auto const& span : ns5) sums[2] += span.end - span.begin;
  for (auto const& gather : gathers) {
    sums[0] += gather.end - gather.begin;
    for (auto const& span : ns5) {
      sums[1] += std::max(0.0, std::min(gather.end, span.end) - std::max(gather.begin, span.begin));
      if (span.begin < gather.end && gather.end < span.end) sums[4] += 1;
    }
  }
  sums[3] = double(gathers.size());
  world.sum(sums);
  return {sums[0], sums[1], sums[2], std::int64_t(sums[3]), std::int64_t(sums[4])};
}

void write_trace(Communicator const& world, std::string const& path) {
  auto const events = gather_text(world, trace::json(world.rank()));
  together_on(0, world.mpi(),
              [&] { write_file(path, fmt::format("{{\"traceEvents\":[\n{}\n]}}\n", events)); });
}

} // namespace prowl::bench
