/// Directions of a matrix that is split over a tensor group, from each rank's part of it (DMuon, arXiv:2606.27153).
///
/// A matrix that is cut along its long side is never gathered: NS5 sums the Gram matrix of the short side, r^2 elements, over the
/// group, RowNorm the r sums of squares. One that is cut along its short side is gathered for NS5; its RowNorm is local.
#pragma once

#include <prowl/comm/communicator.hpp>
#include <prowl/placement/parameter.hpp>

#include <vector>

namespace prowl {

/// Elements of workspace for both, in a group of `ranks`.
std::int64_t split_workspace(Parameter const& parameter, int ranks);

/// A collective over the group, with the elements of its gathered or reduced array.
struct SplitCollective {
  Collective kind;
  std::int64_t elements;
};
/// Those of an NS5 (`refreshes`), or of a RowNorm, in a group of `ranks`.
std::vector<SplitCollective> split_collectives(Parameter const& parameter, int ranks, bool refreshes);

/// part <- this rank's part of NS5 of the whole. Collective over the group.
void split_newton_schulz(Execution const& exec, Communicator const& group, Parameter const& parameter,
                         Matrix<float> const& part, Vector<float> const& workspace);

/// part <- this rank's part of gamma RowNorm of the whole. Collective over the group.
void split_row_norm(Execution const& exec, Communicator const& group, Parameter const& parameter, float gamma,
                    Matrix<float> const& part, Vector<float> const& workspace);

} // namespace prowl
