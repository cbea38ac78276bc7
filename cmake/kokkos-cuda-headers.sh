#!/usr/bin/env bash
# Puts the headers of a current Kokkos, configured for CUDA on Hopper, in DIR/include:
#   cmake/kokkos-cuda-headers.sh DIR
# Device code can be compiled against them on a machine without a GPU (-DPROWL_KOKKOS_CUDA_INCLUDE=DIR/include), not
# linked: Debian's libkokkos-dev (of sid), from which they come, holds Kokkos built for the host only. The package is
# fetched and verified by apt, beside this system's own package lists, and is not installed.
set -euo pipefail
target=${1:?usage: kokkos-cuda-headers.sh DIR}
fail() { echo "kokkos-cuda-headers: $*" >&2; exit 1; }

if [ -f "$target/include/.complete" ]; then
  exit 0
fi
mkdir -p "$target"
target=$(cd "$target" && pwd)

# shellcheck disable=SC2016 # $(REPO_URI) is apt's own
mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | sed -n 1p; }
mirror=$(mirror)
if [ -z "$mirror" ] && [ "$(id -u)" -eq 0 ]; then
  apt-get -qq update </dev/null || true
  mirror=$(mirror)
fi
[ -n "$mirror" ] || fail "apt knows no Debian archive; run apt-get update"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{lists,archives}/partial "$scratch/parts"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$scratch/sources.list"
cat >"$scratch/apt.conf" <<CONF
Dir::Etc::SourceList "$scratch/sources.list";
Dir::Etc::SourceParts "$scratch/parts";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$scratch/parts";
Dir::State::Lists "$scratch/lists";
Dir::State::Status "/dev/null";
Dir::Cache "$scratch";
Dir::Cache::Archives "$scratch/archives";
Acquire::Languages "none";
APT::Sandbox::User "root";
CONF
fetch() { APT_CONFIG=$scratch/apt.conf apt-get -qq "$@" </dev/null; }
cd "$scratch"
fetch update || fail "the package lists of sid cannot be read"
fetch download libkokkos-dev || fail "libkokkos-dev cannot be fetched"
dpkg-deb --extract libkokkos-dev_*.deb root
cd root/usr/include/kokkos

# switch FILE on|off MACRO...: the lines of CMake's configure_file, defined or commented out.
switch() {
  local file=$1 state=$2 macro
  shift 2
  for macro in "$@"; do
    if [ "$state" = on ]; then
      sed -i "s|^/\* #undef $macro \*/\$|#define $macro|" "$file"
      grep -qx "#define $macro" "$file" || fail "$file: $macro cannot be set; has Kokkos changed?"
    else
      sed -i "s|^#define $macro\$|/* #undef $macro */|" "$file"
    fi
  done
}
switch KokkosCore_config.h on KOKKOS_ENABLE_SERIAL KOKKOS_ENABLE_CUDA KOKKOS_ARCH_HOPPER KOKKOS_ARCH_HOPPER90
switch KokkosCore_config.h off KOKKOS_ENABLE_OPENMP
switch desul/atomics/Config.hpp on DESUL_ATOMICS_ENABLE_CUDA
switch desul/atomics/Config.hpp off DESUL_ATOMICS_ENABLE_OPENMP

# The lists of backends: generated files, each an include for every backend.
lists() {
  local file=KokkosCore_Config_$1.hpp header
  shift
  echo "#pragma once" >"$file"
  for header in "$@"; do
    [ -f "$header" ] || fail "Kokkos has no $header; has it changed?"
    echo "#include <$header>" >>"$file"
  done
}
lists FwdBackend fwd/Kokkos_Fwd_SERIAL.hpp fwd/Kokkos_Fwd_CUDA.hpp
lists DeclareBackend decl/Kokkos_Declare_SERIAL.hpp decl/Kokkos_Declare_CUDA.hpp
lists SetupBackend setup/Kokkos_Setup_Cuda.hpp

version=$(awk '/^#define KOKKOS_VERSION_(MAJOR|MINOR)/ { printf "%s%s", sep, $3; sep = "." }' KokkosCore_config.h)
touch .complete
rm -rf "$target/include"
mv "$scratch/root/usr/include/kokkos" "$target/include"
echo "kokkos-cuda-headers: Kokkos $version for CUDA in $target/include"
