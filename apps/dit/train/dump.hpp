/// One training step, whole, for a check of the arithmetic with another framework.
#pragma once

#include <dit/train/batch.hpp>
#include <dit/train/state.hpp>

#include <prowl/io/array_file.hpp>

#include <deque>
#include <string>

namespace prowl::dit {

/// Collects the arrays of a step and writes them to one HDF5 file (see array_file.hpp). All arrays are whole, whatever the
/// ranks. For micro-batch k of b samples:
///   batch/k/clean, batch/k/noise, batch/k/noisy (b, C, H W); batch/k/time (b); batch/k/text/NAME (b, T_e, D_e);
///   batch/k/pooled (b, P), captions dropped as in training; loss (1), of the whole batch, and rate_factor (1), the
///   schedule's, both float64;
///   gradient/NAME, before clipping; before/weights/NAME, before/momentum/NAME, ...; after/... the same.
/// Attributes `step`, `skipped` (steps before) and `model`; text `deck`.
class StepDump {
public:
  /// Micro-batch `k`: rows [first, first + count) of `total` are here.
  void add_batch(int k, ModelConfig const& config, DeviceBatch const& batch, std::int64_t first,
                 std::int64_t total);
  void add_gradients(Store const& store);
  /// `when` is "before" or "after".
  void add_state(std::string const& when, Store const& store, Optimizer const& optimizer);
  /// Collective.
  void write(MPI_Comm comm, std::string const& path, Position const& position, double loss,
             double rate_factor, std::string const& model, std::string const& deck);

private:
  void add(std::string name, std::vector<std::int64_t> shape, Range rows, std::vector<float> values);
  void add_arrays(std::string const& prefix, Store const& store, std::vector<ParameterArray> const& arrays);

  std::deque<std::vector<float>> values_; // what contents_ points to
  ArrayFileContents contents_;
};

} // namespace prowl::dit
