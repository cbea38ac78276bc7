// Bytes read as a PNG file.
#include "scratch.hpp"

#include <common/png.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const path = fuzz::scratch("x.png");
  fuzz::write(path, data, size);
  fuzz::expect_error_or_none([&] {
    auto const picture = prowl::read_png(path);
    if (picture.bytes.size() != std::size_t(picture.width) * std::size_t(picture.height) * 4) std::abort();
  });
  return 0;
}
