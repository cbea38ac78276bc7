/// A rank's part of a batch where the model computes.
#pragma once

#include <dit/config.hpp>
#include <dit/input.hpp>

#include <prowl/io/loader.hpp>

namespace prowl::dit {

/// Device arrays for at most `capacity` samples, filled from host batches. Nothing is allocated after construction.
class DeviceBatch {
public:
  DeviceBatch(ModelConfig const& config, std::int64_t capacity);

  void upload(HostBatch const& host);
  /// Turns the uploaded samples into training inputs: noisy latents, times, and some captions dropped. A pure function of
  /// the seed and the samples' numbers, `first` being that of the first.
  void make_noisy(Execution const& exec, std::uint64_t seed, std::uint64_t first, double caption_drop);

  /// Of the samples uploaded last. After make_noisy.
  Input<float> input() const;
  Batch<float const> velocity() const { return first(velocity_); }
  Batch<float const> clean() const { return first(clean_); }
  Batch<float> noisy() const { return first(noisy_); }
  std::int64_t count() const { return count_; }

  std::int64_t bytes() const { return bytes(config_, capacity_); }
  static std::int64_t bytes(ModelConfig const& config, std::int64_t capacity);

private:
  Batch<float> first(Batch<float> const& all) const;

  ModelConfig config_;
  std::int64_t capacity_, count_ = 0;
  Batch<float> clean_, noisy_, velocity_;
  Vector<float> time_;
  std::vector<Batch<float>> text_;
  Matrix<float> pooled_;
};

} // namespace prowl::dit
