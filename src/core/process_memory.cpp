#include <prowl/core/process_memory.hpp>

#include <unistd.h>

#include <fstream>
#include <string>

namespace prowl {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Not ru_maxrss of getrusage: a process inherits it from the one that started it.
std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kib = 0; word == "VmHWM:" && status >> kib) return kib * 1024;
  return 0;
}

} // namespace prowl
