/// A look at a data set before anything is trained on it.
#pragma once

#include <prowl/io/dataset.hpp>

#include <string>
#include <vector>

namespace prowl {

struct DatasetSummary {
  std::int64_t samples = 0;          ///< looked at: training samples, evenly spread
  double mean = 0;                   ///< of all their values, as `Dataset::read_samples` gives them
  double deviation = 0;              ///< the standard deviation about it
  std::vector<std::string> warnings; ///< what is probably not meant, a line each
};

/// Reads at most 256 samples, fewer of large ones (32 Mi values, at least 16 samples). Throws what reading
/// throws.
///
/// Warns of latents whose mean is not within 0.5 of 0 or whose deviation is not within a factor of 2 of 1:
/// training mixes them with noise of mean 0 and deviation 1. Latents that an autoencoder's shift and scale
/// were applied to are well within, those without are beyond (deviations of 2.8 for FLUX, 5.5 for Stable
/// Diffusion, 7.7 for SDXL). Warns of samples that are all one value, and of shapes as `shape_warning` does.
DatasetSummary summarise(Dataset const& data);

/// What is said of samples that look like (height, width, channels), or of pictures of other than 1, 3 or 4
/// channels; empty for all others.
std::string shape_warning(Dataset const& data);

/// The summary in lines, the first one with mean and deviation, then the warnings.
std::vector<std::string> lines(Dataset const& data, DatasetSummary const& summary);

} // namespace prowl
