/// The one exception type of Prowl.
#pragma once

// Under nvcc, fmt 9 (Debian 12) makes only some of its functions constexpr, and does not compile as C++20.
#if defined(__NVCC__) && !defined(FMT_USE_CONSTEXPR)
#define FMT_USE_CONSTEXPR 1
#endif
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace prowl {

/// Carries one line that a user can act on: what was wrong (file, key or parameter, value) and what was
/// expected.
class Error : public std::runtime_error {
public:
  explicit Error(std::string const& message) : std::runtime_error(message) {}

  template <class... Arguments>
  explicit Error(fmt::format_string<Arguments...> format, Arguments&&... arguments)
      : std::runtime_error(fmt::format(format, std::forward<Arguments>(arguments)...)) {}
};

} // namespace prowl
