/// The optimizers side by side on one set of parameters.
#pragma once

#include <cstdint>
#include <string>

namespace prowl::bench {

struct OptimizerBench {
  std::string model;
  std::int64_t steps = 30; ///< of each method, rounded up to whole periods
  std::int64_t period = 3;
  double bucket_mib = 256;
  std::string wire = "fp32"; ///< or "bf16"
  std::string systems = "all";
  std::string trace, json; ///< files to write; none where empty
  std::string hardware;    ///< description to predict the times from; none where empty
};

/// Collective. Prints a table on rank 0.
void run_optimizer(OptimizerBench const& options);

} // namespace prowl::bench
