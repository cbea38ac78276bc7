#include <prowl/core/error.hpp>
#include <prowl/core/random.hpp>
#include <prowl/io/loader.hpp>

#include <algorithm>

namespace prowl {

namespace {

constexpr std::uint64_t order_stream = 0x6f72646572; // "order"
constexpr int rounds = 8;

void check_batch(std::int64_t global_batch, int rank, int ranks) {
  if (global_batch < 1) throw Error("global batch of {} samples, at least 1 expected", global_batch);
  if (ranks < 1 || rank < 0 || rank >= ranks)
    throw Error("rank {} of {} ranks cannot read batches", rank, ranks);
}

// Fills the batch's arrays for its indices; the arrays keep their memory from batch to batch.
void read_batch(Dataset const& dataset, HostBatch& batch) {
  auto const& encoders = dataset.encoders();
  batch.count = std::int64_t(batch.indices.size());
  batch.samples.resize(std::size_t(batch.count * dataset.sample_size()));
  batch.pooled.resize(std::size_t(batch.count * dataset.pooled_width()));
  batch.text.resize(encoders.size());
  for (std::size_t e = 0; e < encoders.size(); ++e)
    batch.text[e].resize(std::size_t(batch.count * encoders[e].tokens * encoders[e].width));

  for (std::int64_t begin = 0, end = 0; begin < batch.count; begin = end) {
    // Neighbours in the data set are one read.
    auto const first = batch.indices[std::size_t(begin)];
    for (end = begin + 1; end < batch.count && batch.indices[std::size_t(end)] == first + end - begin;) ++end;
    auto const count = end - begin;
    dataset.read_samples(first, count, batch.samples.data() + begin * dataset.sample_size());
    dataset.read_pooled(first, count, batch.pooled.data() + begin * dataset.pooled_width());
    for (std::size_t e = 0; e < encoders.size(); ++e)
      dataset.read_text(std::int64_t(e), first, count,
                        batch.text[e].data() + begin * encoders[e].tokens * encoders[e].width);
  }
}

} // namespace

Permutation::Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n)
    : seed_(seed), epoch_(std::uint64_t(epoch)), n_(std::uint64_t(n)), half_bits_(1) {
  if (n < 1 || n > (std::int64_t{1} << 60)) throw Error("cannot order {} samples", n);
  while ((std::uint64_t{1} << (2 * half_bits_)) < n_) ++half_bits_;
}

std::uint64_t Permutation::encrypt(std::uint64_t block) const {
  Random const random(seed_, (epoch_ << 40) | order_stream);
  std::uint64_t const mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = block >> half_bits_, right = block & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::uint64_t const mixed = left ^ (random.bits((round << 32) | right) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

std::int64_t Permutation::operator()(std::int64_t i) const {
  auto value = encrypt(std::uint64_t(i));
  while (value >= n_) value = encrypt(value);
  return std::int64_t(value);
}

SampleRange local_range(std::int64_t size, int rank, int ranks) {
  auto const each = size / ranks, more = size % ranks;
  return {rank * each + std::min<std::int64_t>(rank, more), each + (rank < more ? 1 : 0)};
}

Loader::Loader(Dataset const& dataset, Options options) : dataset_(dataset), options_(options) {
  check_batch(options.global_batch, options.rank, options.ranks);
  if (options.first_sample < 0)
    throw Error("batches from sample {}, at least 0 expected", options.first_sample);
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  {
    std::lock_guard const lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::int64_t Loader::sample_at(std::int64_t position) const {
  auto const n = dataset_.training_count();
  return Permutation(options_.seed, position / n, n)(position % n);
}

void Loader::read(std::int64_t position, HostBatch& batch) const {
  auto const [begin, count] = local_range(options_.global_batch, options_.rank, options_.ranks);
  batch.first_sample = position + begin;
  batch.indices.resize(std::size_t(count));
  for (std::int64_t i = 0; i < count; ++i) batch.indices[std::size_t(i)] = sample_at(batch.first_sample + i);
  read_batch(dataset_, batch);
}

void Loader::run() {
  for (std::int64_t position = options_.first_sample;; position += options_.global_batch) {
    std::exception_ptr error;
    try {
      read(position, ahead_);
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    error_ = error;
    ready_ = true;
    changed_.notify_all();
    // After an error there is no following batch: it stays to be thrown.
    changed_.wait(lock, [&] { return stop_ || (!ready_ && !error_); });
    if (stop_) return;
  }
}

HostBatch const& Loader::next() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_; });
    if (error_) std::rethrow_exception(error_);
    std::swap(current_, ahead_);
    ready_ = false;
  }
  changed_.notify_all();
  return current_;
}

ValidationReader::ValidationReader(Dataset const& dataset, std::int64_t most, std::int64_t global_batch,
                                   int rank, int ranks)
    : dataset_(dataset), samples_(std::min(dataset.validation_count(), most)), global_batch_(global_batch),
      rank_(rank), ranks_(ranks) {
  check_batch(global_batch, rank, ranks);
}

std::int64_t ValidationReader::batches() const { return (samples_ + global_batch_ - 1) / global_batch_; }

HostBatch const& ValidationReader::read(std::int64_t batch) {
  if (batch < 0 || batch >= batches())
    throw Error("{}: validation batch {} asked for, it has {}", dataset_.path(), batch, batches());
  auto const start = batch * global_batch_;
  auto const [begin, count] = local_range(std::min(global_batch_, samples_ - start), rank_, ranks_);
  batch_.first_sample = start + begin;
  batch_.indices.resize(std::size_t(count));
  for (std::int64_t i = 0; i < count; ++i)
    batch_.indices[std::size_t(i)] = dataset_.training_count() + batch_.first_sample + i;
  read_batch(dataset_, batch_);
  return batch_;
}

} // namespace prowl
