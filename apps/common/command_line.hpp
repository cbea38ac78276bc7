/// What the command lines of the programs share.
#pragma once

#include <prowl/core/error.hpp>
#include <prowl/core/types.hpp>
#include <prowl/core/version.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>

namespace prowl {

/// Parses with --version beside --help. Returns the exit status where one of them was asked for, which is printed if
/// `prints`; throws Error for anything else that is not right.
inline std::optional<int> parse_command_line(CLI::App& app, int argc, char const* const* argv,
                                             bool prints = true) {
  app.set_version_flag("--version", fmt::format("{} {}, Kokkos {}.{}.{} ({})", app.get_name(), version(),
                                                KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100,
                                                KOKKOS_VERSION % 100, Execution::name()));
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& success) {
    return prints ? app.exit(success) : 0;
  } catch (CLI::ParseError const& error) {
    throw Error("command line: {} ({} --help)", error.what(), app.get_name());
  }
  return std::nullopt;
}

/// 1 and more.
inline CLI::Range const positive_count(std::int64_t{1}, std::int64_t{1} << 30);

} // namespace prowl
