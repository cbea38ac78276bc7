/// Image-caption data sets in HDF5.
///
/// Version 1 of the format. N samples, the training samples first, then the validation samples:
///
/// | object               | type               | shape         | meaning                                 |
/// |----------------------|--------------------|---------------|-----------------------------------------|
/// | `format`             | string             | attribute     | "prowl data set"                        |
/// | `version`            | integer            | attribute     | 1                                       |
/// | `training_count`     | integer            | attribute     | samples before it train, others validate|
/// | `text_encoding`      | string, optional   | attribute     | how text features were made             |
/// | `source`             | string, optional   | attribute     | where the samples come from             |
/// | `/images`            | uint8              | (N, C, H, W)  | pictures; or instead of them:           |
/// | `/latents`           | float16 or float32 | (N, C, H, W)  | latents, as the model shall see them    |
/// | `/captions`          | UTF-8 string       | (N)           | of variable length                      |
/// | `/text/<e>/features` | float16 or float32 | (N, T_e, D_e) | each encoder's tokens; zeros pad        |
/// | `/pooled`            | float16 or float32 | (N, P)        | pooled vectors of all encoders          |
///
/// Encoders are taken in the alphabetical order of their names. Datasets may be contiguous or chunked; with
/// one sample a chunk or contiguous, a sample is one read. Numbers may have either byte order (float16 is
/// little-endian).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace prowl {

/// A text encoder's part of a data set: T_e tokens of D_e features.
struct TextEncoder {
  std::string name;
  std::int64_t tokens = 0;
  std::int64_t width = 0;
};

/// A data set opened to read. Every rank opens it for itself and reads independently. Holds nothing that
/// grows with N.
///
/// Refused, since their elements would come from other files or from none: external storage, virtual datasets,
/// soft and external links, chunks that were never written, filters that HDF5 does not have. A file that changes
/// while it is open, and a value read that is not finite, are errors at the read.
///
/// Reads may come from several threads. Every function throws Error with the file, the dataset and what was
/// expected.
class Dataset {
public:
  explicit Dataset(std::string path);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  std::string const& path() const { return path_; }
  std::string const& source() const { return source_; }
  std::string const& text_encoding() const { return text_encoding_; }

  /// Whether the samples are latents, not pictures.
  bool latents() const { return latents_; }
  std::int64_t size() const { return size_; }
  std::int64_t training_count() const { return training_count_; }
  std::int64_t validation_count() const { return size_ - training_count_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  /// Elements of a sample, C H W.
  std::int64_t sample_size() const { return channels_ * height_ * width_; }
  std::vector<TextEncoder> const& encoders() const { return encoders_; }
  std::int64_t pooled_width() const { return pooled_width_; }

  /// The samples [first, first + count) as (count, C, H, W): pictures in [-1, 1] (x / 127.5 - 1), latents as
  /// they are.
  void read_samples(std::int64_t first, std::int64_t count, float* values) const;
  /// (count, T_e, D_e) of encoder number `encoder`.
  void read_text(std::int64_t encoder, std::int64_t first, std::int64_t count, float* values) const;
  /// (count, P)
  void read_pooled(std::int64_t first, std::int64_t count, float* values) const;
  std::string caption(std::int64_t index) const;

private:
  struct Files;
  std::string path_, source_, text_encoding_;
  bool latents_ = false;
  std::int64_t size_ = 0, training_count_ = 0, channels_ = 0, height_ = 0, width_ = 0, pooled_width_ = 0;
  std::vector<TextEncoder> encoders_;
  std::unique_ptr<Files> files_;
};

} // namespace prowl
