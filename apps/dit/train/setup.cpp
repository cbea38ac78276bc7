#include <dit/train/setup.hpp>

#include <dit/layout.hpp>

#include <prowl/core/checked.hpp>
#include <prowl/core/error.hpp>
#include <prowl/io/dataset_summary.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/store/store_plan.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace prowl::dit {

namespace {

/// The loss, and whether to stop: what the ranks sum once a step.
constexpr std::int64_t loss_sum_bytes = 2 * sizeof(double);

AdjustRate adjust_rate(std::string const& name) {
  if (name == "match_rms_adamw") return AdjustRate::match_rms_adamw;
  return name == "none" ? AdjustRate::none : AdjustRate::original;
}

System system_variant(std::string const& name) {
  if (name == "naive") return System::naive;
  if (name == "sharded_rownorm") return System::sharded_row_norm;
  return name == "buckets" ? System::buckets : System::overlap;
}

ParameterGroup parameter_group(GroupOptions const& o) {
  ParameterGroup group;
  group.pattern = o.pattern;
  if (o.route)
    group.rule = *o.route == "muon" ? Rule::muon : *o.route == "adamw" ? Rule::adamw : Rule::sharded_adamw;
  group.rate = o.rate;
  group.decay = o.decay;
  group.momentum = o.momentum;
  group.nesterov = o.nesterov;
  group.period = o.period;
  group.gamma = o.gamma;
  if (o.adjust_lr) group.adjust_rate = adjust_rate(*o.adjust_lr);
  group.beta1 = o.beta1;
  group.beta2 = o.beta2;
  group.epsilon = o.epsilon;
  return group;
}

void take_from(Dataset const& data, ModelConfig& config) {
  if (data.height() != data.width()) {
    auto const hint = shape_warning(data);
    throw Error("{}: samples of {} x {}, expected squares{}{}", data.path(), data.height(), data.width(),
                hint.empty() ? "" : "; ", hint);
  }
  auto const samples =
      fmt::format("{}: {} of {} x {} x {} x {}", data.path(), data.latents() ? "/latents" : "/images",
                  data.size(), data.channels(), data.height(), data.width());
  config.channels = checked_int(data.channels(), samples + ": channels");
  config.image_size = checked_int(data.height(), samples + ": height");
  config.pooled_width = checked_int(data.pooled_width(), data.path() + ": /pooled: width");
  config.encoders.clear();
  for (auto const& e : data.encoders()) {
    auto const features = fmt::format("{}: /text/{}/features of {} x {} x {}", data.path(), e.name,
                                      data.size(), e.tokens, e.width);
    config.encoders.push_back(
        {e.name, checked_int(e.width, features + ": width"), checked_int(e.tokens, features + ": tokens")});
  }
  try {
    validate(config);
  } catch (Error const& error) {
    throw Error("{}: {}", samples, error.what());
  }
}

} // namespace

ModelConfig model_config(TrainOptions const& options, Dataset const* data) {
  auto const& o = options.model;
  ModelConfig config;
  if (!o.preset.empty()) {
    config = preset(o.preset);
  } else {
    config.hidden = checked_int(o.hidden, "model.hidden");
    config.layers = checked_int(o.layers, "model.layers");
    config.pooled_width = checked_int(o.pooled_width, "model.pooled_width");
    for (std::size_t i = 0; i < o.encoder_widths.size(); ++i)
      config.encoders.push_back({fmt::format("text{}", i),
                                 checked_int(o.encoder_widths[i], "model.encoder_widths"),
                                 checked_int(o.encoder_tokens[i], "model.encoder_tokens")});
  }
  config.patch = checked_int(o.patch, "model.patch");
  config.channels = checked_int(o.channels, "model.channels");
  config.image_size = checked_int(o.size, "model.size");
  if (data) take_from(*data, config);
  validate(config);
  return config;
}

ModelConfig checked_model(Deck const& deck, TrainOptions const& options, std::optional<int> ranks) {
  std::optional<Dataset> data;
  if (!options.data.path.empty()) data.emplace(options.data.path);
  auto const patch = options.model.patch;
  if (data && data->height() % patch != 0)
    deck.refuse("model.patch", fmt::format("a divisor of {}, the side of the samples of {}", data->height(),
                                           options.data.path));
  auto const config = model_config(options, data ? &*data : nullptr);
  if (ranks && *ranks % options.parallel.replicate != 0)
    deck.refuse("parallel.replicate", fmt::format("a divisor of the number of ranks, {}", *ranks));
  if (data) try {
      describe(config, data->text_encoding());
    } catch (nlohmann::json::exception const&) {
      throw Error("{}: attribute text_encoding, or the name of a text encoder: not UTF-8", data->path());
    }
  try {
    route(parameters(config), optimizer_options(options.optimizer));
  } catch (Error const& error) {
    throw Error("{}: {}", deck.origin("optimizer.group"), error.what());
  }
  return config;
}

