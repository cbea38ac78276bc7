#!/usr/bin/env python3
"""A run that is stopped and goes on is the run that was not stopped."""
import os
import signal
import unittest

import launch


class Resume(launch.Case):
    def lines(self, run):
        try:
            return (self.folder / run / "metrics.jsonl").read_text().count("\n")
        except FileNotFoundError:
            return 0

    def stop(self, run, ranks, number, rank, after, **options):
        """Starts a run and sends one rank a signal once `after` steps are in its metrics."""
        process = launch.start(self.command("PROWL_TRAIN", ranks, *self.arguments(run, options)))
        started = launch.wait_until(lambda: len(launch.rank_processes(process)) == ranks, process)
        processes = launch.rank_processes(process)
        if not started or not launch.wait_until(lambda: self.lines(run) >= after, process):
            launch.end(process)
            self.fail(f"no rank {rank} to be stopped")
        os.kill(processes[rank], number)
        try:
            out, error = process.communicate(timeout=launch.TIMEOUT)
        except launch.subprocess.TimeoutExpired:
            launch.end(process)
            self.fail("hangs after a signal")
        self.assertEqual(process.returncode, launch.STOPPED, out + error)
        self.assertIn("as asked to", out)
        return out

    def rows(self, run):
        """What must repeat: all but times and memory."""
        keys = ("step", "loss", "val_loss", "rate_factor", "gradient_norm", "skipped")
        return [{key: row[key] for key in keys if key in row} for row in self.metrics(run)]

    def test_signals_write_a_checkpoint_and_the_run_goes_on_bit_for_bit(self):
        for ranks, number, rank in ((2, signal.SIGTERM, 1), (2, signal.SIGUSR1, 0), (1, signal.SIGTERM, 0)):
            with self.subTest(ranks=ranks, signal=number):
                # The rate does not depend on the number of steps: the first start has more than it will come to.
                options = {"train.validate_every": 7, "train.accumulate": 2, "optimizer.schedule": "constant"}
                whole, cut = f"whole{ranks}-{number}", f"cut{ranks}-{number}"
                self.stop(cut, ranks, number, rank, 3, **options, **{"run.steps": 1000000})
                stopped = self.checkpoints(cut)[-1]
                steps = {"run.steps": int(stopped.stem[-8:]) + 10}
                result = self.train(cut, ranks, **options, **steps)
                self.assertIn(f"from {stopped}", result.out)
                self.train(whole, ranks, **options, **steps)
                self.assertEqual(self.rows(whole), self.rows(cut))
                self.assert_same_arrays(self.checkpoints(whole)[-1], self.checkpoints(cut)[-1])

    def test_any_number_of_ranks_loads_exactly_the_same_state(self):
        for ranks in (1, 2, 3, 4):
            self.train(f"from{ranks}", ranks, run__steps=3)
            path = self.checkpoints(f"from{ranks}")[-1]
            for others in (1, 2, 3, 4):
                # Nothing is left to do but to write the checkpoint again.
                run = f"{ranks}to{others}"
                self.train(run, others, run__steps=3, run__resume=path,
                           parallel__replicate=2 if (ranks, others) == (3, 4) else 1)
                self.assert_same_arrays(path, self.checkpoints(run)[-1])

    def test_time_limit(self):
        result = self.train("limited", 2, code=launch.STOPPED, run__steps=100000, run__time_limit=0.5)
        self.assertIn("as asked to", result.out)
        self.assertEqual(len(self.checkpoints("limited")), 1)

    def test_finished_run_stays_as_it_is(self):
        self.train("done", 2, run__steps=3)
        before, rows = launch.arrays(self.checkpoints("done")[-1]), self.rows("done")
        self.train("done", 2, run__steps=3)
        self.assertEqual(rows, self.rows("done"))
        after = launch.arrays(self.checkpoints("done")[-1])
        self.assertTrue(all(before[n].tobytes() == after[n].tobytes() for n in before))

    def test_keeps_the_newest_checkpoints(self):
        self.train("keep", 1, run__steps=6, train__checkpoint_every=1, train__keep=3)
        self.assertEqual([p.name for p in self.checkpoints("keep")],
                         [f"checkpoint-{s:08}.h5" for s in (4, 5, 6)])


class Damage(launch.Case):
    def setUp(self):
        super().setUp()
        self.train("run", 2, run__steps=4, train__checkpoint_every=2)
        self.older, self.newer = self.checkpoints("run")

    def flip(self, path, dataset):
        with launch.h5py.File(path, "r") as f:
            offset = f[dataset].id.get_offset() + 5
        with open(path, "r+b") as f:
            f.seek(offset)
            byte = f.read(1)[0]
            f.seek(offset)
            f.write(bytes([byte ^ 16]))

    def refused(self, expected, **options):
        super().refused("other", [self.newer] + expected, **{"run.steps": 6, "run.resume": self.newer, **options})

    def test_flipped_byte(self):
        self.flip(self.newer, "momentum/blocks.0.img.attn.q.weight")
        self.refused(["is damaged"])
        result = self.train("run", 3, run__steps=4)
        self.assertIn(f"skipped checkpoint: {self.newer}: ", result.out)
        self.assertIn("is damaged", result.out)
        self.assertIn(f"resumes at step 2 from {self.older}", result.out)

    def test_truncated(self):
        os.truncate(self.newer, self.newer.stat().st_size // 2)
        self.refused([])
        result = self.train("run", 2, run__steps=4)
        self.assertIn(f"skipped checkpoint: {self.newer}", result.out)
        self.assertIn(f"resumes at step 2 from {self.older}", result.out)

    def test_another_model(self):
        self.refused(["model hidden: 64 -> 128"], **{"model.hidden": 128})


if __name__ == "__main__":
    unittest.main()
