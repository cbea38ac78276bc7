/// A timeline of what this process did, in Chrome's trace event format (chrome://tracing, Perfetto).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prowl::trace {

enum class Track { compute, communication };

/// Off by default; spans recorded while off cost one branch.
void enable(bool on);
bool enabled();

/// Seconds on a clock that all ranks of one machine share.
double now();

/// Adds a span. Thread-safe.
void record(Track track, std::string name, double begin, double end);

struct Event {
  Track track;
  std::string name;
  double begin, end; ///< seconds, as `now` counts
};
/// The spans recorded so far, in the order in which they ended.
std::vector<Event> events();

/// The spans of this process as comma-separated JSON events; `process` tells the ranks apart in the picture.
std::string json(int process);

/// Records the time from construction to destruction on the compute track.
class Span {
public:
  explicit Span(char const* name) : name_(name), begin_(enabled() ? now() : 0) {}
  ~Span() {
    if (enabled()) record(Track::compute, name_, begin_, now());
  }
  Span(Span const&) = delete;
  Span& operator=(Span const&) = delete;

private:
  char const* name_;
  double begin_;
};

} // namespace prowl::trace