prowl::OptimizerOptions optimizer_options(OptimizerOptions const& o) {
  prowl::OptimizerOptions result;
  bool const baseline = o.method == "adamw";
  result.adamw_only = baseline;
  result.muon.rate = o.rate;
  result.muon.decay = o.decay;
  result.muon.momentum = o.momentum;
  result.muon.nesterov = o.nesterov;
  result.muon.direction = o.method == "rownorm"  ? Direction::row_norm
                          : o.method == "scalar" ? Direction::scalar_controlled
                                                 : Direction::periodic;
  result.muon.period = o.method == "muon" ? 1 : o.period;
  result.muon.gamma = o.gamma;
  result.muon.adjust_rate = adjust_rate(o.adjust_lr);
  result.adamw.rate = baseline ? o.baseline_rate : o.adamw_rate;
  result.adamw.decay = baseline ? o.decay : o.adamw_decay;
  result.adamw.beta1 = o.beta1;
  result.adamw.beta2 = o.beta2;
  result.adamw.epsilon = o.epsilon;
  std::ranges::transform(o.groups, std::back_inserter(result.groups), parameter_group);
  result.clip = o.clip;
  result.skip_nonfinite = o.on_nonfinite == "skip";
  result.system = system_variant(o.system);
  result.wire = o.wire == "bf16" ? Wire::bfloat16 : Wire::float32;
  result.bucket_bytes = o.bucket_mib << 20;
  return result;
}

Schedule schedule(TrainOptions const& options) {
  auto const& o = options.optimizer;
  return {options.run.steps, o.warmup, o.schedule == "cosine", o.final_rate_fraction};
}

Ownership ownership(TrainOptions const& options, std::vector<Parameter> const& parameters,
                    MeshPlace const& mesh) {
  auto const& o = options.parallel;
  if (o.placement == "sharded") return {};
  OwnershipOptions how;
  how.assignment = o.owners == "balanced"      ? Assignment::balanced
                   : o.owners == "round_robin" ? Assignment::round_robin
                                               : Assignment::first_slot;
  return assign_ownership(parameters, route(parameters, optimizer_options(options.optimizer)), mesh, how);
}

Layout layout(TrainOptions const& options, ModelConfig const& config, MeshPlace const& place) {
  auto const list = parameters(config);
  return Layout(list, place, ownership(options, list, place).placements);
}

StoreOptions store_options(TrainOptions const& options) {
  StoreOptions result;
  result.prefetch = int(options.parallel.prefetch);
  result.residency = options.parallel.residency == "z2" ? Residency::z2 : Residency::z3;
  result.micro_batches = int(options.train.accumulate);
  result.asynchronous = options.parallel.replicate_broadcast == "async";
  return result;
}

Ledger planned_step(TrainOptions const& options, Layout const& layout, std::int64_t t) {
  auto ledger = planned_traffic(layout, store_options(options));
  ledger.add(optimizer_traffic(layout, optimizer_options(options.optimizer), t));
  ledger.record(Collective::all_reduce, Purpose::other, size(layout.place(), Axis::world), loss_sum_bytes);
  return ledger;
}

std::string describe(ModelConfig const& c, std::string const& text_encoding) {
  nlohmann::json j = {{"hidden", c.hidden},
                      {"layers", c.layers},
                      {"patch", c.patch},
                      {"channels", c.channels},
                      {"image_size", c.image_size},
                      {"pooled_width", c.pooled_width},
                      {"encoders", nlohmann::json::array()},
                      {"text_encoding", text_encoding}};
  for (auto const& e : c.encoders)
    j["encoders"].push_back({{"name", e.name}, {"width", e.width}, {"tokens", e.tokens}});
  return j.dump();
}

Description parse_description(std::string const& text, std::string const& context) {
  try {
    auto const j = nlohmann::json::parse(text);
    Description d;
    auto const size = [&](nlohmann::json const& in, char const* key) {
      return checked_int(in.at(key).get<std::int64_t>(),
                         fmt::format("{}: attribute model: {}", context, key));
    };
    d.config.hidden = size(j, "hidden");
    d.config.layers = size(j, "layers");
    d.config.patch = size(j, "patch");
    d.config.channels = size(j, "channels");
    d.config.image_size = size(j, "image_size");
    d.config.pooled_width = size(j, "pooled_width");
    d.text_encoding = j.at("text_encoding");
    for (auto const& e : j.at("encoders"))
      d.config.encoders.push_back({e.at("name"), size(e, "width"), size(e, "tokens")});
    validate(d.config);
    return d;
  } catch (nlohmann::json::exception const& error) {
    throw Error("{}: attribute model is not what prowl-train writes: {}", context, error.what());
  }
}

} // namespace prowl::dit
