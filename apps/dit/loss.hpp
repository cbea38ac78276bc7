/// Patches and the mean squared error on them.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

/// How a latent of C x side x side is cut: a patch's vector is ordered (channel, row, column); patches go row
/// by row.
struct PatchShape {
  int channels, side, patch;
  KOKKOS_INLINE_FUNCTION int grid() const { return side / patch; }
  KOKKOS_INLINE_FUNCTION int size() const { return channels * patch * patch; }
  KOKKOS_INLINE_FUNCTION std::int64_t latent_size() const { return std::int64_t(channels) * side * side; }
  /// Where element j of the vector of patch `token` lies in its latent.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t position(int token, int j) const {
    int const channel = j / (patch * patch), row = j / patch % patch, column = j % patch;
    return (std::int64_t(channel) * side + token / grid() * patch + row) * side + token % grid() * patch +
           column;
  }
};

/// latents: b x C x (side * side); patches: (b * tokens) x (C p p).
template <class T>
void patchify(Execution const& exec, PatchShape shape, Batch<T const> const& latents,
              Matrix<T> const& patches);
template <class T>
void unpatchify(Execution const& exec, PatchShape shape, Matrix<T const> const& patches,
                Batch<T> const& latents);

/// The sum over the samples of each sample's mean squared error. `partials` is scratch, an element a row of
/// `prediction`.
template <class T>
double squared_error(Execution const& exec, PatchShape shape, Matrix<T const> const& prediction,
                     Batch<T const> const& target, Vector<double> const& partials);

/// `prediction` becomes the gradient of scale times squared_error().
template <class T>
void squared_error_backward(Execution const& exec, PatchShape shape, double scale,
                            Batch<T const> const& target, Matrix<T> const& prediction);

} // namespace prowl::dit
