#!/usr/bin/env bash
# From a fresh clone to the tests' results: installs what is missing, configures, builds, runs ctest.
#   test/run.sh [CTEST ARGUMENT...]   e.g. test/run.sh -R optim
# PROWL_TEST_PRESET=asan (ubsan, debug, release) tests another build than `tests`; JOBS is the number of cores to use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${PROWL_TEST_PRESET:-tests}
jobs=${JOBS:-$(nproc)}

cmake/install-deps.sh

options=()
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset "$preset" -DPROWL_WERROR=ON ${options[@]+"${options[@]}"}
cmake --build "build/$preset" -j "$jobs"

# A test at 4 ranks counts as 4 processors, so that it does not share the cores with others.
exec ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$jobs" "$@"
