#!/usr/bin/env python3
"""prowl-data on folders of files from outside: PNGs of every kind, written here byte for byte, captions in other
encodings, files that are no pictures. Expected values are computed here; what is stored is read with h5py.

pictures.py PROWL_DATA"""
import itertools
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata
import zlib

import h5py
import numpy as np

prowl_data = sys.argv[1]
failures = []
side = 9  # odd: interlacing's passes and packed rows have a remainder


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def run(*arguments):
    return subprocess.run([prowl_data, *map(str, arguments)], capture_output=True, encoding="utf-8", errors="replace")


# ---- PNG, after the specification (ISO/IEC 15948) ----
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(rows, bits):
    """Rows of samples as bytes, each behind filter type 0."""
    out = b""
    for row in rows:
        flat = [int(v) for pixel in row for v in np.atleast_1d(pixel)]
        if bits == 16:
            out += b"\0" + struct.pack(f">{len(flat)}H", *flat)
        else:
            text = "".join(f"{v:0{bits}b}" for v in flat)
            text += "0" * (-len(text) % 8)
            out += b"\0" + int(text, 2).to_bytes(len(text) // 8, "big")
    return out


def png(pixels, colour, bits, before=(), after=(), interlaced=False):
    """`pixels` (height, width) or (height, width, samples); chunks `before` and `after` the image data."""
    height, width = pixels.shape[:2]
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    if interlaced:
        parts = [pixels[y::dy, x::dx] for x, y, dx, dy in passes]
        data = b"".join(packed(part, bits) for part in parts if part.size)
    else:
        data = packed(pixels, bits)
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    return b"".join([b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), *before, chunk(b"IDAT", zlib.compress(data)), *after,
                     chunk(b"IEND", b"")])


def exif(orientation, order="<", kind=3, mark=b""):
    """A TIFF directory with another entry before the orientation."""
    entries = struct.pack(order + "HHIHH", 0x010F, 3, 1, 7, 0) + struct.pack(order + "HHIHH", 0x0112, kind, 1, orientation, 0)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    return chunk(b"eXIf", mark + head + struct.pack(order + "H", 2) + entries + struct.pack(order + "I", 0))


def expected_rgba(colour, bits, pixels, palette=None, alpha=None, transparent=None):
    """(height, width, 4), 0 to 255, not rounded."""
    full = 2**bits - 1
    out = np.full(pixels.shape[:2] + (4,), 255.0)
    if colour == 3:
        out[..., :3] = palette[pixels]
        if alpha is not None:
            out[..., 3] = np.append(alpha, [255] * 256)[pixels]
        return out
    samples = pixels.reshape(pixels.shape[:2] + (-1,))
    colours = samples.shape[2] - (colour in (4, 6))
    out[..., :3] = np.round(samples[..., :colours] * 255.0 / full)
    if colour in (4, 6):
        out[..., 3] = np.round(samples[..., -1] * 255.0 / full)
    elif transparent is not None:
        out[..., 3] = np.where((samples == transparent).all(axis=2), 0, 255)
    return out


def on_white(rgba):
    a = rgba[..., 3:] / 255
    return rgba[..., :3] * a + 255 * (1 - a)


class Folder:
    """Pictures and what should be stored for them, made and compared in one call of prowl-data."""

    def __init__(self, root):
        self.root, self.expected = pathlib.Path(root), {}

    def add(self, name, data, expected, tolerance):
        (self.root / f"{name}.png").write_bytes(data)
        (self.root / f"{name}.txt").write_text(name)
        self.expected[name] = (expected, tolerance)

    def compare(self):
        result = run("images", self.root, self.root / "out.h5", "--size", side)
        check(result.returncode == 0, f"status {result.returncode}: {result.stderr}")
        with h5py.File(self.root / "out.h5") as f:
            stored = {c.decode(): image for c, image in zip(f["captions"][:], f["images"][:])}
        check(stored.keys() == self.expected.keys(), "one sample for each picture")
        for name, (expected, tolerance) in self.expected.items():
            worst = np.abs(stored[name].transpose(1, 2, 0) - expected).max()
            check(worst <= tolerance, f"{name}: {worst} off, {tolerance} allowed")


