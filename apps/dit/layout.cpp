#include <dit/layout.hpp>

#include <string_view>

namespace prowl::dit {

namespace {

struct Registrar {
  std::vector<Parameter>& list;
  std::string unit;

  std::size_t add(std::string name, std::vector<std::int64_t> shape) const {
    list.push_back({std::move(name), std::move(shape), unit});
    return list.size() - 1;
  }
};

EmbedIndex register_embed(Registrar const& add, ModelConfig const& c) {
  EmbedIndex index;
  index.img_in = add.add("img_in.weight", {c.hidden, c.patch_size()});
  index.img_in_bias = add.add("img_in.bias", {c.hidden});
  for (auto const& encoder : c.encoders) {
    auto const name = "text." + encoder.name;
    index.text.push_back({add.add(name + ".norm.weight", {encoder.width}), add.add(name + ".scalar", {1}),
                          add.add(name + ".linear.weight", {c.hidden, encoder.width})});
  }
  index.pooled_in = add.add("pooled_in.weight", {c.hidden, c.pooled_width});
  index.time_first = add.add("time_in.first.weight", {c.hidden, c.hidden});
  index.time_second = add.add("time_in.second.weight", {c.hidden, c.hidden});
  return index;
}

void register_modulation(Registrar const& add, std::string const& stream, std::int64_t d, bool whole,
                         StreamIndex& index) {
  static constexpr char const* names[modulations] = {"attn_shift", "attn_scale", "attn_gate",
                                                     "mlp_shift",  "mlp_scale",  "mlp_gate"};
  int const count = whole ? int(modulations) : int(attn_gate);
  for (int m = 0; m < count; ++m)
    index.modulation[m] = add.add(stream + ".modulation." + names[m] + ".weight", {d, d});
}

void register_attention(Registrar const& add, std::string const& stream, std::int64_t d, bool whole,
                        StreamIndex& index) {
  auto const name = stream + ".attn.";
  index.q = add.add(name + "q.weight", {d, d});
  index.k = add.add(name + "k.weight", {d, d});
  index.v = add.add(name + "v.weight", {d, d});
  if (whole) index.o = add.add(name + "o.weight", {d, d});
  index.q_norm = add.add(name + "q_norm.weight", {ModelConfig::head_size});
  index.k_norm = add.add(name + "k_norm.weight", {ModelConfig::head_size});
}

void register_mlp(Registrar const& add, std::string const& stream, std::int64_t d, StreamIndex& index) {
  auto const name = stream + ".mlp.";
  index.gate_up = add.add(name + "gate_up.weight", {8 * d, d});
  index.gate_up_bias = add.add(name + "gate_up.bias", {8 * d});
  index.down = add.add(name + "down.weight", {d, 4 * d});
  index.down_bias = add.add(name + "down.bias", {d});
}

BlockIndex register_block(Registrar const& add, std::int64_t d, bool last) {
  BlockIndex index{};
  auto const img = add.unit + ".img", txt = add.unit + ".txt";
  register_modulation(add, img, d, true, index.img);
  register_modulation(add, txt, d, !last, index.txt);
  register_attention(add, txt, d, !last, index.txt);
  if (!last) register_mlp(add, txt, d, index.txt);
  register_attention(add, img, d, true, index.img);
  register_mlp(add, img, d, index.img);
  index.cond = add.add(add.unit + ".cond.weight", {d, d});
  index.cond_bias = add.add(add.unit + ".cond.bias", {d});
  return index;
}

bool ends_with(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

} // namespace

ModelIndex model_index(ModelConfig const& config) {
  validate(config);
  ModelIndex result;
  auto& list = result.parameters;
  result.embed = register_embed({list, "embed"}, config);
  for (int l = 0; l < config.layers; ++l)
    result.blocks.push_back(
        register_block({list, "blocks." + std::to_string(l)}, config.hidden, l + 1 == config.layers));
  Registrar const add{list, "final"};
  std::int64_t const d = config.hidden;
  result.final.shift = add.add("final.shift.weight", {d, d});
  result.final.scale = add.add("final.scale.weight", {d, d});
  result.final.linear = add.add("final.linear.weight", {config.patch_size(), d});
  result.final.linear_bias = add.add("final.linear.bias", {config.patch_size()});
  return result;
}

std::vector<Parameter> parameters(ModelConfig const& config) { return model_index(config).parameters; }

bool is_muon_target(Parameter const& parameter) {
  return parameter.is_matrix() && parameter.unit.rfind("blocks.", 0) == 0;
}

Counts counts(ModelConfig const& config) {
  Counts result{};
  for (auto const& parameter : parameters(config)) {
    result.trainable += parameter.size();
    if (is_muon_target(parameter)) result.muon += parameter.size();
  }
  result.total = result.trainable + std::int64_t{16} * config.layers;
  return result;
}

Initial initial_value(Parameter const& parameter) {
  std::string_view const name = parameter.name;
  if (ends_with(name, "norm.weight") || ends_with(name, ".scalar")) return Initial::one;
  if (ends_with(name, ".bias") || ends_with(name, "_gate.weight") || name == "final.linear.weight")
    return Initial::zero;
  return Initial::normal;
}

} // namespace prowl::dit
