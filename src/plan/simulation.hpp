/// Discrete-event simulation of one rank: a program that computes, starts collectives and waits for them.
///
/// A program's instructions follow each other. Collectives of one channel (the links of one kind) follow each other too, beside
/// the program: each begins when it has been started and the one before it in its channel is over.
#pragma once

#include <prowl/comm/ledger.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace prowl {

class Program {
public:
  /// `of`: the unit or the matrix, for timelines.
  void compute(std::string name, double seconds, std::string of = {});
  /// Starts a collective; its number.
  std::size_t start(std::string name, Purpose purpose, int channel, double seconds, std::string of = {});
  /// Until that collective is over.
  void wait(std::size_t collective);

  struct Instruction {
    enum class Kind { compute, start, wait };
    Kind kind;
    std::string name;
    double seconds = 0;
    std::size_t collective = 0;
    std::string of = {};
  };
  struct Transfer {
    Purpose purpose;
    int channel;
    std::size_t instruction; ///< that starts it
  };
  std::vector<Instruction> const& instructions() const { return instructions_; }
  std::vector<Transfer> const& transfers() const { return transfers_; }

private:
  std::vector<Instruction> instructions_;
  std::vector<Transfer> transfers_;
};

struct Timeline {
  double seconds = 0; ///< from the first instruction to the last one's end
  std::array<double, all_purposes.size()> communication{}; ///< seconds of all collectives, by purpose
  std::array<double, all_purposes.size()> exposed{};       ///< of waiting for them
  struct Span {
    int channel; ///< or `program`
    std::string name, of;
    double begin, end;
  };
  static constexpr int program = -1; ///< in place of a channel: computation, and waiting
  std::vector<Span> spans;
  /// Seconds of what nothing could have been ended sooner without, by name, longest first; they add up to `seconds`.
  std::vector<std::pair<std::string, double>> critical_path;

  double exposed_seconds() const;
};

/// By name, as a critical path is listed.
std::vector<std::pair<std::string, double>> longest_first(std::map<std::string, double> const& seconds);

/// `slowdown`: seconds of computation lost to a second of communication beside it, 0 to 1.
Timeline simulate(Program const& program, double slowdown);

} // namespace prowl
