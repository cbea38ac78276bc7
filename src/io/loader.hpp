/// Batches of a data set in a random order that any rank and any restart can compute.
#pragma once

#include <prowl/io/dataset.hpp>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace prowl {

/// A pseudo-random permutation of [0, n), a pure function of (seed, epoch, n), in O(1) memory.
///
/// A balanced Feistel network of eight rounds on the smallest even number of bits that holds n, with the
/// random numbers of prowl/core/random.hpp as round function; results outside [0, n) are encrypted again
/// until one is inside (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA
/// 2002). On average below four walks.
class Permutation {
public:
  Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n);

  std::int64_t operator()(std::int64_t i) const;

private:
  std::uint64_t encrypt(std::uint64_t block) const;

  std::uint64_t seed_, epoch_, n_;
  int half_bits_;
};

/// [begin, begin + count)
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Rank `rank`'s part of [0, size) over `ranks`, in order of ranks; sizes differ by at most one, the first
/// ranks have more.
SampleRange local_range(std::int64_t size, int rank, int ranks);

/// One rank's part of a batch, in host memory. Arrays are row-major, the sample is the first index.
struct HostBatch {
  /// Of the first local sample: its position in the run (training) or in the validation part.
  std::int64_t first_sample = 0;
  std::int64_t count = 0;               ///< local samples; 0 where there are more ranks than samples
  std::vector<std::int64_t> indices;    ///< (count): in the data set
  std::vector<float> samples;           ///< (count, C, H, W), as Dataset::read_samples gives them
  std::vector<std::vector<float>> text; ///< for each encoder (count, T_e, D_e)
  std::vector<float> pooled;            ///< (count, P)
};

/// Training batches. Position q of the run (a global count of samples) is training sample Permutation(seed, q
/// / n, n)(q % n), n the number of training samples; a batch consumes the B positions after those of the one
/// before, each rank its local_range of them. So the batches depend on the seed and the position only,
/// whatever the number of ranks and wherever a run was resumed, with batches of whatever size before.
///
/// A thread reads the next batch while the current one is in use.
class Loader {
public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t global_batch = 1; ///< B
    int rank = 0;
    int ranks = 1;
    std::int64_t first_sample = 0; ///< the position at which the first `next` begins
  };

  /// `dataset` must outlive the loader.
  Loader(Dataset const& dataset, Options options);
  Loader(Loader const&) = delete;
  Loader& operator=(Loader const&) = delete;
  ~Loader();

  /// The following batch, valid until the next call. Throws what reading it threw.
  HostBatch const& next();

  /// The index in the data set of the sample at a position of the run.
  std::int64_t sample_at(std::int64_t position) const;

private:
  void read(std::int64_t position, HostBatch& batch) const;
  void run();

  Dataset const& dataset_;
  Options options_;
  HostBatch current_, ahead_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false; // ahead_ (or error_) waits for next()
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_; // last: starts when all else is there
};

/// The first `most` validation samples in the data set's order, in batches of B of which each rank reads its
/// local_range. Every rank has the same number of batches; the last may be smaller.
class ValidationReader {
public:
  /// `dataset` must outlive the reader.
  ValidationReader(Dataset const& dataset, std::int64_t most, std::int64_t global_batch, int rank, int ranks);

  std::int64_t batches() const;
  HostBatch const& read(std::int64_t batch);

private:
  Dataset const& dataset_;
  std::int64_t samples_, global_batch_;
  int rank_, ranks_;
  HostBatch batch_;
};

} // namespace prowl
