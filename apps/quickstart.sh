#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds, makes the emoji data set, trains on 2 ranks, draws
# the loss curve and a grid of samples.
#   apps/quickstart.sh [DECK.toml] [key=value ...]   default: inputs/emoji.toml; the rest goes to prowl-train
# A second run reuses what is there: a finished training only draws its pictures again, an interrupted one goes on.
# After one that ended early with a checkpoint the status is 75, as that of prowl-train. Paths in decks and overrides
# start at the clone's root. JOBS is the number of cores to build with.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

stage=start
trap 's=$?; [ $s -eq 0 ] || [ "$stage" = done ] || echo "quickstart: failed while: $stage" >&2' EXIT
say() {
  stage=$*
  printf '\n== %s (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60))
}

deck=$root/inputs/emoji.toml
case ${1:-} in
-h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;;
*=* | "") ;;
*) stage="reading the deck"; deck=$(realpath -e "$1"); shift ;;
esac
cd "$root"
build=build/quickstart
train=$build/apps/dit/train/prowl-train
data=$build/apps/data/prowl-data
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none # which containers seldom permit
ranks=(mpirun -n 2 --oversubscribe --bind-to none)

say "installing what is missing"
cmake/install-deps.sh

say "building"
options=()
if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
mkdir -p $build
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPROWL_NATIVE=ON -DPROWL_BUILD_TESTS=OFF \
  ${options[@]+"${options[@]}"} >$build.log 2>&1 || { cat $build.log >&2; exit 1; }
cmake --build $build --target prowl-train prowl-sample prowl-data -j "${JOBS:-$(nproc)}"

say "making the data set"
path=$(awk -F'"' '/^path *=/ { print $2; exit }' "$deck")
for override in "$@"; do
  case $override in data.path=*) path=${override#*=} ;; esac
done
if [ -e "$path" ]; then
  echo "$path is there"
elif [[ $path =~ emoji-([0-9]+)\.h5$ ]]; then
  mkdir -p "$(dirname "$path")"
  $data emoji "$path" --size "${BASH_REMATCH[1]}"
else
  echo "data.path: '$path' is not there, and only emoji-SIZE.h5 is made here; see $data --help" >&2
  exit 1
fi
stage="reading the deck"
folder=$($train "$deck" "$@" --dry-run | awk -F'"' '/^folder *=/ { print $2 }')

say "training on 2 ranks"
status=0
"${ranks[@]}" $train "$deck" "$@" || status=$?
[ $status -eq 0 ] || [ $status -eq 75 ] || exit $status # 75: ended early with a checkpoint; shown all the same
checkpoint=$(find "$folder" -maxdepth 1 -name 'checkpoint-*.h5' | sort | tail -n 1)

say "drawing the loss curve"
apps/analysis/plot_loss.py "$folder" -o "$folder/loss.png"

say "samples"
samples=$(find "$folder" -maxdepth 1 -name 'samples-*.png' | sort | tail -n 1) # of the deck's prompts, from the training
if [ -z "$samples" ]; then
  samples=$folder/samples.png
  "${ranks[@]}" $build/apps/dit/sample/prowl-sample "$checkpoint" --data "$path" --count 16 --grid --output "$samples"
else
  awk '/^prompts *=/' "$folder/deck.toml"
fi

say "done"
printf 'checkpoint   %s\nloss curve   %s\nsamples      %s\n' "$(realpath "$checkpoint")" \
  "$(realpath "$folder/loss.png")" "$(realpath "$samples")"
exit $status
