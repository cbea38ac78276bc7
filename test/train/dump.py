#!/usr/bin/env python3
"""A step's dump holds what dump.hpp says, and the arithmetic in it is right."""
import subprocess
import sys
import unittest
from pathlib import Path

import h5py
import launch
import numpy as np

CHECK = Path(__file__).resolve().parents[2] / "apps" / "analysis" / "check_dump.py"


class Dump(launch.Case):
    def check(self, path):
        return subprocess.run([sys.executable, CHECK, path], capture_output=True, text=True)

    def dump(self, run, ranks, step, **options):
        self.train(run, ranks, run__steps=step + 1, train__dump_step=step, **options)
        path = self.folder / run / f"step-{step:08}.h5"
        result = self.check(path)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return path

    def test_holds_every_array(self):
        path = self.dump("run", 3, 1, train__accumulate=2, data__path=launch.make_latents(self.folder / "latents.h5"))
        found, checkpoint = launch.arrays(path), launch.arrays(self.checkpoints("run")[-1])
        for k in (0, 1):
            for name, shape in (("clean", (5, 4, 64)), ("noise", (5, 4, 64)), ("noisy", (5, 4, 64)), ("time", (5,)),
                                ("text/a", (5, 3, 24)), ("text/b", (5, 2, 16)), ("pooled", (5, 20))):
                self.assertEqual(found.pop(f"batch/{k}/{name}").shape, shape)
        self.assertEqual(found.pop("loss")[0], self.losses("run")[1])
        self.assertEqual(found.pop("loss64", np.zeros(1)).shape, (1,))
        self.assertEqual(found.pop("rate_factor")[0], 1.0)
        for name, array in checkpoint.items():
            if name.startswith("attribute"):
                continue
            if name.startswith("weights/"):
                self.assertEqual(found.pop("gradient/" + name.removeprefix("weights/")).shape, array.shape)
            self.assertEqual(found.pop("before/" + name).shape, array.shape)
            # The last step's end is the checkpoint.
            self.assertEqual(found.pop("after/" + name).tobytes(), array.tobytes())
        self.assertEqual([n for n in found if not n.startswith("attribute")], [])

    def test_arithmetic(self):
        # Steps 3 and 4: all weights have left zero; NS5 and RowNorm.
        for step in (3, 4):
            self.dump(f"periodic{step}", 2, step, optimizer__clip=0.1)
        self.dump("bf16", 2, 3, optimizer__wire="bf16", optimizer__nesterov=True, optimizer__adjust_lr="match_rms_adamw")
        self.dump("adamw", 1, 3, optimizer__method="adamw", train__accumulate=2)
        self.dump("scalar", 1, 3, optimizer__method="scalar")
        path = self.dump("rownorm", 2, 3, optimizer__method="rownorm", optimizer__gamma=0.5, optimizer__rate=0.01,
                         optimizer__decay=0.0, parallel__replicate=2)
        self.check_steps(path, 0.01 * 0.5)

    def check_steps(self, path, size):
        """Rows of RowNorm's direction have the norm gamma, less where the momentum's are below 1e-8."""
        names = []
        with h5py.File(path) as f:
            f["before/momentum"].visititems(lambda n, x: names.append(n) if isinstance(x, h5py.Dataset) else None)
            for name in names:
                before, after = (f[f"{when}/weights/{name}"][()].astype(np.float64) for when in ("before", "after"))
                rows, columns = before.shape
                norms = lambda x: np.linalg.norm(x, axis=1 if rows <= columns else 0)
                momentum = norms(f[f"after/momentum/{name}"][()].astype(np.float64))
                expected = size * f["rate_factor"][0] * max(1, rows / columns)**0.5 * np.minimum(1, momentum / 1e-8)
                # Weights, of less than 1, are rounded.
                allowed = 2.0**-25 * rows**0.5 * columns**0.5 + 1e-6 * expected
                self.assertTrue((abs(norms(after - before) - expected) <= allowed).all(), name)
        self.assertGreater(len(names), 10)

    def test_arithmetic_of_a_bf16_wire(self):
        # Step 3 is a refresh, step 4 is not: naive gathers, and so rounds, in both, a dedicated owner in none.
        self.dump("naive", 2, 4, optimizer__wire="bf16", optimizer__system="naive")
        self.dump("dedicated", 2, 3, optimizer__wire="bf16", parallel__placement="dedicated")
        self.dump("nesterov", 1, 4, optimizer__wire="bf16", optimizer__system="naive", optimizer__nesterov=True)

    def test_wrong_arithmetic_is_found(self):
        path = self.dump("run", 1, 3)
        original = path.read_bytes()
        for name, factor in (("batch/0/noisy", 1.001), ("loss", 1.001), ("gradient/blocks.0.img.attn.q.weight", 1.01),
                             ("after/momentum/blocks.0.txt.mlp.down.weight", 1.001), ("after/exp_avg_sq/img_in.weight", 1.01),
                             ("after/weights/blocks.1.img.mlp.gate_up.weight", 1.001), ("after/weights/final.linear.weight", 1.001)):
            path.write_bytes(original)
            with h5py.File(path, "r+") as f:
                f[name][...] = f[name][()] * factor
            result = self.check(path)
            self.assertEqual(result.returncode, 1, f"{name} times {factor} is not found:\n{result.stdout}{result.stderr}")
            self.assertIn("WRONG", result.stdout)


if __name__ == "__main__":
    unittest.main()
