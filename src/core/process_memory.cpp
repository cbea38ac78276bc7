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

std::int64_t peak_resident_bytes() {
  // Not getrusage: its ru_maxrss is that of the launcher where that was larger, as it survives fork and exec.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::int64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  return resident_bytes();
}

} // namespace prowl
