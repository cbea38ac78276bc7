#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds, makes the emoji data set, trains on 2 ranks, draws
# the loss curve and a grid of samples.
#   apps/quickstart.sh [DECK] [key=value ...]   default: inputs/emoji.toml; the rest goes to prowl-train
# A second run reuses what is there: a finished training only draws its pictures again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stage=start
trap 'status=$?; [ $status -eq 0 ] || echo "quickstart: failed while: $stage" >&2' EXIT
say() {
  stage=$*
  printf '\n== %s\n' "$*"
}

deck=inputs/emoji.toml
case ${1:-} in *.toml) deck=$1; shift ;; esac
build=build/quickstart
train=$build/apps/dit/train/prowl-train
data=$build/apps/data/prowl-data
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

say "installing what is missing"
cmake/install-deps.sh

say "building"
options=()
if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
mkdir -p $build
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPROWL_NATIVE=ON -DPROWL_BUILD_TESTS=OFF \
  ${options[@]+"${options[@]}"} >$build.log 2>&1 || { cat $build.log >&2; exit 1; }
cmake --build $build --target prowl-train prowl-sample prowl-data -j "$(nproc)"

say "making the data set"
path=$(awk -F'"' '/^path *=/ { print $2; exit }' "$deck")
if [ -e "$path" ]; then
  echo "$path is there"
else
  mkdir -p "$(dirname "$path")"
  $data emoji "$path" --size 32
fi
folder=$($train "$deck" "$@" --dry-run | awk -F'"' '/^folder *=/ { print $2; exit }')

say "training on 2 ranks"
mpirun -n 2 --oversubscribe --bind-to none $train "$deck" "$@"

say "drawing the loss curve"
/usr/bin/python3 apps/analysis/plot_loss.py "$folder" -o "$folder/loss.png"

checkpoint=$(ls "$folder"/checkpoint-*.h5 | tail -n 1)
samples=$(ls "$folder"/samples-*.png | tail -n 1)
say "done"
printf 'checkpoint   %s\nloss curve   %s\nsamples      %s\n' "$checkpoint" "$folder/loss.png" "$samples"
