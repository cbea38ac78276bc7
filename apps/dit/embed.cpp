#include <dit/embed.hpp>

#include <dit/detail/rows.hpp>
#include <dit/linear.hpp>
#include <dit/rms_norm.hpp>
#include <dit/time.hpp>

namespace prowl::dit {

namespace {

/// Between an encoder's own rows, (samples * count) x d, and its place in the text stream, (samples * tokens)
/// x d.
template <class T, bool into_stream>
void copy_text(Execution const& exec, int count, int tokens, int offset, Matrix<T> const& own,
               Matrix<T> const& stream) {
  auto const a = own.data(), b = stream.data();
  int const d = int(own.extent(1));
  Kokkos::parallel_for(
      "prowl::dit::copy_text", detail::rows(exec, std::int64_t(own.extent(0))),
      KOKKOS_LAMBDA(detail::Team const& team) {
        std::int64_t const row = team.league_rank();
        auto const mine = a + row * d;
        auto const there = b + (row / count * tokens + offset + row % count) * d;
        detail::each(team, d, [&](int j) {
          if (into_stream)
            there[j] = mine[j];
          else
            mine[j] = there[j];
        });
      });
}

/// The features of encoder e as rows.
template <class T>
Matrix<T> features(Input<T> const& input, std::size_t e) {
  auto const& f = input.text[e];
  return Matrix<T>(f.data(), f.extent(0) * f.extent(1), f.extent(2));
}

template <class T>
void normalise_text(Execution const& exec, Parameters<T> const& p, EncoderIndex const& index,
                    Input<T> const& input, std::size_t e, EmbedSpace<T> const& space) {
  rms_norm<T>(exec, features(input, e), p.weight(index.norm), p.weight(index.scalar),
              space.text_normalised[e], space.text_inverse_rms);
}

} // namespace

template <class T>
void embed(Execution const& exec, Parameters<T> const& p, EmbedIndex const& index, Input<T> const& input,
           Workspace<T>& w) {
  auto const& space = w.embed;
  patchify<T>(exec, w.patch, input.latent, space.patches);
  linear<T>(exec, space.patches, p.weight(index.img_in), p.weight(index.img_in_bias), w.img[0]);

  int offset = 0;
  for (std::size_t e = 0; e < index.text.size(); ++e) {
    int const count = int(input.text[e].extent(1));
    normalise_text(exec, p, index.text[e], input, e, space);
    linear<T>(exec, space.text_normalised[e], p.weight(index.text[e].linear), space.text_rows[e]);
    copy_text<T, true>(exec, count, w.txt_space.tokens, offset, space.text_rows[e], w.txt[0]);
    offset += count;
  }

  linear<T>(exec, input.pooled, p.weight(index.pooled_in), w.y);
  embed_time<T>(exec, input.time, space.time);
  linear<T>(exec, space.time, p.weight(index.time_first), space.time_first);
  silu<T>(exec, space.time_first, space.time_silu);
  linear<T>(exec, space.time_silu, p.weight(index.time_second), w.y, T(1));
}

template <class T>
void embed_backward(Execution const& exec, Parameters<T> const& p, EmbedIndex const& index,
                    Input<T> const& input, Workspace<T>& w) {
  auto const& space = w.embed;
  linear_weight_gradient<T>(exec, space.patches, w.img_space.dx, p.gradient(index.img_in));
  sum_rows<T>(exec, w.img_space.dx, p.gradient(index.img_in_bias));

  int offset = 0;
  for (std::size_t e = 0; e < index.text.size(); ++e) {
    auto const& encoder = index.text[e];
    int const count = int(input.text[e].extent(1));
    normalise_text(exec, p, encoder, input, e, space);
    copy_text<T, false>(exec, count, w.txt_space.tokens, offset, space.text_rows[e], w.txt_space.dx);
    linear_weight_gradient<T>(exec, space.text_normalised[e], space.text_rows[e], p.gradient(encoder.linear));
    linear_input_gradient<T>(exec, p.weight(encoder.linear), space.text_rows[e], space.dtext_normalised[e]);
    rms_norm_backward<T>(exec, features(input, e), p.weight(encoder.norm), p.weight(encoder.scalar),
                         space.text_inverse_rms, space.dtext_normalised[e], p.gradient(encoder.norm),
                         p.gradient(encoder.scalar));
    offset += count;
  }

  linear_weight_gradient<T>(exec, input.pooled, w.dy, p.gradient(index.pooled_in));
  linear_weight_gradient<T>(exec, space.time_silu, w.dy, p.gradient(index.time_second));
  linear_input_gradient<T>(exec, p.weight(index.time_second), w.dy, space.dtime);
  silu_backward<T>(exec, space.time_first, space.dtime, space.dtime);
  linear_weight_gradient<T>(exec, space.time, space.dtime, p.gradient(index.time_first));
}

#define PROWL_INSTANTIATE(T)                                                                                 \
  template void embed<T>(Execution const&, Parameters<T> const&, EmbedIndex const&, Input<T> const&,         \
                         Workspace<T>&);                                                                     \
  template void embed_backward<T>(Execution const&, Parameters<T> const&, EmbedIndex const&,                 \
                                  Input<T> const&, Workspace<T>&);
PROWL_INSTANTIATE(float)
PROWL_INSTANTIATE(double)
#undef PROWL_INSTANTIATE

} // namespace prowl::dit
