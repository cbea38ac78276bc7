// The commands of prowl-data.
#pragma once

#include <data/samples.hpp>

namespace prowl::data {

// Debian's emoji with their English names. `list` is Unicode's emoji-test.txt, `font` one with colour bitmaps
// (CBDT).
void make_emoji(Options const& options, std::string const& list, std::string const& font);

// The PNG files of a folder, in order of their names, with captions from the .txt files beside them.
void make_images(Options const& options, std::string const& folder);

} // namespace prowl::data
