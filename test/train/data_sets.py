#!/usr/bin/env python3
"""What is said of a data set before it is trained on, and prompts beside captions."""
import os
import re
import subprocess
import unittest

import h5py
import numpy as np

import launch


def info(path):
    return subprocess.run([os.environ["PROWL_DATA"], "info", path], check=True, capture_output=True, text=True).stdout


def replace(path, name, values):
    with h5py.File(path, "r+") as f:
        for old in ("latents", "images"):
            if old in f:
                del f[old]
        f[name] = values


class DataSets(launch.Case):
    def latents(self, change=lambda x: x, **options):
        """A data set of latents, standard normal but for `change`."""
        path = launch.make_latents(self.folder / "latents.h5", **options)
        with h5py.File(path) as f:
            latents = change(f["latents"][:])
        replace(path, "latents", latents)
        return path, latents

    def said(self, path, mean, deviation, samples):
        """Both programs say mean and deviation, to four digits; returns what they say."""
        out = info(path), self.train("run", 1, data__path=path, run__steps=1, run__resume="never").out
        for text in out:
            found = re.search(r"mean ([-\d.e]+)(?:,| and) deviation ([-\d.e]+) \((\d+) ", text)
            self.assertTrue(found, text)
            self.assertAlmostEqual(float(found[1]), mean, delta=5e-4 * abs(mean) + 1e-6)
            self.assertAlmostEqual(float(found[2]), deviation, delta=5e-4 * deviation)
            self.assertEqual(int(found[3]), samples)
        return out

    def test_standard_latents(self):
        path, latents = self.latents()
        x = latents[:20].astype(np.float64)
        for text in self.said(path, x.mean(), x.std(), 20):
            self.assertNotIn("warning", text)

    def test_latents_without_shift_and_scale(self):
        for shift, scale in ((2, 5.5), (0, 5.5), (0, 2.77), (0.8, 1), (-0.8, 1), (0, 0.18)):
            with self.subTest(shift=shift, scale=scale):
                path, latents = self.latents(lambda x: x * scale + shift)
                x = latents[:20].astype(np.float64)
                text = info(path)
                self.assertIn(f"warning: latents of mean {x.mean():.4g} and deviation {x.std():.4g}", text)
        path, latents = self.latents(lambda x: x * 5.5 + 2)
        for text in self.said(path, latents[:20].mean(dtype=np.float64), latents[:20].std(dtype=np.float64), 20):
            self.assertIn("0.3611", text)

    def test_evenly_spread(self):
        """Of 1,000 samples 256 are looked at, from all parts; those that validate are not."""
        ramp = np.linspace(-1, 1, 1000, dtype=np.float32)
        path, _ = self.latents(lambda x: np.concatenate([np.broadcast_to(ramp[:, None, None, None], (1000, 4, 8, 8)),
                                                         np.full((24, 4, 8, 8), 99, np.float32)]), count=1024, training=1000)
        x = ramp[[i * 1000 // 256 for i in range(256)]].astype(np.float64)
        self.said(path, x.mean(), x.std(), 256)

    def test_channels_last(self):
        path, _ = self.latents()
        for name, values in (("images", np.random.default_rng(1).integers(0, 256, (24, 32, 32, 3), np.uint8)),
                             ("latents", np.random.default_rng(1).standard_normal((24, 64, 64, 16)).astype(np.float32)),
                             ("images", np.random.default_rng(1).integers(0, 256, (24, 48, 64, 4), np.uint8))):
            replace(path, name, values)
            self.assertIn("look like (height, width, channels)", info(path))
            result = self.mpi("PROWL_TRAIN", 1, *self.arguments("run", {"data.path": path, "run.steps": 1}))
            self.assertNotEqual(result.code, 0)
            self.assertIn("look like (height, width, channels)", result.error)
        replace(path, "images", np.random.default_rng(1).integers(0, 256, (24, 32, 8, 8), np.uint8))
        self.assertIn("have 32 channels", info(path))
        for shape in ((24, 16, 8, 8), (24, 4, 64, 64), (24, 32, 16, 16), (24, 1, 8, 8)):
            replace(path, "latents", np.random.default_rng(1).standard_normal(shape).astype(np.float32))
            self.assertNotIn("warning", info(path))

    def test_one_value(self):
        path, _ = self.latents(lambda x: x * 0)
        self.assertIn("warning: all samples looked at are 0 everywhere", info(path))

    def test_pictures_are_not_warned_of(self):
        self.assertNotIn("warning", info(self.data))
        self.assertNotIn("warning", self.train("run", 1, run__steps=1).out)

    def test_prompts_are_read_as_captions_are(self):
        self.train("run", 1, run__steps=8)
        checkpoint = self.folder / "run" / "checkpoint-00000008.h5"
        drawn = []
        for i, prompt in enumerate(("CAF\u00c9 red", "cafe\u0301 Red", "\ufeffcaf\u00e9 red", "cafe red")):
            arrays, picture = self.folder / str(i) / "new" / "a.h5", self.folder / str(i) / "other" / "a.png"
            result = self.mpi("PROWL_SAMPLE", 1, checkpoint, "--prompt", prompt, "--steps", 2, "--guidance", 5, "--arrays",
                              arrays, "--output", picture)
            self.assertEqual(result.code, 0, result.error)
            self.assertTrue(picture.exists())
            with h5py.File(arrays) as f:
                drawn.append(f["samples"][:])
        np.testing.assert_array_equal(drawn[0], drawn[1])
        np.testing.assert_array_equal(drawn[0], drawn[2])
        self.assertTrue((drawn[0] != drawn[3]).any())

    def test_a_prompt_that_is_not_utf8(self):
        self.train("run", 1, run__steps=1)
        checkpoint = self.folder / "run" / "checkpoint-00000001.h5"
        result = self.mpi("PROWL_SAMPLE", 2, checkpoint, "--prompt", "red", "--prompt", "caf\udce9", "--output",
                          self.folder / "a.png")
        self.assertNotEqual(result.code, 0)
        self.assertEqual(len(result.messages()), 1, result.error)
        self.assertIn("prompt 2: byte 0xe9 at offset 3 is not UTF-8", result.error)


if __name__ == "__main__":
    unittest.main()
