#include <prowl/core/error.hpp>
#include <prowl/io/dataset_writer.hpp>
#include <prowl/io/loader.hpp>

#include <gtest/gtest.h>
#include <mpi.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <build_strings.hpp>

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t samples = 23, training = 17;

// Sample i is one black picture of red i, pooled i, text 10 i.
struct Data {
  Data() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int id = ::getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    path = (fs::temp_directory_path() / fmt::format("prowl-loader-{}.h5", id)).string();
    if (rank == 0) {
      prowl::DatasetLayout layout;
      layout.size = samples;
      layout.training_count = training;
      layout.height = layout.width = layout.tokens = layout.text_width = layout.pooled_width = 1;
      layout.encoder = "words";
      prowl::DatasetWriter writer(path, layout);
      for (int i = 0; i < samples; ++i)
        writer.append({std::uint8_t(i), 0, 0}, "", {10.0f * float(i)}, {float(i)});
      writer.finish();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Data() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) fs::remove(path);
  }

  prowl::Loader::Options options(std::int64_t batch, std::int64_t first_sample = 0) const {
    prowl::Loader::Options o;
    o.seed = 7;
    o.global_batch = batch;
    o.rank = rank;
    o.ranks = ranks;
    o.first_sample = first_sample;
    return o;
  }
  // The values of all ranks, in order of ranks.
  template <class T>
  std::vector<T> gather(std::vector<T> const& mine) const {
    int const bytes = int(mine.size() * sizeof(T));
    std::vector<int> sizes(static_cast<std::size_t>(ranks)), begins(static_cast<std::size_t>(ranks));
    MPI_Allgather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0);
    std::vector<T> all(std::size_t(begins.back() + sizes.back()) / sizeof(T));
    MPI_Allgatherv(mine.data(), bytes, MPI_BYTE, all.data(), sizes.data(), begins.data(), MPI_BYTE,
                   MPI_COMM_WORLD);
    return all;
  }

  std::string path;
  int rank = 0, ranks = 1;
};

void expect_values(prowl::HostBatch const& batch) {
  ASSERT_EQ(batch.indices.size(), std::size_t(batch.count));
  ASSERT_EQ(batch.samples.size(), std::size_t(3 * batch.count));
  ASSERT_EQ(batch.pooled.size(), std::size_t(batch.count));
  ASSERT_EQ(batch.text.at(0).size(), std::size_t(batch.count));
  for (std::size_t i = 0; i < batch.indices.size(); ++i) {
    auto const index = float(batch.indices[i]);
    EXPECT_NEAR(batch.samples[3 * i], index / 127.5f - 1, 1e-6f);
    EXPECT_EQ(batch.samples[3 * i + 1], -1.0f);
    EXPECT_EQ(batch.pooled[i], index);
    EXPECT_EQ(batch.text[0][i], 10 * index);
  }
}

} // namespace

TEST(Permutation, is_a_bijection_that_differs_by_seed_and_epoch) {
  for (std::int64_t const n : {1, 2, 3, 7, 100, 3650}) {
    auto const order = [&](std::uint64_t seed, std::int64_t epoch) {
      prowl::Permutation const permutation(seed, epoch, n);
      std::vector<std::int64_t> values(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) values[std::size_t(i)] = permutation(i);
      return values;
    };
    auto const first = order(1, 0);
    auto sorted = first;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(sorted[std::size_t(i)], i) << "n = " << n;
    EXPECT_EQ(order(1, 0), first);
    if (n < 100) continue;
    EXPECT_NE(order(1, 1), first);
    EXPECT_NE(order(2, 0), first);
    // The mean of |value - i| of a random permutation is (n^2 - 1) / (3 n); its deviation falls as 1 /
    // sqrt(n).
    double moved = 0;
    for (std::int64_t i = 0; i < n; ++i) moved += double(std::abs(first[std::size_t(i)] - i));
    EXPECT_NEAR(moved / double(n * n), 1.0 / 3, 1.5 / std::sqrt(double(n)));
  }
}

TEST(LocalRange, parts_are_adjacent_and_differ_by_at_most_one) {
  for (std::int64_t const size : {0, 1, 3, 4, 10})
    for (int const ranks : {1, 2, 3, 4, 7}) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        auto const range = prowl::local_range(size, rank, ranks);
        EXPECT_EQ(range.begin, end);
        EXPECT_GE(range.count, size / ranks);
        EXPECT_LE(range.count, (size + ranks - 1) / ranks);
        end += range.count;
      }
      EXPECT_EQ(end, size);
    }
}

