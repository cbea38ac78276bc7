#!/usr/bin/env python3
"""A data set of latents with features of two encoders, made without Prowl. Usage: make_dataset.py FILE [FLAW]"""
import sys

import h5py
import numpy as np

path, flaw = sys.argv[1], (sys.argv[2:] + [""])[0]
n = 5
f = h5py.File(path, "w")
f.attrs["format"] = "prowl data set" if flaw != "format" else "pictures"
f.attrs["version"] = 1 if flaw != "version" else 2
f.attrs["training_count"] = 4 if flaw != "training_count" else 6
f.attrs["text_encoding"] = "CLIP-L and T5"

# Halves: zero, one, the largest, the smallest normal and subnormal, infinity; then a ramp.
latents = np.linspace(-2, 2, n * 2 * 3 * 4).astype(np.float16).reshape(n, 2, 3, 4)
latents.ravel()[:7] = [0, 1, -65504, 2**-14, 2**-24, -(2**-24), np.inf]
if flaw == "integers":
    latents = np.zeros(latents.shape, np.int32)
if flaw != "no latents":
    f.create_dataset("latents", data=latents, chunks=(1, 2, 3, 4), fletcher32=True)
    chunk = f["latents"].id.get_chunk_info(2).byte_offset
captions = ["red apple", "piñata", "", "keycap: #", "last"]
if flaw == "captions":
    captions = captions[:-1]
f.create_dataset("captions", data=captions, dtype=h5py.string_dtype())
t5 = np.arange(n * 3 * 2, dtype=np.float32).reshape(n, 3, 2)
if flaw == "text shape":
    t5 = t5.reshape(n, 6)
f["text/t5/features"] = t5
f["text/clip/features"] = np.arange(n * 2 * 4, dtype=np.float16).reshape(n, 2, 4)
if flaw != "no pooled":
    f["pooled"] = -np.arange(n * 4, dtype=np.float64 if flaw == "doubles" else np.float32).reshape(n, 4)
f.close()
if flaw == "damaged":
    with open(path, "r+b") as raw:
        raw.seek(chunk)
        raw.write(b"damaged")
