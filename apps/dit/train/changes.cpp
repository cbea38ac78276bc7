#include <dit/train/changes.hpp>

#include <dit/options/options.hpp>

#include <prowl/core/error.hpp>
#include <prowl/io/hashed_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

namespace prowl::dit {

namespace {

/// Keys of the deck that a run may change as it goes on; a dot at the end stands for all keys of the section.
/// The model's are compared as the model that they make.
constexpr std::array free_keys = {"run.folder",
                                  "run.steps",
                                  "run.resume",
                                  "run.accept_changes",
                                  "run.time_limit",
                                  "data.path",
                                  "model.",
                                  "train.accumulate",
                                  "train.validate_every",
                                  "train.validation_batches",
                                  "train.checkpoint_every",
                                  "train.keep",
                                  "train.dump_step",
                                  "train.log_every",
                                  "optimizer.on_nonfinite",
                                  "optimizer.system",
                                  "optimizer.bucket_mib",
                                  "parallel.",
                                  "sample."};

bool is_free(std::string const& key) {
  return std::ranges::any_of(free_keys, [&](std::string_view const free) {
    return free.ends_with('.') ? key.starts_with(free) : key == free;
  });
}

std::map<std::string, std::string> values(std::string const& deck_text) {
  TrainOptions options;
  Deck deck;
  declare(deck, options);
  deck.read(deck_text, "deck");
  return deck.values();
}

/// Changes of these leave every array of the model as it is.
Effect effect_of(std::string const& entry, nlohmann::json const& before, nlohmann::json const& now) {
  if (entry == "encoders") {
    bool same = before.is_array() && now.is_array() && before.size() == now.size();
    for (std::size_t i = 0; same && i < now.size(); ++i)
      same = before[i].value("width", 0) == now[i].value("width", 0);
    return same ? Effect::another_run : Effect::another_model;
  }
  constexpr std::array shapes = {"hidden", "layers", "patch", "channels", "pooled_width"};
  return std::ranges::find(shapes, entry) == shapes.end() ? Effect::another_run : Effect::another_model;
}

/// A hash of up to 64 samples, spread evenly.
std::uint64_t content(Dataset const& data) {
  constexpr std::int64_t most = 64;
  auto const count = std::min(most, data.size());
  auto hash = fnv1a("");
  std::vector<float> values;
  auto const add = [&](std::int64_t size, auto const& read) {
    values.resize(std::size_t(size));
    read(values.data());
    hash = fnv1a({reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float)}, hash);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    auto const sample = count < 2 ? 0 : i * (data.size() - 1) / (count - 1);
    add(data.sample_size(), [&](float* to) { data.read_samples(sample, 1, to); });
    for (std::int64_t e = 0; e < std::ssize(data.encoders()); ++e) {
      auto const& encoder = data.encoders()[std::size_t(e)];
      add(encoder.tokens * encoder.width, [&](float* to) { data.read_text(e, sample, 1, to); });
    }
    add(data.pooled_width(), [&](float* to) { data.read_pooled(sample, 1, to); });
    auto const caption = data.caption(sample);
    hash = fnv1a({caption.data(), caption.size() + 1}, hash);
  }
  return hash;
}

std::vector<Change> of(std::vector<Change> const& changes, Effect effect) {
  std::vector<Change> result;
  std::ranges::copy_if(changes, std::back_inserter(result),
                       [&](auto const& c) { return c.effect == effect; });
  return result;
}

} // namespace

std::string text(std::vector<Change> const& changes) {
  std::string result;
  for (auto const& c : changes)
    result += fmt::format("{}{}: {} -> {}", result.empty() ? "" : "; ", c.what, c.before, c.now);
  return result;
}

std::vector<Change> deck_changes(std::string const& before_text, std::string const& now_text) {
  std::map<std::string, std::string> before, now = values(now_text);
  try {
    before = values(before_text);
  } catch (Error const& error) {
    return {{"deck", fmt::format("cannot be compared ({})", error.what()), "that of this start",
             Effect::another_run}};
  }
  std::set<std::string> keys;
  for (auto const& side : {before, now})
    for (auto const& [key, value] : side) keys.insert(key);
  auto const value = [](auto const& side, std::string const& key) {
    auto const found = side.find(key);
    return found == side.end() ? std::string("unset") : found->second;
  };
  std::vector<Change> changes;
  for (auto const& key : keys)
    if (value(before, key) != value(now, key))
      changes.push_back(
          {key, value(before, key), value(now, key), is_free(key) ? Effect::none : Effect::another_run});
  return changes;
}

std::vector<Change> description_changes(std::string const& prefix, std::string const& before_text,
                                        std::string const& now_text) {
  auto const before = nlohmann::json::parse(before_text, nullptr, false),
             now = nlohmann::json::parse(now_text);
  if (!before.is_object()) return {{prefix, "not to be read", now_text, Effect::another_run}};
  std::vector<Change> changes;
  for (auto const& [entry, value] : now.items()) {
    auto const old = before.value(entry, nlohmann::json());
    if (old != value)
      changes.push_back(
          {fmt::format("{} {}", prefix, entry), old.dump(), value.dump(), effect_of(entry, old, value)});
  }
  return changes;
}

std::string fingerprint(Dataset const& data) {
  nlohmann::json const json = {{"samples", data.size()},
                               {"training_count", data.training_count()},
                               {"kind", data.latents() ? "latents" : "images"},
                               {"content", fmt::format("{:016x}", content(data))}};
  return json.dump();
}

std::vector<Change> changes_since(ArrayFileReader const& checkpoint, std::string const& deck,
                                  std::string const& model, std::string const& data) {
  auto changes = deck_changes(checkpoint.text("deck"), deck);
  auto const add = [&](std::vector<Change> const& more) {
    changes.insert(changes.end(), more.begin(), more.end());
  };
  add(description_changes("model", checkpoint.string("model"), model));
  if (checkpoint.has("data")) add(description_changes("data set", checkpoint.string("data"), data));
  return changes;
}

void refuse_another_model(std::string const& checkpoint, std::vector<Change> const& changes) {
  auto const found = of(changes, Effect::another_model);
  if (!found.empty()) throw Error("{}: holds another model than this run's: {}", checkpoint, text(found));
}

void refuse_changes(std::string const& checkpoint, std::vector<Change> const& changes, bool accept) {
  auto const found = of(changes, Effect::another_run);
  if (!accept && !found.empty())
    throw Error("{}: goes on only as the run that it is of: {}; run.accept_changes = true goes on with the "
                "new values",
                checkpoint, text(found));
}

} // namespace prowl::dit
