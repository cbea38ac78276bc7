#include <prowl/core/failure.hpp>

#include <prowl/core/bytes.hpp>
#include <prowl/core/process_memory.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <regex>

namespace prowl {

namespace {

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::string line;
  for (unsigned char const c : text) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else if (c < 0x20 || c == 0x7f)
      line += fmt::format("\\x{:02x}", c);
    else
      line += char(c);
  }
  return line;
}

std::string out_of_memory(std::string const& what) {
  return fmt::format("out of memory{}; this process holds {:.1f} MiB", what, double(resident_bytes()) / mib);
}

} // namespace

std::string failure_text(std::exception const& failure) {
  if (dynamic_cast<std::bad_alloc const*>(&failure)) return out_of_memory("");
  if (auto const* file = dynamic_cast<std::filesystem::filesystem_error const*>(&failure))
    return one_line(fmt::format("{}: {}", file->path1().string(), file->code().message()));
  std::string const text = failure.what();
  // Kokkos says it in several lines, with the array's label and its size.
  static std::regex const kokkos(
      "failed to allocate memory for label \"([^\"]*)\"[\\s\\S]*[Aa]llocation of size "
      "([0-9.]+ ?[A-Za-z]*)");
  std::smatch found;
  if (std::regex_search(text, found, kokkos))
    return out_of_memory(fmt::format(" for {}, {}", one_line(found[1]), one_line(found[2])));
  return one_line(text);
}

} // namespace prowl
