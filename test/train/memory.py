#!/usr/bin/env python3
"""A run's peak resident size is what --dry-run says it will be."""
import os
import re
import subprocess
import unittest

import launch


class Memory(launch.Case):
    def assert_predicted(self, run, ranks, **options):
        options = {"run.steps": 2, "data.path": self.large, **{k.replace("__", "."): v for k, v in options.items()}}
        plan = self.mpi("PROWL_TRAIN", ranks, *self.arguments(run, options), "--dry-run")
        predicted = float(re.search(r"in all ([0-9.]+)", plan.out).group(1)) * 2**20
        self.train(run, ranks, **options)
        peak = max(row["peak_bytes"] for row in self.metrics(run) if "peak_bytes" in row)
        print(f"{run:12} {ranks} ranks: {peak / 2**20:6.1f} MiB, {peak / predicted:5.3f} of the prediction")
        self.assertLess(abs(peak - predicted), 0.15 * predicted, plan.out.splitlines()[-1])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.shared / "large"
        folder.mkdir()
        cls.large = launch.make_dataset(folder, size=32)

    MODEL = dict(model__hidden=256, model__layers=4, model__patch=4, train__batch=16)

    def test_training(self):
        for ranks in (1, 2, 4):
            self.assert_predicted(f"plain{ranks}", ranks, **self.MODEL)

    def test_with_validation_checkpoints_and_samples(self):
        for ranks in (1, 2, 4):
            self.assert_predicted(f"all{ranks}", ranks, **self.MODEL, train__validate_every=1, train__checkpoint_every=1,
                                  sample__prompts=["red disc", "blue disc"], sample__every=1)

    def test_the_launchers_memory_does_not_count(self):
        ballast = bytearray(os.urandom(1)) * (512 << 20)  # resident, and this process forks
        command = [os.environ["PROWL_TRAIN"], *map(str, self.arguments("alone", {"run.steps": 1}))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=lambda: None)
        self.assertLess(self.metrics("alone")[0]["peak_bytes"], len(ballast))

    def test_others(self):
        # Activations do not matter here; then, hardly anything but the process does.
        self.assert_predicted("wide", 2, model__hidden=384, model__layers=2, train__batch=4)
        self.assert_predicted("small", 2)
        self.assert_predicted("replicas", 2, **self.MODEL, parallel__replicate=2)
        for residency in ("z3", "z2"):
            for replicas in (1, 2):
                self.assert_predicted(f"owned {residency} {replicas}", 4, **self.MODEL, parallel__placement="dedicated",
                                      parallel__residency=residency, parallel__replicate=replicas)


if __name__ == "__main__":
    unittest.main()
