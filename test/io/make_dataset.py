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

# Halves: zero, one, the largest, the smallest normal and subnormal, the largest again; then a ramp.
latents = np.linspace(-2, 2, n * 2 * 3 * 4).astype(np.float16).reshape(n, 2, 3, 4)
latents.ravel()[:7] = [0, 1, -65504, 2**-14, 2**-24, -(2**-24), 65504]
if flaw == "latent NaN":
    latents[3, 1, 2, 0] = np.nan
if flaw == "integers":
    latents = np.zeros(latents.shape, np.int32)
plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
space = h5py.h5s.create_simple(latents.shape)
if flaw == "external":
    plan.set_external(path.encode() + b".external", 0, 2 * latents.size)
elif flaw == "virtual":
    plan.set_virtual(space, b"elsewhere.h5", b"latents", space)
elif flaw == "half of the chunks":
    plan.set_chunk((1, 2, 3, 4))
if flaw in ("external", "virtual", "half of the chunks", "never written"):
    h5py.h5d.create(f.id, b"latents", h5py.h5t.IEEE_F16LE, space, plan)
    if flaw == "half of the chunks":
        f["latents"][:2] = latents[:2]
elif flaw == "soft link":
    f["others"] = latents
    f["latents"] = h5py.SoftLink("/others")
elif flaw == "external link":
    f["latents"] = h5py.ExternalLink("elsewhere.h5", "/latents")
elif flaw == "filter":
    f.create_dataset("latents", data=latents, compression="lzf")
elif flaw == "huge":
    f.create_dataset("latents", (n, 1, 2**20, 2**30), np.float16, chunks=(1, 1, 64, 64))
elif flaw == "too many":
    f.create_dataset("latents", (n, 2**30, 2**30, 2**30), np.float16, chunks=(1, 1, 64, 64))
elif flaw != "no latents":
    f.create_dataset("latents", data=latents, chunks=(1, 2, 3, 4), fletcher32=True)
    chunk = f["latents"].id.get_chunk_info(2).byte_offset
captions = ["red apple", "piñata", "", "keycap: #", "last"]
if flaw == "captions":
    captions = captions[:-1]
f.create_dataset("captions", data=captions, dtype=h5py.string_dtype())
t5 = np.arange(n * 3 * 2, dtype=np.float32).reshape(n, 3, 2)
if flaw == "text shape":
    t5 = t5.reshape(n, 6)
if flaw == "text infinity":
    t5[4, 2, 1] = -np.inf
f["text/t5/features"] = t5
f["text/clip/features"] = np.arange(n * 2 * 4, dtype=np.float16).reshape(n, 2, 4)
if flaw != "no pooled":
    pooled = -np.arange(n * 4, dtype=np.float64 if flaw == "doubles" else np.float32).reshape(n, 4)
    if flaw == "pooled NaN":
        pooled[0, 3] = np.nan
    f["pooled"] = pooled
f.close()
if flaw == "damaged":
    with open(path, "r+b") as raw:
        raw.seek(chunk)
        raw.write(b"damaged")
