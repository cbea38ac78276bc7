/// From the deck and the data set to the model and its optimizer.
#pragma once

#include <dit/config.hpp>
#include <dit/options/options.hpp>

#include <prowl/io/dataset.hpp>
#include <prowl/optim/options.hpp>
#include <prowl/optim/ownership.hpp>
#include <prowl/optim/schedule.hpp>
#include <prowl/store/store.hpp>

#include <optional>
#include <string>

namespace prowl::dit {

/// The model that the options ask for. Channels, size and text encoders are those of `data` where there is one.
/// Throws Error for sizes that no model can have, and for a data set that does not fit a preset.
ModelConfig model_config(TrainOptions const& options, Dataset const* data);

/// The model, of the data set's sizes where the deck has one, after checks of what the deck alone cannot tell: the
/// patch against the data set, replicas against the ranks, groups against the parameters. Throws the deck's Error.
ModelConfig checked_model(Deck const& deck, TrainOptions const& options, std::optional<int> ranks);

/// The optimizer's options, in the library's terms.
prowl::OptimizerOptions optimizer_options(OptimizerOptions const& options);

Schedule schedule(TrainOptions const& options);

/// How the model's parameters lie on a rank, and how they move.
Layout layout(TrainOptions const& options, ModelConfig const& config, MeshPlace const& place);
/// Who owns which parameter: nothing where all are sharded.
Ownership ownership(TrainOptions const& options, std::vector<Parameter> const& parameters,
                    MeshPlace const& mesh);
StoreOptions store_options(TrainOptions const& options);

/// The collectives of step t on the layout's rank: of the store, the optimizer, and the sum of the losses.
Ledger planned_step(TrainOptions const& options, Layout const& layout, std::int64_t t);

/// The model in one line of JSON, as checkpoints hold it; `text_encoding` is the data set's.
std::string describe(ModelConfig const& config, std::string const& text_encoding);

/// The inverse. Throws Error with `context` where the text is not such a description.
struct Description {
  ModelConfig config;
  std::string text_encoding;
};
Description parse_description(std::string const& text, std::string const& context);

} // namespace prowl::dit
