/// Writes image-caption data sets (the format of prowl/io/dataset.hpp), one sample after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace prowl {

/// What a data set of pictures with one text encoder holds.
struct DatasetLayout {
  std::int64_t size = 0;           ///< samples N
  std::int64_t training_count = 0; ///< those that come first
  std::int64_t channels = 3, height = 0, width = 0;
  std::string encoder;               ///< the text encoder's name
  std::int64_t tokens = 0;           ///< T_e
  std::int64_t text_width = 0;       ///< D_e
  std::int64_t pooled_width = 0;     ///< P
  std::string text_encoding, source; ///< the attributes
};

/// The file appears under its name only when `finish` has returned; a failed run leaves no part of it. The
/// arrays' space on the disk is reserved at the beginning, the captions' at the end, so that a full disk is
/// an Error with its reason.
class DatasetWriter {
public:
  DatasetWriter(std::string path, DatasetLayout layout);
  ~DatasetWriter();

  /// The next sample: uint8 (C, H, W), its caption in UTF-8, stored in normal form C, (tokens, text_width)
  /// and (pooled_width). Throws Error naming the sample where one of them is not so.
  void append(std::vector<std::uint8_t> const& picture, std::string const& caption,
              std::vector<float> const& text, std::vector<float> const& pooled);

  /// After the last sample: closes the file and gives it its name.
  void finish();

private:
  struct Files;
  DatasetLayout layout_;
  std::int64_t written_ = 0;
  std::unique_ptr<Files> files_;
};

} // namespace prowl
