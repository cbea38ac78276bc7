#include <dit/options/options.hpp>

#include <dit/config.hpp>

#include <fmt/format.h>

#include <numeric>

namespace prowl::dit {

namespace {

constexpr double largest_size = 1 << 20; // far above any model's; keeps products of sizes within 64 bits
/// Beyond any run, and numbers of it multiply without overflow.
constexpr double most = 1 << 30;

DeckCheck const routes = one_of({"muon", "adamw", "sharded_adamw"});
DeckCheck const adjustments = one_of({"original", "match_rms_adamw", "none"});

void declare_run(Deck& deck, RunOptions& run) {
  deck.option("run.folder", run.folder, "the run's results: deck, metrics, checkpoints, pictures",
              not_empty());
  deck.option("run.seed", run.seed, "seed of weights, data order, noise and dropped captions", at_least(0));
  deck.option("run.steps", run.steps, "optimizer steps in all, counted from the run's first start",
              between(1, most));
  deck.option(
      "run.resume", run.resume,
      "auto: from the newest intact checkpoint of the folder; never: only where there is none; restart: from "
      "step 0, with what is there set aside; or from the checkpoint of that path, and then from those after "
      "it",
      not_empty());
  deck.option("run.accept_changes", run.accept_changes,
              "goes on from a checkpoint though the deck or the data set make another run of it");
  deck.option("run.time_limit", run.time_limit,
              "seconds until a checkpoint is written and the run ends; 0: none", at_least(0));
}

void declare_model(Deck& deck, ModelOptions& model) {
  auto const size = between(1, largest_size);
  DeckCheck const heads = {"a multiple of 64 up to 65536; 0: the preset's", [](DeckValue const& value) {
                             auto const hidden = std::get<std::int64_t>(value);
                             return hidden >= 0 && hidden <= 65536 && hidden % 64 == 0;
                           }};
  deck.option("model.preset", model.preset, "a model of the paper, in place of hidden and layers",
              one_of({"", "mmdit-1.3b", "mmdit-4b", "mmdit-9b", "mmdit-15b"}));
  deck.option("model.hidden", model.hidden, "hidden size d; heads have 64 channels each", heads);
  deck.option("model.layers", model.layers, "blocks; 0: the preset's", between(0, 10000));
  deck.option("model.patch", model.patch, "side of a patch, in pixels of the image or latent", size);
  deck.option("model.channels", model.channels,
              "channels of an image or latent; the data set's where there is one", size);
  deck.option("model.size", model.size,
              "side of an image or latent, in pixels; the data set's where there is one", size);
  deck.option("model.encoder_widths", model.encoder_widths,
              "feature widths of the text encoders; the preset's or the data set's where there is one", size);
  deck.option("model.encoder_tokens", model.encoder_tokens,
              "tokens of each text encoder; the preset's or the data set's where there is one", size);
  deck.option("model.pooled_width", model.pooled_width,
              "width of the pooled text vector; the preset's or the data set's where there is one", size);
}

void declare_train(Deck& deck, TrainingOptions& train) {
  deck.option("train.batch", train.batch, "images a step, over all ranks", between(1, most));
  deck.option("train.accumulate", train.accumulate, "micro-batches a step; must divide the batch",
              between(1, most));
  deck.option("train.validate_every", train.validate_every,
              "steps from one validation to the next; 0: only at the end", between(0, most));
  deck.option("train.validation_batches", train.validation_batches, "batches in a validation",
              between(1, most));
  deck.option("train.checkpoint_every", train.checkpoint_every,
              "steps from one checkpoint to the next; 0: only at the end", between(0, most));
  deck.option("train.keep", train.keep, "newest checkpoints to keep", between(1, most));
  deck.option("train.dump_step", train.dump_step,
              "the step whose batch, gradients, weights and momenta are written whole; -1: none",
              between(-1, most));
  deck.option("train.log_every", train.log_every, "steps from one progress line to the next",
              between(1, most));
  deck.option("train.caption_drop", train.caption_drop,
              "probability that an image trains without its caption", between(0, 1));
}

void declare_group(DeckSchema& schema, GroupOptions& group) {
  schema.option("pattern", group.pattern, "parameters of the group, by name; * stands for any text",
                not_empty());
  schema.option("route", group.route,
                "the optimizer of the group; muon takes matrices only; with parallel.placement = dedicated, "
                "muon and adamw are "
                "owned, sharded_adamw is not",
                routes);
  schema.option("rate", group.rate, "base learning rate", at_least(0));
  schema.option("decay", group.decay, "decoupled weight decay lambda", at_least(0));
  schema.option("momentum", group.momentum, "Muon's mu", from_to_below(0, 1));
  schema.option("nesterov", group.nesterov, "whether Muon looks ahead");
  schema.option("period", group.period, "steps from one refresh to the next, K", between(1, most));
  schema.option("gamma", group.gamma, "scale of RowNorm directions", above(0));
  schema.option("adjust_lr", group.adjust_lr, "scale of a matrix's rate by its shape", adjustments);
  schema.option("beta1", group.beta1, "AdamW's beta1", from_to_below(0, 1));
  schema.option("beta2", group.beta2, "AdamW's beta2", from_to_below(0, 1));
  schema.option("epsilon", group.epsilon, "AdamW's epsilon", above(0));
}

void declare_optimizer(Deck& deck, OptimizerOptions& optimizer) {
  deck.option(
      "optimizer.method", optimizer.method,
      "adamw: AdamW on everything; muon: NS5 every step; periodic: NS5 every period steps, RowNorm between; "
      "rownorm: gamma RowNorm every step; scalar: periodic with gamma on NS5 too",
      one_of({"adamw", "muon", "periodic", "rownorm", "scalar"}));
  deck.option("optimizer.period", optimizer.period, "steps from one refresh to the next, K",
              between(1, most));
  deck.option("optimizer.gamma", optimizer.gamma, "scale of RowNorm directions", above(0));
  deck.option("optimizer.momentum", optimizer.momentum, "Muon's mu", from_to_below(0, 1));
  deck.option("optimizer.nesterov", optimizer.nesterov, "whether Muon looks ahead");
  deck.option("optimizer.adjust_lr", optimizer.adjust_lr,
              "scale of a matrix's rate by its m x n: sqrt(max(1, m/n)), 0.2 sqrt(max(m, n)), or 1",
              adjustments);
  deck.option("optimizer.rate", optimizer.rate, "base rate of the blocks' matrices, all methods but adamw",
              at_least(0));
  deck.option("optimizer.decay", optimizer.decay, "decoupled weight decay lambda of what has that rate",
              at_least(0));
  deck.option("optimizer.baseline_rate", optimizer.baseline_rate, "base rate of everything with method adamw",
              at_least(0));
  deck.option("optimizer.adamw_rate", optimizer.adamw_rate,
              "base rate of what AdamW trains beside the matrices, all methods but adamw", at_least(0));
  deck.option("optimizer.adamw_decay", optimizer.adamw_decay,
              "decoupled weight decay lambda of what AdamW trains", at_least(0));
  deck.option("optimizer.beta1", optimizer.beta1, "AdamW's beta1", from_to_below(0, 1));
  deck.option("optimizer.beta2", optimizer.beta2, "AdamW's beta2", from_to_below(0, 1));
  deck.option("optimizer.epsilon", optimizer.epsilon, "AdamW's epsilon", above(0));
  deck.option("optimizer.warmup", optimizer.warmup, "steps of linear warm-up", between(0, most));
  deck.option("optimizer.schedule", optimizer.schedule, "the rate after warm-up",
              one_of({"cosine", "constant"}));
  deck.option("optimizer.final_rate_fraction", optimizer.final_rate_fraction,
              "where the cosine ends, as a fraction of the base rate", between(0, 1));
  deck.option("optimizer.clip", optimizer.clip, "largest norm of the whole gradient; 0: no clipping",
              at_least(0));
  deck.option("optimizer.on_nonfinite", optimizer.on_nonfinite,
              "a NaN or infinity in a gradient ends the run, or its step is skipped and counted",
              one_of({"fail", "skip"}));
  deck.option("optimizer.system", optimizer.system,
              "sharded execution, each with what the one before has: whole momentum every step; local "
              "RowNorm; buckets; "
              "gathers under NS5",
              one_of({"naive", "sharded_rownorm", "buckets", "overlap"}));
  deck.option("optimizer.bucket_mib", optimizer.bucket_mib, "cap on a bucket's gathered momentum, in MiB",
              between(1, 1 << 20));
  deck.option("optimizer.wire", optimizer.wire, "type of gathered momentum", one_of({"fp32", "bf16"}));
  deck.tables<GroupOptions>("optimizer.group", optimizer.groups,
                            "parameter groups, the first match counts; a key left out is the optimizer's own",
                            declare_group);
}

void declare_rest(Deck& deck, TrainOptions& options) {
  deck.option("parallel.placement", options.parallel.placement,
              "of the matrices that Muon trains: sharded over the ranks, or dedicated: each held and updated "
              "whole by one",
              one_of({"sharded", "dedicated"}));
  deck.option("parallel.owners", options.parallel.owners,
              "how dedicated owners are chosen: by the work of their updates, in turn, or all on rank 0",
              one_of({"balanced", "round_robin", "first"}));
  deck.option("parallel.replicate", options.parallel.replicate, "copies of the model; must divide the ranks",
              between(1, most));
  deck.option("parallel.replicate_broadcast", options.parallel.replicate_broadcast,
              "new dedicated matrices reach the other copies under the next step, or before it",
              one_of({"async", "sync"}));
  deck.option("parallel.residency", options.parallel.residency,
              "weights of a block are whole for its forward and again for its backward (z3), or for the "
              "whole step (z2)",
              one_of({"z3", "z2"}));
  deck.option("parallel.prefetch", options.parallel.prefetch, "blocks made whole ahead of the one in use",
              between(0, most));
  deck.option("sample.prompts", options.sample.prompts, "prompts of the sample grid");
  deck.option("sample.steps", options.sample.steps, "Euler steps of a sample", between(1, 100000));
  deck.option("sample.guidance", options.sample.guidance, "weight of classifier-free guidance; 1: none",
              at_least(0));
  deck.option("sample.every", options.sample.every, "steps from one grid to the next; 0: only at the end",
              between(0, most));
}

} // namespace

void declare(Deck& deck, TrainOptions& options) {
  declare_run(deck, options.run);
  deck.option("data.path", options.data.path, "the data set, made by prowl-data; a dry run needs none");
  declare_model(deck, options.model);
  declare_train(deck, options.train);
  declare_optimizer(deck, options.optimizer);
  declare_rest(deck, options);
}

void check(Deck const& deck, TrainOptions const& options) {
  auto const& model = options.model;
  bool const free = model.preset.empty();
  if (free && model.hidden == 0) deck.refuse("model.hidden", "a multiple of 64, or a model.preset");
  if (free && model.layers == 0) deck.refuse("model.layers", "at least 1, or a model.preset");
  if (!free && model.hidden != 0)
    deck.refuse("model.hidden", fmt::format("0 with model.preset \"{}\"", model.preset));
  if (!free && model.layers != 0)
    deck.refuse("model.layers", fmt::format("0 with model.preset \"{}\"", model.preset));
  if (options.data.path.empty() && model.size % model.patch != 0)
    deck.refuse("model.patch", fmt::format("a divisor of model.size, {}", model.size));
  if (options.data.path.empty() && model.size / model.patch > most_grid)
    deck.refuse("model.size", fmt::format("at most {} patches of {} a side", most_grid, model.patch));
  if (std::accumulate(model.encoder_tokens.begin(), model.encoder_tokens.end(), std::int64_t{0}) >
      most_tokens)
    deck.refuse("model.encoder_tokens", fmt::format("at most {} in all", most_tokens));
  if (model.encoder_tokens.size() != model.encoder_widths.size())
    deck.refuse("model.encoder_tokens",
                fmt::format("as many as model.encoder_widths, {}", model.encoder_widths.size()));
  if (options.train.batch % options.train.accumulate != 0)
    deck.refuse("train.accumulate", fmt::format("a divisor of train.batch, {}", options.train.batch));
}

} // namespace prowl::dit
