/// The ways to run a deck that are compared.
#pragma once

#include <plan/run_plan.hpp>

#include <string>
#include <vector>

namespace prowl::plan {

constexpr int most_ranks = 1 << 16; ///< that are planned

struct Method {
  std::string name;
  dit::TrainOptions options;
  MeshShape mesh;
};

/// `--mesh`, "32x8": replicas x shards. Throws Error where it is not that, or does not multiply to `ranks`.
MeshShape parse_mesh(std::string const& text, int ranks);

/// One copy of the model in a node where there are more nodes, else two copies; none where that does not go.
MeshShape hybrid_mesh(int ranks, int devices);

/// The deck as it is, on `mesh`.
Method of_deck(dit::TrainOptions const& deck, MeshShape const& mesh);

/// AdamW; Muon and Periodic sharded (periodic in the four system variants), dedicated in Z3 and Z2, and on a hybrid mesh.
std::vector<Method> all_methods(dit::TrainOptions const& deck, int ranks, MeshShape const& hybrid);
/// Of those the ones that somebody would choose: not the variants that are there for comparison.
std::vector<Method> practical_methods(dit::TrainOptions const& deck, int ranks, MeshShape const& hybrid);

struct Recommendation {
  RunPlan best;
  std::string reason; ///< one sentence
};
/// Of the placements, residencies and meshes of the deck's method that fit (well, if any does), and are within 2% of the fastest
/// of them, the one that needs least memory; throws Error saying what would fit where none does.
Recommendation recommend(dit::TrainOptions const& deck, dit::ModelConfig const& config, int ranks,
                         Setting const& setting);

/// What makes a deck run so: key=value, for the command line.
std::string settings(RunPlan const& plan);

/// What the run would fit with: changes to the deck and more ranks, each alone, or several changes where none alone helps; ""
/// where nothing was found.
std::string what_would_fit(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting);

} // namespace prowl::plan
