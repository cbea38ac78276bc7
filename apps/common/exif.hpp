/// The orientation that a camera or a phone gives a picture.
#pragma once

#include <string>

namespace prowl {

/// Of the eXIf chunk of a PNG file, 1 to 8 as in Exif 2.32, section 4.6.4: the side of the picture that the
/// first row and the first column are. 1, upright, where the file has none. Throws Error naming the file
/// where the chunk cannot be understood.
int png_orientation(std::string const& path);

} // namespace prowl
