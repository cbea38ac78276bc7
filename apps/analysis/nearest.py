#!/usr/bin/env python3
"""How often the right picture is among the nearest to a sample drawn for its caption.

Reads the samples that `prowl-sample CHECKPOINT --data DATA --count N --arrays SAMPLES` wrote, and compares each with all
training pictures of the data set by Euclidean distance of the pixels.
"""
import argparse
import sys

from interpreter import need

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", help="HDF5 file of prowl-sample --arrays")
    parser.add_argument("data", help="data set of prowl-data")
    parser.add_argument("--nearest", type=int, default=5, help="how many pictures count as near (default 5)")
    parser.add_argument("--list", action="store_true", help="print each caption and the rank of its picture")
    arguments = parser.parse_args()

    try:
        with h5py.File(arguments.samples) as file:
            samples = file["samples"][:].clip(-1, 1)
            indices = file["indices"][:]
        with h5py.File(arguments.data) as file:
            count = int(file.attrs["training_count"])
            pictures = file["images"][:count].astype(np.float32) / 127.5 - 1
            captions = file["captions"].asstr()[:count]
    except (OSError, KeyError) as error:
        sys.exit(f"nearest.py: {error}")

    pictures = pictures.reshape(count, -1)
    found = 0
    for sample, index in zip(samples.reshape(len(samples), -1), indices):
        distance = np.square(pictures - sample).sum(axis=1)
        rank = int((distance < distance[index]).sum())
        found += rank < arguments.nearest
        if arguments.list:
            print(f"{rank + 1:5}  {captions[index]}")
    print(f"{found} of {len(samples)} samples have their own picture among the {arguments.nearest} nearest of {count}")


if __name__ == "__main__":
    main()
