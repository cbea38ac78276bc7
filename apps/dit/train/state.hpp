/// Checkpoints of a training run: weights, optimizer state, and where the run stands.
#pragma once

#include <dit/config.hpp>

#include <prowl/io/array_file.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/store/store.hpp>

#include <cstdint>
#include <string>

namespace prowl::dit {

/// Where a run stands between two steps. Data order, noise and dropped captions are functions of the seed and the number
/// of the sample, so these two are the whole random state.
struct Position {
  std::int64_t step = 0;    ///< optimizer steps taken
  std::int64_t skipped = 0; ///< of those, skipped
  std::int64_t sample = 0;  ///< training samples consumed
  std::int64_t seed = 0;
};

/// Sets this rank's shards of the weights to their initial values: a pure function of the seed.
void initialise_weights(Execution const& exec, Store& store, std::int64_t seed);

/// What a checkpoint says of the run beside its position.
struct RunTexts {
  std::string model; ///< as `describe` gives it
  std::string deck;  ///< resolved
  std::string data;  ///< the data set's fingerprint
};

/// Collective. Writes FOLDER/checkpoint-STEP.h5: weights/NAME, momentum/NAME, exp_avg/NAME, exp_avg_sq/NAME whole, the
/// text `deck`, and the attributes `model`, `data`, `step`, `skipped`, `sample` and `seed`. Returns the path.
std::string save(Store const& store, Optimizer const& optimizer, Position const& position,
                 RunTexts const& texts, std::string const& folder, int keep);

/// Throws Error where the file's optimizer state is not of the arrays that this optimizer keeps, as after
/// another method's or with other routes; `changed` tells what the decks say of it.
void require_state(Store const& store, Optimizer const& optimizer, ArrayFileReader const& file,
                   std::string const& changed);

/// Collective. Reads weights and optimizer state; a file of another model or optimizer is refused with the dataset's name.
Position load(Store& store, Optimizer& optimizer, ArrayFileReader const& file);

/// Collective. Reads the weights alone.
void load_weights(Store& store, ArrayFileReader const& file);

/// An array over a parameter of a store: its name in files, and the rows of it that are here, where the model computes.
struct ParameterArray {
  std::string name;
  std::size_t parameter;
  Range rows;
  Matrix<float> values;
};
/// Every rank's that keeps them.
std::vector<ParameterArray> kept_weights(Store const& store);
/// Those that this rank updates.
std::vector<ParameterArray> weights(Store const& store);
std::vector<ParameterArray> gradients(Store const& store);
std::vector<ParameterArray> state(Store const& store, Optimizer const& optimizer);

/// What this rank updates as an array file takes it, the elements at `host`; of shards, those of the first replica.
ArrayRows rows_to_write(Store const& store, ParameterArray const& array, float const* host);

} // namespace prowl::dit
