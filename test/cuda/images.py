#!/usr/bin/env python3
"""images.py PROGRAM: the GPUs for which a program has machine code, a line each, like `cuobjdump --list-elf`.

nvcc embeds fat binaries: a header (magic number, version, sizes), then images, each with a header of its own that has the
kind (1: PTX, 2: machine code), the sizes, and the architecture.
"""
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)

data = open(sys.argv[1], "rb").read()
found = set()
at = data.find(MAGIC)
while at >= 0:
    _, _, header, size = struct.unpack_from("<IHHQ", data, at)
    image, end = at + header, at + header + size
    while header > 0 and image < end <= len(data):
        kind, _, header, size = struct.unpack_from("<HHIQ", data, image)
        arch, = struct.unpack_from("<I", data, image + 28)
        if kind == 2:
            found.add(f"sm_{arch}")
        image += header + size
    at = data.find(MAGIC, at + 1)
print(*sorted(found), sep="\n")
