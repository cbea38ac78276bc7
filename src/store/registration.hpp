/// Whether all ranks mean the same model.
#pragma once

#include <prowl/comm/communicator.hpp>
#include <prowl/placement/layout.hpp>

namespace prowl {

/// Collective. Throws the same Error on every rank, naming the first parameter that differs, unless all ranks give the same
/// names, shapes, units and owners in the same order, and each the part of a split matrix that is its own.
void require_same_registration(Communicator const& world, Layout const& layout);

} // namespace prowl
