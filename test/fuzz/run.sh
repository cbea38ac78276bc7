#!/bin/sh
# test/fuzz/run.sh [SECONDS] [TARGET...]: libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer on decks, data sets,
# checkpoints and PNG files, so many seconds each (600). Fails where one crashes, hangs or leaks; its input is then in
# build/fuzz/TARGET-*. Needs clang; as root on Debian it is installed.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- deck png dataset checkpoint
if ! command -v clang++ >/dev/null || ! ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1; then
    apt-get update -q && apt-get install -yq clang libclang-rt-dev
fi
build=build/fuzz
mkdir -p $build/include
ln -sfn "$PWD/src" $build/include/prowl
flags="-std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -DOMPI_SKIP_MPICXX
    -I$build/include -Iapps $(pkg-config --cflags fmt libpng hdf5-openmpi) $(mpicc --showme:compile)"
libraries="$(pkg-config --libs fmt libpng hdf5-openmpi) $(mpicc --showme:link)"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for target in "$@"; do
    case $target in
    deck) sources=$(ls src/io/deck*.cpp) ;;
    png) sources="apps/common/png.cpp src/io/atomic_file.cpp" ;;
    dataset) sources="src/io/dataset.cpp $(ls src/io/hdf5*.cpp) src/io/detail/input_file.cpp" ;;
    checkpoint)
        sources="src/io/checkpoint.cpp $(ls src/io/array_file*.cpp src/io/hdf5*.cpp src/io/detail/*.cpp) src/comm/agree.cpp" ;;
    *) echo "unknown target $target" >&2; exit 2 ;;
    esac
    # shellcheck disable=SC2086
    clang++ $flags test/fuzz/fuzz_$target.cpp $sources -o $build/fuzz_$target $libraries
    corpus=$build/corpus-$target
    mkdir -p "$corpus"
    case $target in
    deck) for deck in inputs/*.toml; do { printf '\\'; cat "$deck"; } >"$corpus/$(basename "$deck")"; done ;;
    png) cp test/train/*.png "$corpus" ;;
    esac
    PROWL_FUZZ_SEEDS=$corpus $build/fuzz_$target -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
        -max_len=20000 -artifact_prefix=$build/"$target"- -print_final_stats=1 "$corpus" 2>&1 | tee $build/"$target".log | tail -15
    grep -q "Done .* runs in" $build/"$target".log || { echo "$target: see $build/$target.log" >&2; exit 1; }
done
