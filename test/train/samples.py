#!/usr/bin/env python3
"""prowl-sample draws the same pictures at any number of ranks."""
import unittest

import launch
import numpy as np


class Samples(launch.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls("train")
        case.folder = cls.shared
        # Gates and the last layer start at zero: a few steps, so that there is something to draw.
        case.train("model", 2, run__steps=6, optimizer__adamw_rate=0.02)
        cls.checkpoint = case.checkpoints("model")[-1]

    def sample(self, ranks, *arguments, code=0):
        result = self.mpi("PROWL_SAMPLE", ranks, *arguments)
        self.assertEqual(result.code, code, result.out + result.error)
        return result

    def draw(self, ranks, name, *arguments):
        self.sample(ranks, self.checkpoint, "--steps", 4, "--output", self.folder / f"{name}.png", "--arrays",
                    self.folder / f"{name}.h5", *arguments)
        return launch.arrays(self.folder / f"{name}.h5")["samples"]

    def assert_same_pictures(self, *arguments, files):
        one, two = (self.draw(ranks, f"of{ranks}", *arguments) for ranks in (1, 2))
        self.assertGreater(np.abs(one).max(), 0.1)
        # Ranks draw in batches of other sizes: a network's rounding, n eps for n = 64 terms, times the guidance, 5,
        # in each of 4 steps.
        self.assertLess(np.abs(one - two).max(), 4 * 5 * 64 * 2.0**-24 * np.abs(one).max())
        for number in files:
            a, b = ((self.folder / f"of{ranks}{number}.png").read_bytes() for ranks in (1, 2))
            self.assertTrue(a.startswith(b"\x89PNG"))
        return one

    def test_prompts(self):
        pictures = self.assert_same_pictures("--prompt", "red disc", "--prompt", "blue disc", "--prompt", "green disc",
                                             files=["-0", "-1", "-2"])
        self.assertEqual(pictures.shape, (3, 3, 16, 16))
        self.assertGreater(np.abs(pictures[0] - pictures[1]).max(), 0.01)

    def test_grid_of_a_data_set(self):
        pictures = self.assert_same_pictures("--grid", "--data", self.data, "--count", 5, files=[""])
        self.assertEqual(pictures.shape, (5, 3, 16, 16))
        with launch.h5py.File(self.folder / "of1.h5", "r") as f:
            self.assertEqual(len(set(f["indices"][()].tolist())), 5)

    def test_captions_of_the_data_set_are_the_prompts(self):
        with launch.h5py.File(self.data, "r") as f:
            caption = f["captions"][7].decode()
        prompt = self.draw(1, "prompt", "--prompt", caption)
        stored = self.draw(1, "stored", "--data", self.data, "--index", 7)
        # Stored features are float16 at least.
        self.assertLess(np.abs(prompt - stored).max(), 0.01 * np.abs(prompt).max())

    def test_a_seed_is_a_picture(self):
        one, same, other = (self.draw(1, f"seed{i}", "--prompt", "red disc", "--seed", seed)
                            for i, seed in enumerate((1, 1, 2)))
        self.assertEqual(one.tobytes(), same.tobytes())
        self.assertGreater(np.abs(one - other).max(), 0.1)

    def test_errors_help(self):
        latents = launch.make_latents(self.folder / "latents.h5")
        for arguments, expected in (([self.folder / "gone.h5", "--prompt", "a"], "gone.h5"),
                                    ([self.data, "--prompt", "a"], str(self.data)),
                                    ([self.checkpoint], "--prompt"),
                                    ([self.checkpoint, "--data", self.data], "--count"),
                                    ([self.checkpoint, "--data", self.data, "--count", 0], "--count"),
                                    ([self.checkpoint, "--data", self.data, "--index", 100000], "--index 100000"),
                                    ([self.checkpoint, "--data", latents, "--index", 0], str(latents)),
                                    ([self.checkpoint, "--prompt", "a", "--output", "/dev/null/a.png"], "a.png"),
                                    ([self.checkpoint, "--prompt", "a", "--step", "3", "4"], "--help")):
            result = self.sample(2, *arguments, "--steps", 1, code=launch.REFUSED)
            self.assertIn(expected, result.error)
            self.assertEqual(len(result.messages()), 1, result.error)

    def test_features_of_other_sizes_are_refused(self):
        data = self.folder / "wide.h5"
        with launch.h5py.File(self.data, "r") as source, launch.h5py.File(data, "w") as copy:
            copy.attrs.update(source.attrs)
            for name in source:
                source.copy(name, copy)
            name = list(copy["text"])[0]
            features = copy[f"text/{name}/features"][()]
            del copy[f"text/{name}/features"]
            copy[f"text/{name}/features"] = np.concatenate([features, features], 1)
        result = self.sample(1, self.checkpoint, "--data", data, "--index", 0, code=launch.REFUSED)
        self.assertIn("wide.h5", result.error)
        self.assertIn("do not fit", result.error)


if __name__ == "__main__":
    unittest.main()