TEST(Loader, ranks_together_read_the_same_batches_whatever_their_number) {
  Data const data;
  prowl::Dataset const dataset(data.path);
  for (std::int64_t const batch : {1, 5, 8}) {
    prowl::Loader loader(dataset, data.options(batch));
    for (std::int64_t step = 0; step < 12; ++step) {
      auto const& mine = loader.next();
      expect_values(mine);
      auto const all = data.gather(mine.indices);
      ASSERT_EQ(all.size(), std::size_t(batch));
      for (std::int64_t i = 0; i < batch; ++i) {
        auto const position = step * batch + i;
        EXPECT_EQ(all[std::size_t(i)],
                  prowl::Permutation(7, position / training, training)(position % training));
      }
      if (mine.count > 0) {
        EXPECT_EQ(mine.indices[0], loader.sample_at(mine.first_sample));
      }
    }
  }
}

TEST(Loader, every_training_sample_comes_once_an_epoch_and_no_validation_sample) {
  Data const data;
  prowl::Dataset const dataset(data.path);
  prowl::Loader loader(dataset, data.options(training));
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto all = data.gather(loader.next().indices);
    std::sort(all.begin(), all.end());
    for (std::int64_t i = 0; i < training; ++i) EXPECT_EQ(all[std::size_t(i)], i);
  }
}

TEST(Loader, resumes_at_any_step_with_the_same_batches) {
  Data const data;
  prowl::Dataset const dataset(data.path);
  prowl::Loader whole(dataset, data.options(6)), resumed(dataset, data.options(6, 24));
  for (int step = 0; step < 4; ++step) whole.next();
  for (int step = 4; step < 9; ++step) {
    auto const &a = whole.next(), &b = resumed.next();
    EXPECT_EQ(a.first_sample, b.first_sample);
    EXPECT_EQ(a.indices, b.indices);
    EXPECT_EQ(a.samples, b.samples);
  }
}

TEST(Loader, batches_of_another_size_begin_where_the_others_ended) {
  Data const data;
  prowl::Dataset const dataset(data.path);
  std::vector<std::int64_t> seen;
  std::int64_t position = 0;
  for (std::int64_t const batch : {5, 3, 4, 5}) { // 17: an epoch
    prowl::Loader loader(dataset, data.options(batch, position));
    auto const all = data.gather(loader.next().indices);
    seen.insert(seen.end(), all.begin(), all.end());
    position += batch;
  }
  std::sort(seen.begin(), seen.end());
  for (std::int64_t i = 0; i < training; ++i) EXPECT_EQ(seen.at(std::size_t(i)), i);
  EXPECT_THROW(prowl::Loader(dataset, data.options(1, -1)), prowl::Error);
}

TEST(Loader, ends_cleanly_at_any_moment) {
  Data const data;
  prowl::Dataset const dataset(data.path);
  for (int used = 0; used < 3; ++used)
    for (int i = 0; i < 20; ++i) {
      prowl::Loader loader(dataset, data.options(4));
      for (int step = 0; step < used; ++step) loader.next();
    }
}

TEST(Loader, an_error_while_reading_ahead_is_thrown_by_next) {
  Data const data;
  std::string const path = fmt::format("{}.damaged-{}", data.path, data.rank);
  auto const command = fmt::format(PROWL_PYTHON " {} {} damaged", PROWL_TEST_MAKE_DATASET, path);
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "python3-h5py is not installed";
  prowl::Dataset const dataset(path);
  // A batch is an epoch, of which one sample's checksum is wrong.
  auto options = data.options(dataset.training_count());
  options.rank = 0;
  options.ranks = 1;
  prowl::Loader loader(dataset, options);
  for (int again = 0; again < 2; ++again) {
    try {
      loader.next();
      FAIL() << "no error";
    } catch (prowl::Error const& error) {
      EXPECT_EQ(std::string(error.what()).find(path + ": /latents: "), 0u) << error.what();
    }
  }
  fs::remove(path);
}

TEST(ValidationReader, ranks_together_read_the_first_validation_samples_in_order) {
  Data const data;
  prowl::Dataset const dataset(data.path);
  for (std::int64_t const most : {1, 4, 5, 1000})
    for (std::int64_t const batch : {1, 4, 6, 100}) {
      auto const count = std::min(samples - training, most);
      prowl::ValidationReader reader(dataset, most, batch, data.rank, data.ranks);
      EXPECT_EQ(reader.batches(), (count + batch - 1) / batch);
      std::vector<std::int64_t> all;
      for (std::int64_t b = 0; b < reader.batches(); ++b) {
        auto const& mine = reader.read(b);
        expect_values(mine);
        if (mine.count > 0) {
          EXPECT_EQ(mine.indices[0], training + mine.first_sample);
        }
        auto const now = data.gather(mine.indices);
        all.insert(all.end(), now.begin(), now.end());
      }
      std::vector<std::int64_t> expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), training);
      EXPECT_EQ(all, expected);
      EXPECT_THROW(reader.read(reader.batches()), prowl::Error);
    }
}
