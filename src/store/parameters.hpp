/// What a model's forward and backward see of its parameters.
#pragma once

#include <prowl/core/types.hpp>

#include <cstddef>

namespace prowl {

/// Whole weights and gradients by index, present while their unit is in use. The model brackets its work on
/// each unit: forward in unit order, backward in the reverse order. Where the arrays come from and go to is
/// the implementer's.
template <class T>
class Parameters {
public:
  virtual ~Parameters() = default;

  virtual void begin_forward(std::size_t unit) = 0;
  virtual void end_forward(std::size_t unit) = 0;
  virtual void begin_backward(std::size_t unit) = 0;
  /// The gradients of the unit are complete: every element has been written since begin_backward.
  virtual void end_backward(std::size_t unit) = 0;

  /// rows x columns; valid between begin_* and end_* of the parameter's unit.
  virtual Matrix<T const> weight(std::size_t parameter) const = 0;
  /// rows x columns, to be overwritten; valid between begin_backward and end_backward of the parameter's
  /// unit.
  virtual Matrix<T> gradient(std::size_t parameter) const = 0;
};

} // namespace prowl
