/// What the operating system says of this process's memory.
#pragma once

#include <cstdint>

namespace prowl {

/// Resident bytes now, and at most so far, of this program alone.
std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();

} // namespace prowl
