#!/usr/bin/env bash
# Installs everything Prowl needs to build, test and run on Debian (12 or later), as root:
#   cmake/install-deps.sh [PACKAGE...]   the packages named are installed too
# Packages that are there already are left alone, so a second run does nothing.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

command -v apt-get >/dev/null || { echo "install-deps: apt-get not found; install the packages listed in $0 by hand" >&2; exit 1; }

packages=(
  g++ cmake ninja-build pkg-config ccache clang-format
  libopenmpi-dev openmpi-bin libhdf5-openmpi-dev hdf5-tools libopenblas-dev
  libfmt-dev libspdlog-dev nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libutf8proc-dev
  libpng-dev libfreetype-dev libharfbuzz-dev libgtest-dev libbenchmark-dev
  fonts-noto-color-emoji unicode-data python3-h5py python3-matplotlib python3-numpy
  "$@"
)

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [[ $(apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]; }

updated=no
update() {
  [ "$updated" = no ] || return 0
  updated=yes
  echo "install-deps: apt-get update"
  apt-get -qq update </dev/null
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done

if ! installed libkokkos-dev && ! { installed libtrilinos-kokkos-dev && installed libtrilinos-kokkos-kernels-dev; }; then
  available libkokkos-dev || available libtrilinos-kokkos-dev || update
  if available libkokkos-dev; then # Debian 13 and later
    missing+=(libkokkos-dev)
  else # Debian 12: Kokkos 3.4 inside Trilinos
    missing+=(libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev)
  fi
fi

if [ ${#missing[@]} -eq 0 ]; then
  echo "install-deps: everything is installed"
  exit 0
fi
[ "$(id -u)" -eq 0 ] || { echo "install-deps: run as root to install: ${missing[*]}" >&2; exit 1; }

for package in "${missing[@]}"; do
  available "$package" || { update; break; }
done
echo "install-deps: installing ${missing[*]}"
install() {
  apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install "${missing[@]}" </dev/null >"$log" 2>&1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Package lists that are older than the archive name files that are gone: once more with new ones.
install || { update; install; } || { cat "$log" >&2; echo "install-deps: apt-get install failed" >&2; exit 1; }
