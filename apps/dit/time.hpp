/// The sinusoidal embedding of time.
#pragma once

#include <prowl/core/types.hpp>

namespace prowl::dit {

/// embedding = concat(cos, sin) of 1000 t 10000^(-i/(d/2)), i = 0..d/2-1, a row a sample.
template <class T>
void embed_time(Execution const& exec, Vector<T const> const& time, Matrix<T> const& embedding);

} // namespace prowl::dit
