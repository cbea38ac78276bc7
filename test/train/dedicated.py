#!/usr/bin/env python3
"""Runs with dedicated ownership are those of the sharded placement."""
import unittest

import launch
import numpy as np

STEPS = 20
MESHES = ((1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (2, 2))  # ranks, replicas


class Dedicated(launch.Case):
    def bound(self, run, step):
        """As in determinism.py: what rounding moves in a step, after steps of rate eta (with its warm-up of 2 steps and cosine)."""
        rows = self.metrics(run)
        eps, n, rate = 2.0**-24, 64, 5e-3
        moved = sum(rows[s]["gradient_norm"] * rows[s]["rate_factor"]
                    for s in range(step)) * rate * 3.4445**5 * n * eps * n**0.5
        return moved + n * eps * rows[step]["loss"]

    def dedicated(self, run, ranks, replicas=1, steps=STEPS, **options):
        return self.train(run, ranks, run__steps=steps, parallel__placement="dedicated",
                          parallel__replicate=replicas, **options)

    def weights(self, run):
        found = launch.arrays(self.checkpoints(run)[-1])
        return {name: value for name, value in found.items() if name.startswith("weights/")}

    def test_losses_and_weights_are_those_of_the_sharded_run(self):
        self.train("sharded", 1, run__steps=STEPS)
        losses, weights = self.losses("sharded"), self.weights("sharded")
        # A weight moves by at most what an entry of the directions is uncertain by, 3.4445^5 n eps, times the rate and s(W) (at
        # most sqrt(8) here), a step.
        factors = sum(row["rate_factor"] for row in self.metrics("sharded") if "rate_factor" in row)
        moved = 5e-3 * factors * 8**0.5 * 3.4445**5 * 64 * 2.0**-24
        for ranks, replicas in MESHES:
            bits = {}
            for residency in ("z3", "z2"):
                run = f"{residency}-{ranks}-{replicas}"
                out = self.dedicated(run, ranks, replicas, parallel__residency=residency).out
                for step, (a, b) in enumerate(zip(losses, self.losses(run), strict=True)):
                    self.assertLessEqual(abs(a - b), self.bound("sharded", step), f"{run}, step {step}")
                ours = self.weights(run)
                self.assertEqual(ours.keys(), weights.keys())
                # All but those that AdamW trains: it divides rounding errors by rounding errors where gradients are zero.
                for name in ours:
                    if name.startswith("weights/blocks.") and ours[name].ndim == 2:
                        self.assertLessEqual(np.abs(ours[name] - weights[name]).max(), moved, f"{run}: {name}")
                bits[residency] = self.losses(run), ours
                if ranks > 1:
                    line = next(line for line in out.splitlines() if line.startswith("communication a rank and step"))
                    planned, measured = line.split("planned ")[1].split("; measured ")
                    self.assertEqual(planned, measured, run)
            self.assertEqual(bits["z3"][0], bits["z2"][0])
            for name, value in bits["z3"][1].items():
                self.assertEqual(value.tobytes(), bits["z2"][1][name].tobytes(), f"{ranks} ranks: {name}")

    def test_synchronous_and_asynchronous_replicas_have_the_same_bits(self):
        for ranks, replicas in ((2, 2), (4, 2)):
            for how in ("async", "sync"):
                self.dedicated(f"{how}{ranks}", ranks, replicas, parallel__replicate_broadcast=how, train__validate_every=3)
            self.assertEqual(self.losses(f"async{ranks}"), self.losses(f"sync{ranks}"))
            self.assert_same_arrays(self.checkpoints(f"async{ranks}")[-1], self.checkpoints(f"sync{ranks}")[-1])

    def test_accumulation_reduces_owned_matrices_once(self):
        whole, halves = {}, {}
        self.dedicated("whole", 2, steps=4)
        self.dedicated("halves", 2, steps=4, train__accumulate=2)
        for step, (a, b) in enumerate(zip(self.losses("whole"), self.losses("halves"), strict=True)):
            self.assertLessEqual(abs(a - b), self.bound("whole", step))
        whole, halves = self.metrics("whole")[1], self.metrics("halves")[1]
        self.assertEqual(whole["backward_reduces"], halves["backward_reduces"])
        self.assertEqual(whole["backward_reduce_bytes"], halves["backward_reduce_bytes"])
        self.assertEqual(2 * whole["backward_reduce_scatters"], halves["backward_reduce_scatters"])

    def test_a_checkpoint_of_any_placement_resumes_in_any_other(self):
        # Nothing is left to do but to write the checkpoint again.
        def again(run, ranks, path, **options):
            self.train(run, ranks, run__steps=3, run__resume=path, **options)
            return self.checkpoints(run)[-1]

        self.train("start", 3, run__steps=3)
        first = self.checkpoints("start")[-1]
        owned = {"parallel__placement": "dedicated"}
        second = again("2x2", 4, first, parallel__replicate=2, **owned)
        third = again("sharded", 1, second)
        fourth = again("z2", 3, third, parallel__residency="z2", **owned)
        fifth = again("round robin", 4, fourth, parallel__owners="round_robin", parallel__replicate=4, **owned)
        for other in (second, third, fourth, fifth):
            self.assert_same_arrays(first, other)

    def kill(self, run, ranks, after, **options):
        """Starts a run, kills a rank once the run has `after` steps more, and returns its newest checkpoint."""
        before = self.steps(run)
        process = launch.start(self.command("PROWL_TRAIN", ranks, *self.arguments(run, options)))
        started = launch.wait_until(lambda: len(launch.rank_processes(process)) == ranks, process)
        processes = launch.rank_processes(process)
        if not started or not launch.wait_until(lambda: self.steps(run) >= before + after, process):
            launch.end(process)
            self.fail("not there to be killed")
        launch.os.kill(processes[ranks - 1], launch.signal.SIGKILL)
        process.communicate(timeout=launch.TIMEOUT)
        self.assertNotEqual(process.returncode, 0)
        return self.checkpoints(run)[-1]

    def steps(self, run):
        """Whole lines: the run may be writing one."""
        try:
            return (self.folder / run / "metrics.jsonl").read_text().count("\n")
        except FileNotFoundError:
            return 0

    def test_killed_in_one_placement_a_run_goes_on_in_another(self):
        options = {"run.steps": 60, "train.checkpoint_every": 1}
        owned = {"parallel.placement": "dedicated", "parallel.replicate": 2}
        first = self.kill("killed", 3, 3, **options)
        launch.shutil.copy(first, self.folder / "first.h5")
        # What the next placement loads it writes again, before it goes on.
        self.train("check", 4, run__steps=int(first.stem[-8:]), run__resume=self.folder / "first.h5",
                   parallel__placement="dedicated", parallel__replicate=2)
        self.assert_same_arrays(self.folder / "first.h5", self.checkpoints("check")[-1])
        second = self.kill("killed", 4, 3, **options, **owned)
        self.assertGreater(second.name, first.name)
        launch.shutil.copy(second, self.folder / "second.h5")
        self.train("check again", 1, run__steps=int(second.stem[-8:]), run__resume=self.folder / "second.h5")
        self.assert_same_arrays(self.folder / "second.h5", self.checkpoints("check again")[-1])
        result = self.train("killed", 1, **options)
        self.assertIn("resumes at step", result.out.splitlines()[0])
        # The same run as one that was never stopped, to rounding.
        self.train("whole", 1, **options)
        for step, (a, b) in enumerate(zip(self.losses("whole"), self.losses("killed"), strict=True)):
            self.assertLessEqual(abs(a - b), self.bound("whole", step), f"step {step}")

    def test_the_routing_is_told_and_kept(self):
        out = self.dedicated("told", 2, steps=1).out
        self.assertRegex(out, r"dedicated owners over 2 ranks: the work of the busiest is 1\.\d+ of the mean")
        with launch.h5py.File(self.checkpoints("told")[-1]) as f:
            table = f["routing"][()].decode()
        self.assertEqual(table, (self.folder / "told" / "routing.txt").read_text())
        self.assertIn(table, out)
        lines = {line.split()[0]: line for line in table.splitlines()}
        self.assertRegex(lines["blocks.0.img.attn.q.weight"], r"muon .* blocks\.0 .*shard [01] replica 0 .*K 3 gamma 0\.15")
        self.assertRegex(lines["img_in.bias"], "sharded_adamw .* embed .* sharded ")


if __name__ == "__main__":
    unittest.main()
