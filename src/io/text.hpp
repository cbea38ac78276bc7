/// UTF-8 text from outside: files, command lines, decks.
#pragma once

#include <string>
#include <string_view>

namespace prowl {

/// The text in Unicode's normal form C, without the byte-order mark that it may begin with. Equal characters
/// are equal bytes then, composed or decomposed. Throws Error that begins with `where` and gives the offset
/// of the first byte that is not UTF-8, or is NUL; UTF-16 and UTF-32 are named where their mark shows them.
std::string normalised(std::string_view bytes, std::string const& where);

/// As `normalised`, then with Unicode's full case folding and without the characters that are never seen
/// (Unicode's Default_Ignorable_Code_Point: joiners, variation selectors): what is left of two texts that
/// differ in case alone is equal. ASCII text changes its capitals only.
std::string case_folded(std::string_view bytes, std::string const& where);

/// For names of files, which need not be UTF-8: each byte that is not is replaced by U+FFFD.
std::string printable(std::string_view bytes);

} // namespace prowl