def kinds_of_png(folder):
    # A rounding to 8 bits, one of the mean, which float computes: 0.5 + 1e-3.
    exact = 0.501
    generator = np.random.default_rng(1)
    for (colour, samples, depths) in [(0, 1, (1, 2, 4, 8, 16)), (2, 3, (8, 16)), (4, 2, (8, 16)), (6, 4, (8, 16))]:
        for bits, interlaced in itertools.product(depths, (False, True)):
            pixels = generator.integers(0, 2**bits, (side, side, samples))
            name = f"colour-{colour}-bits-{bits}" + ("-interlaced" if interlaced else "")
            folder.add(name, png(pixels, colour, bits, interlaced=interlaced),
                       on_white(expected_rgba(colour, bits, pixels)), exact)
            if colour in (0, 2):
                key = pixels[4, 4]
                before = [chunk(b"tRNS", struct.pack(f">{samples}H", *key))]
                folder.add(name + "-transparent", png(pixels, colour, bits, before, interlaced=interlaced),
                           on_white(expected_rgba(colour, bits, pixels, transparent=key)), exact)
    for bits, with_alpha in itertools.product((1, 2, 4, 8), (False, True)):
        palette, alpha = generator.integers(0, 256, (2**bits, 3)), generator.integers(0, 256, 2**bits // 2)
        pixels = generator.integers(0, 2**bits, (side, side))
        before = [chunk(b"PLTE", palette.astype(np.uint8).tobytes())]
        if with_alpha:
            before.append(chunk(b"tRNS", alpha.astype(np.uint8).tobytes()))
        folder.add(f"palette-{bits}" + ("-alpha" if with_alpha else ""), png(pixels, 3, bits, before),
                   on_white(expected_rgba(3, bits, pixels, palette, alpha if with_alpha else None)), exact)
    # The issue's own: 128 in 16 bits is 128.
    folder.add("grey-128", png(np.full((side, side), 128 * 257), 0, 16), np.full((side, side, 3), 128), 0)


def gamma(folder):
    ramp = np.arange(side * side).reshape(side, side) * 3 + 10
    colour = np.stack([ramp] * 3, axis=2)
    for bits, scale in ((8, 1), (16, 257)):
        for name, before in [("sRGB", [chunk(b"sRGB", b"\0")]), ("gAMA-45455", [chunk(b"gAMA", struct.pack(">I", 45455))]),
                             ("both", [chunk(b"gAMA", struct.pack(">I", 45455)), chunk(b"sRGB", b"\0")])]:
            folder.add(f"{name}-{bits}", png(colour * scale, 2, bits, before), colour, 0)
        # Linear light: 2.2 is sRGB's exponent within 1.9 of 255 (the curve itself: 1/2.4 and an offset), above 10.
        linear = 255 * (colour / 255) ** (1 / 2.2)
        folder.add(f"gAMA-linear-{bits}", png(colour * scale, 2, bits, [chunk(b"gAMA", struct.pack(">I", 100000))]), linear, 3)


def orientations(folder):
    # Exif's words, on arrays: the side of the picture that row 0 and column 0 of the file show.
    upright = np.random.default_rng(2).integers(0, 256, (side, side, 3))
    stored = {1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.swapaxes(0, 1),
              6: np.rot90(upright, 1), 7: upright[::-1, ::-1].swapaxes(0, 1), 8: np.rot90(upright, -1)}
    for orientation, pixels in stored.items():
        folder.add(f"turned-{orientation}", png(pixels, 2, 8, [exif(orientation)]), upright, 0)
    folder.add("turned-6-big-endian-behind", png(stored[6], 2, 8, after=[exif(6, ">")]), upright, 0)
    folder.add("turned-8-marked", png(stored[8], 2, 8, [exif(8, mark=b"Exif\0\0")]), upright, 0)
    # 9 high, 11 wide, on its side: the square is cut from the upright picture.
    wide = np.random.default_rng(3).integers(0, 256, (side, side + 2, 3))
    folder.add("turned-6-wide", png(np.rot90(wide, 1), 2, 8, [exif(6)]), wide[:, 1:-1], 0)


def refused_pictures(root):
    picture = np.zeros((side, side, 3), int)
    for what, data in {"orientation 0": png(picture, 2, 8, [exif(0)]), "orientation 9": png(picture, 2, 8, [exif(9)]),
                       "(type 4": png(picture, 2, 8, [exif(6, kind=4)]), "neither II nor MM": png(picture, 2, 8, [chunk(b"eXIf", b"no")]),
                       "ends before": png(picture, 2, 8, [chunk(b"eXIf", b"MM\0*\0\0\0\xff")])}.items():
        (root / "a.png").write_bytes(data)
        (root / "a.txt").write_text("a")
        result = run("images", root, root / "out.h5")
        check(result.returncode != 0 and f"{root}/a.png: eXIf chunk" in result.stderr and what in result.stderr,
              f"eXIf, {what}: {result.stderr}")
        check(not list(root.glob("out.h5*")), f"eXIf, {what}: nothing is left")
    # Sizes that no picture has, in the header alone.
    for width, height in ((0, 1), (1, 0), (2**31 - 1, 2**31 - 1), (60000, 60000), (2**31, 1)):
        data = bytearray(png(picture, 2, 8))
        data[16:24] = struct.pack(">II", width, height)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
        (root / "a.png").write_bytes(data)
        result = run("images", root, root / "out.h5")
        check(result.returncode > 0 and f"{root}/a.png: " in result.stderr and result.stderr.count("\n") == 1,
              f"{width} x {height}: {result.returncode} {result.stderr}")


def with_captions(root, captions):
    for i, caption in enumerate(captions):
        (root / f"{i:03}.png").write_bytes(png(np.zeros((2, 2), int), 0, 8))
        (root / f"{i:03}.txt").write_bytes(caption)
    return run("images", root, root / "out.h5", "--size", 2, "--tokens", 4)


def captions(root):
    groups = [["CAF\u00c9 noir", "Cafe\u0301 noir", "\ufeffcaf\u00e9\r\nnoir\r\n", "\ufeff caf\u00e9 noir"],
              ["\u00c5land", "A\u030aland", "\u00e5LAND", "\u212bland"], ["STRA\u00dfE", "strasse"], ["red Apple", "RED APPLE"],
              ["cafe noir"], ["aland"], ["\u65e5\u672c \ud55c\uad6d", "\u65e5\u672c \u1112\u1161\u11ab\u1100\u116e\u11a8"],
              ["x" * 70000 + " " + "long " * 300000]]
    written = [caption for group in groups for caption in group]
    result = with_captions(root, [caption.encode() for caption in written])
    check(result.returncode == 0, f"captions: {result.stderr}")
    with h5py.File(root / "out.h5") as f:
        stored = [caption.decode() for caption in f["captions"][:]]  # raises where it is not UTF-8
        text, pooled = f["text/words/features"][:], f["pooled"][:]
    wanted = [unicodedata.normalize("NFC", caption.lstrip("\ufeff")).strip() for caption in written]
    check(sorted(stored) == sorted(wanted), "captions are stored in NFC without their byte-order mark")
    seen = []
    for group in groups:
        at = [stored.index(unicodedata.normalize("NFC", caption.lstrip("\ufeff")).strip()) for caption in group]
        for other in at:
            check((text[other] == text[at[0]]).all() and (pooled[other] == pooled[at[0]]).all(), f"features of {stored[other]!r}")
        check(all((pooled[at[0]] != pooled[other]).any() for other in seen), f"{group[0][:20]!r} has features of its own")
        seen.append(at[0])


def refused_captions(root):
    for caption, what in ((b"caf\xe9 noir", "byte 0xe9 at offset 3 is not UTF-8"), (b"red\0apple", "NUL at offset 3"),
                          ("red".encode("utf-16"), "UTF-16"), ("red".encode("utf-16-be"), "NUL at offset 0"),
                          ("red".encode("utf-32"), "UTF-16 or UTF-32"), (b"\xef\xbb\xbf \r\n", "empty, a caption expected"),
                          (b"", "empty, a caption expected"), (b"\xed\xa0\x80", "byte 0xed at offset 0 is not UTF-8")):
        result = with_captions(root, [b"good", caption])
        check(result.returncode != 0 and f"{root}/001.txt: {what}" in result.stderr and result.stderr.count("\n") == 1,
              f"caption {caption}: {result.stderr}")
        check(not list(root.glob("out.h5*")), f"caption {caption}: nothing is left")


def what_is_skipped(root):
    picture = png(np.zeros((2, 2), int), 0, 8)
    for name in ("a.png", "b.PNG", "c.Png", "d.pNg"):
        (root / name).write_bytes(picture)
    for name in ("a.txt", "b.txt", "c.TXT", "d.txt", "lonely.txt", "photo.txt"):
        (root / name).write_text(name)
    for name in ("photo.jpg", "photo2.JPEG", "p.JPG", "q.jpeg", "r.webp", ".DS_Store", "notes.md", "noextension"):
        (root / name).write_bytes(b"?")
    (root / "sub").mkdir()
    (root / "folder.png").mkdir()
    (root / "loop.png").symlink_to(root / "loop.png")
    (root / "gone.png").symlink_to(root / "nothing")
    result = run("images", root, root / "new" / "deep" / "out.h5", "--size", 2)
    check(result.returncode == 0, f"skipping: {result.stderr}")
    with h5py.File(root / "new" / "deep" / "out.h5") as f:
        check(sorted(f["captions"].asstr()[:]) == ["a.txt", "b.txt", "c.TXT", "d.txt"], "extensions in any case")
    for line in ("JPEG pictures: 4 (p.JPG, photo.jpg, photo2.JPEG and 1 more)", "WebP pictures: 1 (r.webp)",
                 "subfolders: 2 (folder.png, sub)", "captions without a PNG: 2 (lonely.txt, photo.txt)",
                 "links to nothing and devices: 2 (gone.png, loop.png)", "other files: 3 (.DS_Store, noextension, notes.md)"):
        check(f"skipped {line}\n" in result.stderr, f"{line} in: {result.stderr}")
    (root / "e.png").write_bytes(picture)
    (root / "f.png").write_bytes(picture)
    result = run("images", root, root / "out.h5")
    check(result.returncode != 0 and "e.png: no caption: " in result.stderr and "1 other picture" in result.stderr,
          f"a picture without a caption: {result.stderr}")


def odd_folders(root):
    (root / "a.jpg").write_bytes(b"?")
    result = run("images", root, root / "out.h5")
    check(result.returncode != 0 and "no .png file in this folder; it has JPEG pictures: 1 (a.jpg)" in result.stderr,
          f"no PNG: {result.stderr}")
    strange = pathlib.Path(str(root).encode().decode() + "/caf\udce9")  # a byte that is not UTF-8
    strange.mkdir()
    result = with_captions(strange, [b"one"])
    check(result.returncode == 0, f"a folder's name that is not UTF-8: {result.stderr}")
    with h5py.File(strange / "out.h5") as f:
        check(f.attrs["source"] == f"{root}/caf\ufffd", "the source is UTF-8")
        check(f.attrs["training_count"] == 1, "one sample trains")
    before = (strange / "000.txt").read_bytes()
    for name in ("000.txt", "000.png"):
        result = run("images", strange, strange / name)
        check(result.returncode != 0 and "cannot be the data set to write" in result.stderr, f"output {name}: {result.stderr}")
    check((strange / "000.txt").read_bytes() == before, "an input is kept")
    (strange / "000.TXT").write_text("another")
    result = run("images", strange, strange / "out.h5")
    check(result.returncode != 0 and "one caption for a picture expected" in result.stderr, f"two captions: {result.stderr}")


def a_signal(root):
    """While it writes: one message, status 1, and nothing unfinished."""
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        program = subprocess.Popen([prowl_data, "emoji", root / "new" / "out.h5", "--size", "128"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if (root / "new").exists() and list((root / "new").iterdir()):
                break
            time.sleep(0.05)
        time.sleep(0.1)
        program.send_signal(stop)
        _, error = program.communicate(timeout=60)
        check(program.returncode == 1 and error == f"error: stopped by signal {stop.value}\n",
              f"{stop}: {program.returncode} {error}")
        check(not list(root.iterdir()), f"{stop}: nothing is left")


for test in (kinds_of_png, gamma, orientations):
    with tempfile.TemporaryDirectory(prefix="prowl-pictures-") as name:
        folder = Folder(name)
        test(folder)
        folder.compare()
for test in (refused_pictures, captions, refused_captions, what_is_skipped, odd_folders, a_signal):
    with tempfile.TemporaryDirectory(prefix="prowl-pictures-") as name:
        test(pathlib.Path(name))
if failures:
    sys.exit(f"{len(failures)} failures")
print("all as expected")
