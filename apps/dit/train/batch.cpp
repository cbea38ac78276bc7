#include <dit/train/batch.hpp>

#include <dit/noise.hpp>

#include <prowl/core/checked.hpp>
#include <prowl/core/error.hpp>

namespace prowl::dit {

namespace {

template <class View>
void copy(View const& to, std::vector<float> const& from, std::int64_t elements) {
  Kokkos::View<float const*, HostMemory> const host(from.data(), std::size_t(elements));
  Kokkos::deep_copy(slice(Vector<float>(to.data(), to.size()), 0, elements), host);
}

} // namespace

DeviceBatch::DeviceBatch(ModelConfig const& config, std::int64_t capacity)
    : config_(config), capacity_(capacity), clean_("clean", capacity, config.channels, config.pixels()),
      noisy_("noisy", capacity, config.channels, config.pixels()),
      velocity_("velocity", capacity, config.channels, config.pixels()), time_("time", capacity),
      pooled_("pooled", capacity, config.pooled_width) {
  for (auto const& e : config.encoders) text_.emplace_back("text", capacity, e.tokens, e.width);
}

std::int64_t DeviceBatch::bytes(ModelConfig const& config, std::int64_t capacity) {
  std::int64_t elements = 3 * std::int64_t(config.channels) * config.pixels() + 1 + config.pooled_width;
  for (auto const& e : config.encoders) elements += std::int64_t(e.tokens) * e.width;
  return checked_product({capacity, elements, sizeof(float)}, "bytes of a batch on a rank");
}

void DeviceBatch::upload(HostBatch const& host) {
  if (host.count > capacity_) throw Error("a batch of {} samples for {} places", host.count, capacity_);
  count_ = host.count;
  copy(clean_, host.samples, count_ * config_.channels * config_.pixels());
  for (std::size_t e = 0; e < text_.size(); ++e)
    copy(text_[e], host.text[e], count_ * config_.encoders[e].tokens * config_.encoders[e].width);
  copy(pooled_, host.pooled, count_ * config_.pooled_width);
}

void DeviceBatch::make_noisy(Execution const& exec, std::uint64_t seed, std::uint64_t first_number,
                             double caption_drop) {
  auto const in = input();
  dit::make_noisy<float>(exec, seed, first_number, clean(), in.time, in.latent, first(velocity_));
  if (caption_drop > 0) drop_captions<float>(exec, seed, first_number, caption_drop, in);
}

Batch<float> DeviceBatch::first(Batch<float> const& all) const {
  return Batch<float>(all.data(), std::size_t(count_), all.extent(1), all.extent(2));
}

Input<float> DeviceBatch::input() const {
  Input<float> in;
  in.latent = first(noisy_);
  in.time = slice(time_, 0, count_);
  for (auto const& t : text_) in.text.push_back(first(t));
  in.pooled = Matrix<float>(pooled_.data(), std::size_t(count_), pooled_.extent(1));
  return in;
}

} // namespace prowl::dit
