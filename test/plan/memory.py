#!/usr/bin/env python3
"""prowl-plan's memory, as a user asks for it, against the peaks of real runs: never below, and within 5% from 256 MiB up.

The machine's description is what prowl-bench calibrate writes here. That of the cluster that comes with Prowl is of devices,
where the program takes more and messages and checkpoints nothing: it is never below a host's peak either.
"""
import json
import os
import subprocess
import unittest

import h5py
import launch
import numpy as np

MIB = 2**20


def make_latents(path, size, count, tokens=4, width=32):
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        f.attrs.update({"format": "prowl data set", "version": 1, "training_count": count - 8, "text_encoding": "a test's"})
        f["latents"] = random.standard_normal((count, 4, size, size)).astype(np.float32)
        f.create_dataset("captions", data=["a caption"] * count, dtype=h5py.string_dtype())
        f["text/a/features"] = random.standard_normal((count, tokens, width)).astype(np.float32)
        f["pooled"] = random.standard_normal((count, width)).astype(np.float32)
    return path


class Memory(launch.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hardware = cls.shared / "this.toml"
        subprocess.run([*os.environ["PROWL_MPIEXEC"].split(), "2", os.environ["PROWL_BENCH"], "calibrate", cls.hardware, "--quick",
                        "--capacity-gib", "100"], check=True, stdout=subprocess.DEVNULL, timeout=launch.TIMEOUT)
        cls.pictures = make_latents(cls.shared / "pictures.h5", 32, 60)
        cls.points = make_latents(cls.shared / "points.h5", 2, 8300, tokens=2)

    def plan(self, run, ranks, options, *hardware):
        path = self.folder / "plan.json"
        done = subprocess.run([os.environ["PROWL_PLAN"], *map(str, self.arguments(run, options)), "--ranks", str(ranks), "--json", path,
                               *hardware], check=True, stdout=subprocess.DEVNULL, timeout=launch.TIMEOUT)
        self.assertEqual(done.returncode, 0)
        return json.loads(path.read_text())["ways"][0]["memory_bytes"]

    def assert_planned(self, run, ranks, **options):
        run = f"{run} {ranks}"  # a folder of its own
        options = {"run.steps": 2, "train.checkpoint_every": 1, **{k.replace("__", "."): v for k, v in options.items()}}
        planned = self.plan(run, ranks, options, "--hardware", self.hardware)
        cluster = self.plan(run, ranks, options)
        self.train(run, ranks, **options)
        peak = max(row["peak_bytes"] for row in self.metrics(run) if "peak_bytes" in row)
        parts = {k: round(v / MIB, 1) for k, v in planned.items() if v > MIB / 10}
        text = f"{run:22} ranks: peak {peak / MIB:6.1f} MiB, {planned['total'] / peak - 1:+.1%} planned"
        print(text)
        self.assertGreaterEqual(planned["total"], peak, f"{text} {parts}")
        self.assertGreaterEqual(cluster["total"], peak, text)
        if peak > 256 * MIB:
            self.assertLess(planned["total"], 1.05 * peak, f"{text} {parts}")
        for part in planned.keys() - {"process", "units", "transport", "checkpoint", "loader", "total", "capacity"}:
            self.assertEqual(planned[part], cluster[part], part)

    def test_much_of_everything(self):
        for ranks in (1, 2):
            for placement in ("sharded", "dedicated"):
                self.assert_planned(f"model {placement}", ranks, data__path=self.pictures, model__hidden=448, model__layers=2,
                                    model__patch=8, train__batch=4, parallel__placement=placement)

    def test_many_samples(self):
        for layers in (1, 2):
            self.assert_planned(f"points {layers}", 1, data__path=self.points, model__patch=2, model__layers=layers, train__batch=8192)
        self.assert_planned("points", 1, data__path=self.points, model__patch=2, model__layers=1, train__batch=2048)
        self.assert_planned("points", 2, data__path=self.points, model__patch=2, model__layers=1, train__batch=8192)

    def test_two_buckets_and_activations(self):
        self.assert_planned("buckets", 1, data__path=self.pictures, model__hidden=384, model__layers=3, model__patch=8, train__batch=4,
                            optimizer__bucket_mib=40)
        self.assert_planned("activations", 1, data__path=self.pictures, model__hidden=256, model__layers=3, model__patch=2, train__batch=16)

    def test_little(self):
        for ranks in (1, 2):
            self.assert_planned("little", ranks)
            self.assert_planned("replicas", 2 * ranks, parallel__replicate=2, parallel__placement="dedicated")


if __name__ == "__main__":
    unittest.main()
