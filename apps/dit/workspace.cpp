#include <dit/workspace.hpp>

#include <dit/heads.hpp>

#include <algorithm>

namespace prowl::dit {

template <class T>
Workspace<T>::Workspace(Arena& arena, ModelConfig const& config, int samples_)
    : samples(samples_), heads(config.heads()),
      joint(config.tokens()), patch{config.channels, config.image_size, config.patch} {
  std::int64_t const b = samples, d = config.hidden;
  auto const img_rows = b * config.image_tokens(), txt_rows = b * config.text_tokens();
  rope = arena.matrix<T>(config.image_tokens(), ModelConfig::head_size); // first: filled once, for any b
  for (int l = 0; l <= config.layers; ++l) img.push_back(arena.matrix<T>(img_rows, d));
  for (int l = 0; l < config.layers; ++l) txt.push_back(arena.matrix<T>(txt_rows, d));

  txt_space.tokens = config.text_tokens();
  txt_space.offset = 0;
  img_space.tokens = config.image_tokens();
  img_space.offset = config.text_tokens();
  img_space.rope = rope;
  take_stream(arena, config, txt_space);
  take_stream(arena, config, img_space);
  take_mlp(arena, config);

  auto const size = b * joint * d;
  for (auto* view : {&q, &k, &v, &attended})
    *view = Batch<T>(arena.take<T>(size), b * heads, joint, ModelConfig::head_size);
  for (auto* view : {&scores, &dscores})
    *view = Batch<T>(arena.take<T>(std::int64_t(heads) * joint * joint), heads, joint, joint);
  auto const partials = [&](StreamSpace<T> const& s) {
    return head_norm_partials({samples, heads, s.tokens, joint, s.offset});
  };
  norm_partials = arena.matrix<T>(std::max(partials(img_space), partials(txt_space)), ModelConfig::head_size);
  for (auto* view : {&y, &dy, &cond, &condition, &dcondition}) *view = arena.matrix<T>(b, d);
  take_embed(arena, config);
  prediction = arena.matrix<T>(img_rows, config.patch_size());
  loss_partials = Vector<double>(arena.take<double>(img_rows), img_rows);
}

template <class T>
void Workspace<T>::take_stream(Arena& arena, ModelConfig const& config, StreamSpace<T>& space) {
  auto const rows = std::int64_t(samples) * space.tokens, d = std::int64_t(config.hidden);
  for (auto* view :
       {&space.normalised, &space.q, &space.k, &space.v, &space.attended, &space.attn_branch, &space.dx})
    *view = arena.matrix<T>(rows, d);
  // The last block's text stream only feeds attention.
  bool const whole = &space == &img_space || config.layers > 1;
  if (whole) space.middle = arena.matrix<T>(rows, d);
  for (auto* view : {&space.statistics.mean, &space.statistics.inverse_deviation})
    *view = Vector<T>(arena.take<T>(rows), rows);
  for (int m = 0; m < (whole ? int(modulations) : int(attn_gate)); ++m) {
    space.modulation[m] = arena.matrix<T>(samples, d);
    space.dmodulation[m] = arena.matrix<T>(samples, d);
  }
}

template <class T>
void Workspace<T>::take_mlp(Arena& arena, ModelConfig const& config) {
  auto const tokens =
      config.layers > 1 ? std::max(img_space.tokens, txt_space.tokens) : img_space.tokens; // see take_stream
  auto const rows = std::int64_t(samples) * tokens;
  std::int64_t const d = config.hidden;
  auto const normalised = arena.take<T>(rows * d), branch = arena.take<T>(rows * d);
  auto const gate_up = arena.take<T>(rows * 8 * d), hidden = arena.take<T>(rows * 4 * d);
  auto const mean = arena.take<T>(rows), inverse_deviation = arena.take<T>(rows);
  for (auto* space : {&img_space, &txt_space}) {
    if (config.layers == 1 && space == &txt_space) continue;
    auto const n = std::int64_t(samples) * space->tokens;
    space->mlp_normalised = Matrix<T>(normalised, n, d);
    space->mlp_branch = Matrix<T>(branch, n, d);
    space->mlp = {Matrix<T>(gate_up, n, 8 * d), Matrix<T>(hidden, n, 4 * d)};
    space->mlp_statistics = {Vector<T>(mean, n), Vector<T>(inverse_deviation, n)};
  }
}

template <class T>
void Workspace<T>::take_embed(Arena& arena, ModelConfig const& config) {
  std::int64_t const b = samples, d = config.hidden;
  embed.patches = arena.matrix<T>(b * config.image_tokens(), config.patch_size());
  for (auto* view : {&embed.time, &embed.time_first, &embed.time_silu, &embed.dtime})
    *view = arena.matrix<T>(b, d);
  std::int64_t features = 0, tokens = 0;
  for (auto const& encoder : config.encoders) {
    features = std::max(features, b * encoder.tokens * encoder.width);
    tokens = std::max<std::int64_t>(tokens, encoder.tokens);
  }
  auto const normalised = arena.take<T>(features), dnormalised = arena.take<T>(features);
  auto const rows = arena.take<T>(b * tokens * d);
  for (auto const& encoder : config.encoders) {
    auto const n = b * encoder.tokens;
    embed.text_normalised.push_back(Matrix<T>(normalised, n, encoder.width));
    embed.dtext_normalised.push_back(Matrix<T>(dnormalised, n, encoder.width));
    embed.text_rows.push_back(Matrix<T>(rows, n, d));
  }
  embed.text_inverse_rms = Vector<T>(arena.take<T>(b * tokens), b * tokens);
}

template <class T>
std::int64_t activation_bytes(ModelConfig const& config, int samples) {
  Arena arena(nullptr);
  Workspace<T> const counted(arena, config, samples);
  return arena.used();
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template struct Workspace<T>;                                                                              \
  template std::int64_t activation_bytes<T>(ModelConfig const&, int);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
