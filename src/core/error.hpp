/// The one exception type of Prowl.
#pragma once

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
