#!/usr/bin/env python3
"""The same run at any number of ranks."""
import unittest

import launch

STEPS = 4


class Determinism(launch.Case):
    def bound(self, run, step):
        """How far rounding can move the loss of a step.

        Other sums of the same float32 numbers differ by up to about n eps, n = 64 terms, in the momentum of a matrix.
        NS5 multiplies what is small beside the norm by up to 3.4445^5, so a matrix of rate eta moves by eta 3.4445^5 n eps
        in spectral norm a step, and the loss by that times the gradient's nuclear norm, at most sqrt(64) Frobenius norms.
        To it comes the forward pass's own rounding, n eps of the loss. (AdamW's directions are as uncertain only where
        gradients are rounding errors themselves, where they do not matter.)
        """
        rows = self.metrics(run)
        eps, n, rate = 2.0**-24, 64, 5e-3
        moved = sum(rows[s]["gradient_norm"] for s in range(step)) * rate * 3.4445**5 * n * eps * n**0.5
        return moved + n * eps * rows[step]["loss"]

    def assert_same_to_rounding(self, run, other):
        a, b = self.losses(run), self.losses(other)
        self.assertEqual(len(a), STEPS)
        self.assertEqual(len(b), STEPS)
        for step in range(STEPS):
            self.assertLessEqual(abs(a[step] - b[step]), self.bound(run, step), f"step {step}: {a} and {b}")
        # The bound tells runs apart: what one step changes is far larger.
        self.assertGreater(abs(a[-1] - a[0]), 100 * self.bound(run, STEPS - 1))

    def test_repeats_bit_for_bit(self):
        for ranks in (1, 3):
            for run in ("a", "b"):
                self.train(f"{run}{ranks}", ranks, run__steps=STEPS, train__accumulate=2)
            self.assertEqual(self.losses(f"a{ranks}"), self.losses(f"b{ranks}"))
            self.assert_same_arrays(self.checkpoints(f"a{ranks}")[-1], self.checkpoints(f"b{ranks}")[-1])

    def test_another_seed_is_another_run(self):
        for seed in (0, 1):
            self.train(f"seed{seed}", 1, run__steps=1, run__seed=seed)
        self.assertNotEqual(self.losses("seed0"), self.losses("seed1"))

    def test_any_number_of_ranks(self):
        self.train("1", 1, run__steps=STEPS)
        for ranks in (2, 3, 4):  # 10 samples: uneven at 3 and 4
            self.train(str(ranks), ranks, run__steps=STEPS)
            self.assert_same_to_rounding("1", str(ranks))

    def test_more_ranks_than_samples(self):
        self.train("1", 1, run__steps=STEPS, train__batch=3)
        self.train("4", 4, run__steps=STEPS, train__batch=3)
        self.assert_same_to_rounding("1", "4")

    def test_accumulation(self):
        self.train("whole", 2, run__steps=STEPS)
        self.train("halves", 2, run__steps=STEPS, train__accumulate=2)
        self.assert_same_to_rounding("whole", "halves")

    def test_replicas(self):
        self.train("1", 1, run__steps=STEPS)
        for ranks in (2, 4):
            self.train(f"replicas{ranks}", ranks, run__steps=STEPS, parallel__replicate=2)
            self.assert_same_to_rounding("1", f"replicas{ranks}")


if __name__ == "__main__":
    unittest.main()
