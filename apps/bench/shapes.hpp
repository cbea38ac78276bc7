/// The parameters that are measured, described on the command line.
#pragma once

#include <prowl/placement/parameter.hpp>

#include <string>
#include <vector>

namespace prowl::bench {

/// "mmdit-1.3b" or another preset; "mmdit:d=256,L=4": an MMDiT for small pictures, with one text encoder of 64
/// features; "64x256*6,256x64": six matrices of 64 x 256 and one of 256 x 64, all for Muon. Throws Error for
/// other text.
std::vector<Parameter> parse_shapes(std::string const& text);

} // namespace prowl::bench
