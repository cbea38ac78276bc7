#include <prowl/plan/simulation.hpp>

#include <algorithm>
#include <numeric>

namespace prowl {

namespace {

using Kind = Program::Instruction::Kind;

constexpr std::size_t none = ~std::size_t{0};

struct Flight {
  double begin, end;
  std::size_t before; ///< in its channel, where `begin` is that one's end
};

struct Span {
  double begin, end;
};

/// When `seconds` of work that begins at `begin` end, if it slows down beside flights.
double end_of_work(double begin, double seconds, std::vector<Flight> const& flights, std::size_t first,
                   double slowdown) {
  if (slowdown == 0) return begin + seconds;
  std::vector<Span> busy; // may overlap: the union counts
  for (auto f = first; f < flights.size(); ++f)
    if (flights[f].end > begin) busy.push_back({std::max(begin, flights[f].begin), flights[f].end});
  std::ranges::sort(busy, {}, &Span::begin);
  double now = begin, left = seconds;
  for (auto const& span : busy) {
    if (span.end <= now) continue;
    double const quiet = std::max(0.0, span.begin - now);
    if (left <= quiet) return now + left;
    left -= quiet;
    now += quiet;
    double const possible = (span.end - now) * (1 - slowdown);
    if (left <= possible) return now + left / (1 - slowdown);
    left -= possible;
    now = span.end;
  }
  return now + left;
}

class Simulator {
public:
  Simulator(Program const& program, double slowdown) : program_(program), slowdown_(slowdown) {}

  Timeline run() {
    double now = 0;
    for (auto const& instruction : program_.instructions()) {
      double const begin = now;
      switch (instruction.kind) {
      case Kind::compute:
        now = end_of_work(now, instruction.seconds, flights_, oldest_, slowdown_);
        if (now > begin) record(Timeline::program, instruction.name, instruction.of, begin, now);
        break;
      case Kind::start:
        start(instruction, now);
        break;
      case Kind::wait:
        now = std::max(now, flights_[instruction.collective].end);
        result_.exposed[purpose(instruction.collective)] += now - begin;
        if (now > begin)
          record(Timeline::program, "wait: " + started(instruction.collective).name,
                 started(instruction.collective).of, begin, now);
        break;
      }
      spans_.push_back({begin, now});
      while (oldest_ < flights_.size() && flights_[oldest_].end <= now) ++oldest_;
    }
    result_.seconds = now;
    add_critical_path();
    return std::move(result_);
  }

private:
  std::size_t purpose(std::size_t collective) const {
    return std::size_t(program_.transfers()[collective].purpose);
  }
  Program::Instruction const& started(std::size_t collective) const {
    return program_.instructions()[program_.transfers()[collective].instruction];
  }
  void record(int channel, std::string name, std::string of, double begin, double end) {
    result_.spans.push_back({channel, std::move(name), std::move(of), begin, end});
  }

  void start(Program::Instruction const& instruction, double now) {
    auto const channel = program_.transfers()[instruction.collective].channel;
    auto const last = last_.try_emplace(channel, none).first;
    Flight flight{now, now, none};
    if (last->second != none && flights_[last->second].end > now)
      flight = {flights_[last->second].end, 0, last->second};
    flight.end = flight.begin + instruction.seconds;
    last->second = instruction.collective;
    result_.communication[purpose(instruction.collective)] += instruction.seconds;
    record(channel, instruction.name, instruction.of, flight.begin, flight.end);
    flights_.push_back(flight);
  }

  /// Backwards from the end: over computation, and, where the program waited, over the collectives up to the instruction that
  /// started the first of them.
  void add_critical_path() {
    std::map<std::string, double> path;
    for (auto i = program_.instructions().size(); i-- > 0;) {
      auto const& instruction = program_.instructions()[i];
      double const spent = spans_[i].end - spans_[i].begin;
      if (instruction.kind == Kind::compute && spent > 0) path[instruction.name] += spent;
      if (instruction.kind != Kind::wait || spent == 0) continue;
      for (auto collective = instruction.collective; collective != none;) {
        auto const& flight = flights_[collective];
        path[started(collective).name] += flight.end - flight.begin;
        i = program_.transfers()[collective].instruction;
        collective = flight.before;
      }
    }
    result_.critical_path = longest_first(path);
  }

  Program const& program_;
  double slowdown_;
  Timeline result_;
  std::vector<Span> spans_; ///< by instruction
  std::vector<Flight> flights_;
  std::size_t oldest_ = 0;          ///< flights before it are over
  std::map<int, std::size_t> last_; ///< collective, by channel
};

} // namespace

void Program::compute(std::string name, double seconds, std::string of) {
  instructions_.push_back({Instruction::Kind::compute, std::move(name), seconds, 0, std::move(of)});
}

std::size_t Program::start(std::string name, Purpose purpose, int channel, double seconds, std::string of) {
  transfers_.push_back({purpose, channel, instructions_.size()});
  instructions_.push_back(
      {Instruction::Kind::start, std::move(name), seconds, transfers_.size() - 1, std::move(of)});
  return transfers_.size() - 1;
}

void Program::wait(std::size_t collective) {
  instructions_.push_back({Instruction::Kind::wait, {}, 0, collective, {}});
}

std::vector<std::pair<std::string, double>> longest_first(std::map<std::string, double> const& seconds) {
  std::vector<std::pair<std::string, double>> parts(seconds.begin(), seconds.end());
  std::ranges::stable_sort(parts, std::greater{}, [](auto const& part) { return part.second; });
  return parts;
}

double Timeline::exposed_seconds() const { return std::accumulate(exposed.begin(), exposed.end(), 0.0); }

Timeline simulate(Program const& program, double slowdown) { return Simulator(program, slowdown).run(); }

} // namespace prowl
