#include <prowl/core/trace.hpp>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>

namespace prowl::trace {

namespace {

std::atomic<bool> on{false};
std::mutex mutex;
std::vector<Event> recorded;

} // namespace

void enable(bool value) { on = value; }
bool enabled() { return on.load(std::memory_order_relaxed); }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void record(Track track, std::string name, double begin, double end) {
  if (!enabled()) return;
  std::lock_guard const lock(mutex);
  recorded.push_back({track, std::move(name), begin, end});
}

std::vector<Event> events() {
  std::lock_guard const lock(mutex);
  return recorded;
}

std::string json(int process) {
  std::lock_guard const lock(mutex);
  std::string text =
      fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}},)"
                  R"({{"ph":"M","name":"thread_name","pid":{0},"tid":0,"args":{{"name":"compute"}}}},)"
                  R"({{"ph":"M","name":"thread_name","pid":{0},"tid":1,"args":{{"name":"communication"}}}})",
                  process);
  for (auto const& e : recorded)
    text += fmt::format(",\n"
                        R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                        e.name, process, int(e.track), e.begin * 1e6, (e.end - e.begin) * 1e6);
  return text;
}

} // namespace prowl::trace
