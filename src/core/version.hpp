/// Which Prowl this is.
#pragma once

namespace prowl {

/// "MAJOR.MINOR.PATCH" of the library.
char const* version();

} // namespace prowl
