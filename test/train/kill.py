#!/usr/bin/env python3
"""kill.py [KILLS] [SEED]: a run whose ranks are killed at random moments ends as one that was left alone.

Kill -9 of a random rank: at a random time after the start, or, every second time, while a checkpoint is being written.
Each restart has run.resume = "auto".
"""
import os
import random
import signal
import sys
import time
import unittest

import launch

KILLS, SEED, RANKS, STEPS = 3, 1, 2, 24


class Kill(launch.Case):
    def writing(self):
        return any((self.folder / "killed").glob(".checkpoint-*.tmp"))

    def last_step(self):
        try:
            return (self.folder / "killed" / "metrics.jsonl").read_text().count("\n")
        except FileNotFoundError:
            return 0

    def start_and_kill(self, moments, inside):
        """Whether the run was killed; it may have come to its end before."""
        target = self.before + moments.randint(2, 5)
        process = launch.start(self.command("PROWL_TRAIN", RANKS, *self.arguments("killed", self.options)))
        ready = lambda: len(launch.rank_processes(process)) == RANKS and self.last_step() >= target
        if not launch.wait_until(ready, process):
            self.fail("no step: " + "".join(process.communicate()))
        time.sleep(moments.uniform(0, 0.1))
        if inside and not launch.wait_until(self.writing, process):
            return self.ended(process)
        if inside:
            time.sleep(moments.uniform(0, 0.01))
        in_writing = self.writing()
        rank = moments.randrange(RANKS)
        try:
            os.kill(launch.rank_processes(process)[rank], signal.SIGKILL)
        except (KeyError, ProcessLookupError):
            return self.ended(process)
        try:
            process.communicate(timeout=launch.TIMEOUT)
        except launch.subprocess.TimeoutExpired:
            launch.end(process)
            self.fail("the other ranks go on after one was killed")
        self.assertNotEqual(process.returncode, 0)
        print(f"killed rank {rank} after step {self.last_step()}{', in a checkpoint' if in_writing else ''}")
        self.in_checkpoints += in_writing
        return True

    def ended(self, process):
        out, error = process.communicate(timeout=launch.TIMEOUT)
        self.assertEqual(process.returncode, 0, out + error)
        return False

    def test_kills(self):
        moments = random.Random(SEED)
        steps = STEPS + 8 * KILLS
        self.options = {"run.steps": steps, "train.checkpoint_every": 1}
        self.train("whole", RANKS, **self.options)
        kills = self.in_checkpoints = 0
        while kills < KILLS:
            self.before = max((int(p.stem[-8:]) for p in self.checkpoints("killed")), default=0)
            if not self.start_and_kill(moments, inside=kills % 2 == 1):
                self.fail(f"the run ended after {kills} kills")
            kills += 1
        result = self.train("killed", RANKS, **self.options)
        print(f"{kills} kills, {self.in_checkpoints} inside a checkpoint; the last start {result.out.splitlines()[0]}")
        self.assertIn("resumes at step", result.out.splitlines()[0])
        self.assertEqual(self.losses("whole"), self.losses("killed"))
        self.assert_same_arrays(self.checkpoints("whole")[-1], self.checkpoints("killed")[-1])
        self.assertGreater(self.in_checkpoints, 0)
        self.assertFalse(self.writing(), "a half-written checkpoint is left")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        KILLS = int(sys.argv[1])
    if len(sys.argv) > 2:
        SEED = int(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
