/// The MMDiT: a text-conditioned velocity field on latents, and its gradient.
///
/// Blocks are checkpointed: a forward pass keeps only each block's input streams, a backward pass computes
/// the rest again.
#pragma once

#include <dit/config.hpp>
#include <dit/input.hpp>
#include <dit/layout.hpp>
#include <dit/workspace.hpp>

#include <prowl/core/types.hpp>
#include <prowl/store/parameters.hpp>

#include <type_traits>

namespace prowl::dit {

/// Explicitly instantiated for float and double. Allocates only in the constructor: activation_bytes() bytes.
/// Every call brackets the units of parameters() in their order, also for a batch of no samples; a batch that
/// does not fit the model or its capacity throws Error before the first bracket.
template <class T>
class Model {
public:
  Model(ModelConfig const& config, int capacity);

  ModelConfig const& config() const { return config_; }
  /// The most samples of a batch.
  int capacity() const { return capacity_; }

  /// The sum over the samples of each one's mean squared error of the velocity; writes every parameter's
  /// gradient of loss_scale times that sum. `target` is b x C x (H * W).
  double forward_backward(Execution const& exec, Parameters<T>& parameters, Input<T> const& input,
                          std::type_identity_t<Batch<T const>> const& target, double loss_scale);

  /// The same sum, without gradients.
  double loss(Execution const& exec, Parameters<T>& parameters, Input<T> const& input,
              std::type_identity_t<Batch<T const>> const& target);

  /// The velocity, b x C x (H * W).
  void predict(Execution const& exec, Parameters<T>& parameters, Input<T> const& input,
               Batch<T> const& velocity);

private:
  int check(Input<T> const& input) const;
  void check_latent(char const* what, std::int64_t samples, Batch<T const> const& latent) const;
  void forward(Execution const& exec, Parameters<T>& parameters, Input<T> const& input);
  void backward(Execution const& exec, Parameters<T>& parameters, Input<T> const& input);
  void zero_gradients(Execution const& exec, Parameters<T>& parameters);

  ModelConfig config_;
  int capacity_;
  ModelIndex index_;
  Vector<char> memory_;
  Workspace<T> workspace_;
};

} // namespace prowl::dit
