/// What a run that goes on has changed since its checkpoint.
#pragma once

#include <prowl/io/array_file.hpp>
#include <prowl/io/dataset.hpp>

#include <string>
#include <vector>

namespace prowl::dit {

enum class Effect {
  none,        ///< on the steps to come, but for rounding
  another_run, ///< the steps are another run's: only where the user says so
  another_model
};

struct Change {
  std::string what; ///< a deck's key, or a property of the model or the data set
  std::string before, now;
  Effect effect;
};

/// One line: "optimizer.rate: 0.005 -> 0.01".
std::string text(std::vector<Change> const& changes);

/// Of the keys of two resolved decks. One that cannot be read any more is a change itself.
std::vector<Change> deck_changes(std::string const& before, std::string const& now);

/// Of two texts of `describe` or of `fingerprint`, by their entries; `prefix` names them.
std::vector<Change> description_changes(std::string const& prefix, std::string const& before,
                                        std::string const& now);

/// A data set's size, kind, and a hash of the values and captions of up to 64 samples spread evenly over it,
/// as JSON.
std::string fingerprint(Dataset const& data);

/// What a run with this deck, model and data set would change that goes on from the checkpoint: the texts of
/// deck and model that it holds, and of the data set where it has that.
std::vector<Change> changes_since(ArrayFileReader const& checkpoint, std::string const& deck,
                                  std::string const& model, std::string const& data);

/// Throws Error where the checkpoint is of another model.
void refuse_another_model(std::string const& checkpoint, std::vector<Change> const& changes);
/// Throws Error for changes that make another run of it, unless they are accepted.
void refuse_changes(std::string const& checkpoint, std::vector<Change> const& changes, bool accept);

} // namespace prowl::dit
