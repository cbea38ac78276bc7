/// Units of sizes in memory and of messages.
#pragma once

namespace prowl {

inline constexpr double mib = 1 << 20, gib = 1 << 30; ///< bytes

} // namespace prowl
