/// What a program says when it fails.
#pragma once

#include <exception>
#include <string>

namespace prowl {

/// One line for any exception: an Error's own text; for memory that ran out what was asked for, where that is
/// known, and what the process holds; for a file its path and the system's reason. Control characters are
/// written as \n, \t or \xNN.
std::string failure_text(std::exception const& failure);

} // namespace prowl
