#include <prowl/core/version.hpp>

#include <build_strings.hpp>

namespace prowl {

char const* version() { return PROWL_VERSION; }

} // namespace prowl
