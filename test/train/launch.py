"""What the tests of prowl-train share: a small data set, running the programs over ranks, reading what they wrote.

The environment gives PROWL_TRAIN, PROWL_SAMPLE, PROWL_DATA, and PROWL_MPIEXEC, the command before the number of ranks.
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zlib
from pathlib import Path

import h5py
import numpy as np

FINISHED, FAILED, REFUSED, STOPPED = 0, 1, 2, 75  # exit statuses
TIMEOUT = 120  # of a run; what hangs is killed then, and its test fails


def write_png(path, pixels):
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
                     chunk(b"IEND", b""))


def make_dataset(folder, size=16, count=60):
    """Discs of several colours and places, through `prowl-data images`."""
    random = np.random.default_rng(1)
    pictures = folder / "pictures"
    pictures.mkdir()
    y, x = np.mgrid[:size, :size]
    for i in range(count):
        colour = ["red", "green", "blue"][i % 3]
        picture = np.full((size, size, 3), 255)
        cx, cy, radius = random.uniform(size / 4, 3 * size / 4, 2).tolist() + [random.uniform(size / 6, size / 3)]
        picture[(x - cx)**2 + (y - cy)**2 < radius**2] = np.eye(3)[i % 3] * 200 + 20
        write_png(pictures / f"{i:03}.png", picture)
        (pictures / f"{i:03}.txt").write_text(f"{colour} disc {i}")
    path = folder / "discs.h5"
    subprocess.run([os.environ["PROWL_DATA"], "images", pictures, path, "--size", str(size), "--tokens", "4",
                    "--width", "32"], check=True, stdout=subprocess.DEVNULL)
    return path


def make_latents(path, value=None, count=24, size=8, channels=4, training=20, encoding="CLIP of a test"):
    """Latents with features of two encoders; `value` replaces one latent of every training sample."""
    random = np.random.default_rng(2)
    latents = random.standard_normal((count, channels, size, size)).astype(np.float32)
    if value is not None:
        latents[:training, 1, 2, 3] = value
    with h5py.File(path, "w") as f:
        f.attrs.update({"format": "prowl data set", "version": 1, "training_count": training,
                        "text_encoding": encoding})
        f["latents"] = latents
        f.create_dataset("captions", data=[f"sample {i}" for i in range(count)], dtype=h5py.string_dtype())
        f["text/a/features"] = random.standard_normal((count, 3, 24)).astype(np.float32)
        f["text/b/features"] = random.standard_normal((count, 2, 16)).astype(np.float16)
        f["pooled"] = random.standard_normal((count, 20)).astype(np.float32)
    return path


DECK = """
[model]
hidden = 64
layers = 2
patch = 8
[train]
batch = 10
validate_every = 0
validation_batches = 1
checkpoint_every = 0
[optimizer]
warmup = 2
[sample]
steps = 2
"""


class Result:
    def __init__(self, code, out, error):
        self.code, self.out, self.error = code, out, error

    def messages(self):
        """Errors that the program reported; mpiexec adds its own words."""
        return [line for line in self.error.splitlines() if line.startswith("error")]


class Case(unittest.TestCase):
    """A test with a folder of its own, the data set in it, and a deck of a tiny model."""

    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="prowl-train-"))
        cls.data = make_dataset(cls.shared)
        cls.deck = cls.shared / "deck.toml"
        cls.deck.write_text(DECK)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=self.shared))

    def command(self, program, ranks, *arguments):
        return os.environ["PROWL_MPIEXEC"].split() + [str(ranks), os.environ[program], *map(str, arguments)]

    def mpi(self, program, ranks, *arguments):
        """Runs to the end. A test that hangs fails."""
        process = start(self.command(program, ranks, *arguments))
        try:
            out, error = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            end(process)
            self.fail(f"hangs: {arguments} at {ranks} ranks")
        return Result(process.returncode, out, error)

    def arguments(self, run, options):
        options = {key.replace("__", "."): v for key, v in options.items()}
        options = {"data.path": self.data, "run.folder": self.folder / run, **options}
        return [self.deck] + [f"{key}={value(v)}" for key, v in options.items()]

    def train(self, run, ranks, code=FINISHED, **options):
        """A run that must succeed, in its folder of that name; `a__b=c` sets a.b."""
        result = self.mpi("PROWL_TRAIN", ranks, *self.arguments(run, options))
        self.assertEqual(result.code, code, result.out + result.error)
        return result

    def refused(self, run, expected, ranks=2, code=REFUSED, **options):
        """A run that must end with one message in which all of `expected` are."""
        result = self.mpi("PROWL_TRAIN", ranks, *self.arguments(run, options))
        self.assertEqual(result.code, code, result.out + result.error)
        self.assertEqual(len(result.messages()), 1, result.error)
        for text in expected:
            self.assertIn(str(text), result.messages()[0])
        return result

    def losses(self, run):
        return [row["loss"] for row in self.metrics(run) if "loss" in row]

    def metrics(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def checkpoints(self, run):
        return sorted((self.folder / run).glob("checkpoint-*.h5"))

    def assert_same_arrays(self, first, second):
        a, b = arrays(first), arrays(second)
        self.assertEqual(a.keys(), b.keys())
        for name in a:
            self.assertEqual(a[name].tobytes(), b[name].tobytes(), f"{name} of {first} and {second}")


def value(v):
    """As a deck has it."""
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, list):
        return "[" + ", ".join(value(x) for x in v) + "]"
    return f'"{v}"' if isinstance(v, (str, Path)) else str(v)


def arrays(path):
    """Every array of a file of prowl-train by name, and where the run stands."""
    found = {}
    with h5py.File(path, "r") as f:
        f.visititems(lambda name, item: found.__setitem__(name, item[()])
                     if isinstance(item, h5py.Dataset) and item.dtype.kind == "f" else None)
        for name in ("step", "skipped", "sample", "seed"):
            if name in f.attrs:
                found["attribute " + name] = np.asarray(f.attrs[name])
    return found


def start(command, **options):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True, **options)


def end(process):
    """Whatever is left of an mpiexec and its ranks."""
    for pid in descendants(process.pid) + [process.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate()


def descendants(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found += [int(child)] + descendants(int(child))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def rank_processes(mpiexec):
    """The process id of each rank that runs now, by rank."""
    ranks = {}
    for pid in descendants(mpiexec.pid):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            name = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        for entry in environment:
            key, _, number = entry.partition(b"=")
            if key in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK") and Path(name).name.startswith("prowl-"):
                ranks[int(number)] = pid
    return ranks


def wait_until(condition, process, seconds=TIMEOUT):
    """Whether the condition came true before the process ended."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and process.poll() is None:
        if condition():
            return True
        time.sleep(0.005)
    return False
