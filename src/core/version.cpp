#include <prowl/core/version.hpp>

namespace prowl {

char const* version() { return PROWL_VERSION; }

} // namespace prowl
