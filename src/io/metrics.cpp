#include <prowl/io/metrics.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/atomic_file.hpp>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace prowl {

namespace {

[[noreturn]] void fail(std::string const& path, char const* what) {
  throw Error("{}: cannot {}: {}", path, what, std::strerror(errno));
}

int open_file(std::string const& path, int flags) {
  int const file = ::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) fail(path, "open");
  return file;
}

void write_all(int file, std::string const& path, std::string const& text) {
  for (std::size_t done = 0; done < text.size();) {
    ssize_t const count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "write");
    done += static_cast<std::size_t>(count);
  }
}

bool is_kept(std::string const& line, std::int64_t first_step) {
  auto const object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return false;
  auto const step = object.find("step");
  return step != object.end() && step->is_number_integer() && step->get<std::int64_t>() < first_step;
}

} // namespace

Metrics::Metrics(std::string path, std::int64_t first_step) : path_(std::move(path)) {
  std::string old;
  if (std::filesystem::is_regular_file(path_)) {
    std::ifstream in(path_, std::ios::binary);
    if (!in) fail(path_, "read");
    old.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::string kept;
  for (std::size_t begin = 0; begin < old.size();) {
    auto const end = std::min(old.find('\n', begin), old.size());
    std::string const line = old.substr(begin, end - begin);
    if (is_kept(line, first_step))
      kept += line + '\n';
    else
      ++removed_;
    begin = end + 1;
  }
  if (kept != old) write_file(path_, kept);
  file_ = open_file(path_, O_APPEND);
}

Metrics::~Metrics() {
  if (file_ >= 0) ::close(file_);
}

void Metrics::append(std::int64_t step, MetricsRow const& row) {
  nlohmann::ordered_json object = {{"step", step}};
  // The JSON library writes null for a number that is not finite.
  for (auto const& [name, value] : row)
    std::visit([&, &key = name](auto const& v) { object[key] = v; }, value);
  write_all(file_, path_,
            object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

} // namespace prowl
