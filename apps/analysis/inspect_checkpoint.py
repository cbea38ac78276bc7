#!/usr/bin/env python3
"""Lists what a checkpoint (or any HDF5 file of Prowl) holds: attributes, datasets, shapes, norms; and verifies its seal.

    inspect_checkpoint.py runs/emoji/checkpoint-00001400.h5 [--match TEXT] [--checksums]

Exit status: 0, 1 where the file is damaged, 2 where it cannot be read at all.
"""
import argparse
import math
import sys

from interpreter import need

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

BLOCK = 1 << 22  # elements read at a time, so that memory does not grow with the file


def names_in(file):
    """Of all groups and datasets, in order. In native order first: on damaged groups HDF5 1.10 crashes in that of names."""
    names = []
    h5py.h5o.visit(file.id, lambda name: names.append(name.decode()), idx_type=h5py.h5.INDEX_NAME,
                   order=h5py.h5.ITER_NATIVE)
    return sorted(name for name in names if name != ".")


def fail(message, status=2):
    print(f"inspect_checkpoint.py: {message}", file=sys.stderr)
    sys.exit(status)


def checksum(elements, first=0):
    """Of src/io/array_file.hpp, for the elements from index `first` on; sums of parts add up modulo 2^64."""
    bits = elements.view(f"u{elements.dtype.itemsize}").astype(np.uint64)
    index = np.arange(first, first + len(bits), dtype=np.uint64)
    z = np.uint64(0x9E3779B97F4A7C15) * index + np.uint64(0xD1B54A32D192ED03) * bits
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(np.sum(z ^ (z >> np.uint64(31)), dtype=np.uint64))


def seal_fault(path):
    """What is wrong with the seal of src/io/array_file.hpp, which covers every byte of the file; None: nothing; "" where the
    file has none, as it is no array file of Prowl."""
    with open(path, "rb") as file:
        seal = file.read(512)
        if not seal.startswith(b"Prowl array file, format "):
            return ""
        if len(seal) < 512 or b"%016x\n" % checksum(np.frombuffer(seal[:495], np.uint8)) != seal[495:]:
            return "its seal"
        words = dict(line.split(b" ", 1) for line in seal[:495].split(b"\n") if b" " in line)
        total, size = 0, 512
        while block := file.read(8 * BLOCK):
            padded = block + bytes(-len(block) % 8)
            total += checksum(np.frombuffer(padded, "<u8"), (size - 512) // 8)
            size += len(block)
    if size != int(words[b"bytes"]):
        return f"it has {size} bytes, not {int(words[b'bytes'])}"
    return None if b"%016x" % (total % 2**64) == words[b"checksum"] else "the checksum of its bytes"


def measure(dataset):
    """Frobenius norm in float64, and whether all is finite; None for what is not a real number."""
    if dataset.dtype.kind not in "fiu":
        return None
    if dataset.shape is None or dataset.size == 0:
        return 0.0, True
    if dataset.ndim == 0:
        return abs(float(dataset[()])), math.isfinite(dataset[()])
    rows = max(1, BLOCK * len(dataset) // dataset.size)
    total, finite = 0.0, True
    for begin in range(0, len(dataset), rows):
        block = np.asarray(dataset[begin:begin + rows], dtype=np.float64)
        total += float(np.sum(block * block))
        finite = finite and bool(np.isfinite(block).all())
    return math.sqrt(total), finite


def text(value):
    """An attribute on one line."""
    shown = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    shown = " ".join(shown.split())
    return shown if len(shown) <= 90 else shown[:87] + "..."


class Parser(argparse.ArgumentParser):
    """One line for a wrong argument."""

    def error(self, message):
        fail(f"{message}; see --help")


def main():
    parser = Parser(description="Lists what a checkpoint holds.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--match", default="", help="only names with this text")
    parser.add_argument("--checksums", action="store_true", help="show the checksums too")
    arguments = parser.parse_args()
    try:
        fault = seal_fault(arguments.file)
        if fault:
            fail(f"{arguments.file}: damaged: {fault}", 1)
        with h5py.File(arguments.file, "r") as file:
            show(file, arguments)
            if fault == "" and file.attrs.get("format") == 2:
                fail(f"{arguments.file}: damaged: its seal", 1)
        print("not verified: the file has no seal" if fault == "" else "verified: every byte of the file")
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:  # what h5py raises for files that are none, or damaged
        fail(f"{arguments.file}: {' '.join(str(error).split())}")


def show(file, arguments):
    rows, elements, attributes = [], 0, [("/", file.attrs)]

    def visit(name, thing):
        nonlocal elements
        if arguments.match not in name:
            return
        if len(thing.attrs):
            attributes.append((name, thing.attrs))
        if not isinstance(thing, h5py.Dataset):
            return
        elements += thing.size or 0
        shape = " x ".join(map(str, thing.shape)) if thing.shape else "scalar"
        measured = measure(thing)
        note = "" if measured is None else f"{measured[0]:.6g}" + ("" if measured[1] else "  NOT FINITE")
        rows.append((name, shape, str(thing.dtype), note))

    for name in names_in(file):
        visit(name, file[name])
    for name, attrs in attributes:
        for key, value in attrs.items():
            if key == "checksum" and not arguments.checksums:
                continue
            print(f"{name} @{key} = {text(value)}")
    header = ("dataset", "shape", "type", "norm")
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(3)]
    for row in [header, *rows]:
        print("  ".join([*(f"{row[i]:<{widths[i]}}" for i in range(3)), row[3]]).rstrip())
    print(f"{len(rows)} datasets, {elements:,} elements")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # piped into head
        sys.stderr.close()
