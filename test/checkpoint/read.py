"""Reads the file of the test `is_read_by_h5py_and_h5dump...` without Prowl, and recomputes its checksums."""
import subprocess
import sys

import h5py
import numpy as np

path = sys.argv[1]


def checksum(elements):
    total = 0
    for index, bits in enumerate(elements.tolist()):
        z = (0x9E3779B97F4A7C15 * index + 0xD1B54A32D192ED03 * bits) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        total = (total + (z ^ (z >> 31))) % 2**64
    return total


with h5py.File(path, "r") as f:
    assert f.attrs["format"] == 2 and f.attrs["step"] == 120 and f.attrs["seed"] == 7, dict(f.attrs)
    assert f.attrs["model"] in (b"mmdit", "mmdit"), f.attrs["model"]
    assert f["deck"][()] == b"[train]\nsteps = 120\n", f["deck"][()]
    assert list(f["weights"]) == ["blocks.3.img.attn.q.weight"], list(f["weights"])
    data = f["weights/blocks.3.img.attn.q.weight"]
    assert data.dtype == np.dtype("<f4") and data.chunks is None
    assert np.array_equal(data[:], (0.5 * np.arange(35) - 3).reshape(5, 7)), data[:]

    total = checksum(data[:].view("<u4").ravel())
    assert int(data.attrs["checksum"]) == total, (data.attrs["checksum"], total)

# The seal, as prowl/io/array_file.hpp has it.
raw = open(path, "rb").read()
seal, rest = raw[:512], raw[512:]
rest_sum = checksum(np.frombuffer(rest + bytes(-len(rest) % 8), "<u8"))
lines = f"Prowl array file, format 2\nbytes {len(raw)}\nchecksum {rest_sum:016x}\nfinite".encode().ljust(495, b"\n")
assert seal == lines + f"{checksum(np.frombuffer(lines, np.uint8)):016x}\n".encode(), seal

header = subprocess.run(["h5dump", "-H", path], capture_output=True, text=True, check=True).stdout
assert 'DATASET "blocks.3.img.attn.q.weight"' in header and "H5T_IEEE_F32LE" in header, header
