#!/usr/bin/env python3
"""Lists what a checkpoint (or any HDF5 file of Prowl) holds: attributes, datasets, shapes, norms.

    inspect_checkpoint.py runs/emoji/checkpoint.h5 [--match TEXT]
"""
import argparse
import math
import sys

from interpreter import need

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

BLOCK = 1 << 22  # elements read at a time, so that memory does not grow with the file


def norm(dataset):
    """Frobenius norm in float64 and whether all is finite; None for what is not a real number."""
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
        sys.exit(f"inspect_checkpoint.py: {message}; see --help")


def main():
    parser = Parser(description="Lists what a checkpoint holds.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--match", default="", help="only names with this text")
    arguments = parser.parse_args()
    try:
        file = h5py.File(arguments.file, "r")
    except OSError as error:
        sys.exit(f"inspect_checkpoint.py: {arguments.file}: {error}")

    with file:
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
            measured = norm(thing)
            note = "" if measured is None else f"{measured[0]:.6g}" + ("" if measured[1] else "  NOT FINITE")
            rows.append((name, shape, str(thing.dtype), note))

        file.visititems(visit)
        for name, attrs in attributes:
            for key, value in attrs.items():
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
