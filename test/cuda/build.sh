#!/usr/bin/env bash
# Builds the library, the programs and the tests with a Kokkos built for CUDA, without a GPU, and checks that what launches
# kernels has machine code for the GPU that Kokkos was built for:
#   test/cuda/build.sh PREFIX [BUILD]   PREFIX has Kokkos, Kokkos Kernels and nvcc_wrapper; BUILD: default build/cuda
# Needs nvcc in the path. JOBS is the number of cores to build with. Any warning is an error. TARGETS names what to build, where
# not all is wanted.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
prefix=$(realpath "$1")
build=$(realpath -m "${2:-$root/build/cuda}")
fail() { echo "test/cuda/build.sh: $*" >&2; exit 1; }
wrapper=$prefix/bin/nvcc_wrapper
[ -x "$wrapper" ] || fail "$wrapper is not there: expected a prefix of Kokkos built for CUDA"
command -v nvcc >/dev/null || fail "no nvcc in the path"

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPROWL_WERROR=ON -DKokkos_ROOT="$prefix" \
  -DKokkosKernels_ROOT="$prefix" -DCMAKE_CXX_COMPILER="$wrapper"
log=$build/build.log
# shellcheck disable=SC2086 # several targets
cmake --build "$build" -j "${JOBS:-$(nproc)}" ${TARGETS:+--target $TARGETS} 2>&1 | tee "$log"
if grep -i 'warning' "$log"; then fail "warnings"; fi

arch=$(grep -o -m 1 'arch=sm_[0-9a-z]*' "$build/compile_commands.json" | sed 's/.*=//')
[ -n "$arch" ] || fail "no GPU's architecture in the compiler's flags: was Kokkos in $prefix built for CUDA?"
# Machine code for this GPU; NVIDIA's own tool where it is installed.
has_code() {
  if command -v cuobjdump >/dev/null; then
    cuobjdump --list-elf "$1" | grep -q "$arch"
  else
    python3 "$root/test/cuda/images.py" "$1" | grep -qx "$arch"
  fi
}
# Kernels of this project by the functions that launch them.
kernels() { nm -C "$1" | grep -c '__device_stub__.*prowl::' || true; }
for program in train sample bench plan data; do
  case $program in
  train | sample) path=$build/apps/dit/$program/prowl-$program least=20 ;;
  bench) path=$build/apps/bench/prowl-bench least=20 ;;
  *) path=$build/apps/$program/prowl-$program least=0 ;; # host only
  esac
  [ -x "$path" ] || fail "$path was not built"
  count=$(kernels "$path")
  [ "$count" -ge $least ] || fail "$path has $count kernels of Prowl, expected at least $least"
  [ $least -eq 0 ] || has_code "$path" || fail "$path has no code for $arch"
  echo "prowl-$program: $count kernels$([ $least -eq 0 ] || echo ", code for $arch")"
done
