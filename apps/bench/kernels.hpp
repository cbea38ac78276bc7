/// The kernels one by one, with Google Benchmark.
#pragma once

#include <string>
#include <vector>

namespace prowl::bench {

/// `arguments`: Google Benchmark's, such as --benchmark_filter=syrk. One that it does not know throws Error.
/// Every rank runs, rank 0 reports.
void run_kernels(std::vector<std::string> const& arguments);

} // namespace prowl::bench
