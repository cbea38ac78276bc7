#!/usr/bin/env python3
"""pairs.py [PAIRS]: of two runs in one folder one goes on, as if it were alone, and the other names it."""
import os
import signal
import socket
import subprocess
import sys
import unittest

import launch

PAIRS, RANKS = 2, 2


class Pairs(launch.Case):
    OPTIONS = {"run.steps": 1000000, "train.checkpoint_every": 20}

    def start(self, run, **environment):
        command = self.command("PROWL_TRAIN", RANKS, *self.arguments(run, self.OPTIONS))
        return launch.start(command, env={**os.environ, **environment})

    def lines(self, run):
        try:
            return (self.folder / run / "metrics.jsonl").read_text().count("\n")
        except FileNotFoundError:
            return 0

    def test_of_two_at_once_one_goes_on(self):
        for number in range(PAIRS):
            run = f"pair{number}"
            pair = [self.start(run, SLURM_JOB_ID=str(100 + i)) for i in (0, 1)]
            ended = lambda: [i for i in (0, 1) if pair[i].poll() is not None]
            try:
                self.assertTrue(launch.wait_until(ended, self), "both go on")
                loser, = ended()
                winner = pair[1 - loser]
                out, error = pair[loser].communicate()
                self.assertEqual(pair[loser].returncode, launch.REFUSED, out + error)
                holder = launch.rank_processes(winner)[0]
                message = [line for line in error.splitlines() if line.startswith("error")]
                self.assertEqual(len(message), 1, error)
                self.assertIn(f"{self.folder / run}: in use by process {holder} on {socket.gethostname()} "
                              f"(Slurm job {101 - loser})", message[0])
                self.assertTrue(launch.wait_until(lambda: self.lines(run) > 30, winner))
                os.kill(holder, signal.SIGTERM)
                out, error = winner.communicate(timeout=launch.TIMEOUT)
                self.assertEqual(winner.returncode, launch.STOPPED, out + error)
            finally:
                for process in pair:
                    if process.poll() is None:
                        launch.end(process)
            steps = [row["step"] for row in self.metrics(run)]
            self.assertEqual(steps, list(range(len(steps))))
            # Its state is that of a run of as many steps that was alone.
            self.assertIn(f"resumes at step {len(steps)} ", self.train(run, RANKS, run__steps=len(steps)).out)

    def poll(self):
        return None

    def test_a_killed_run_leaves_no_lock(self):
        process = self.start("killed")
        self.assertTrue(launch.wait_until(lambda: self.lines("killed") > 25, process))
        ranks = launch.rank_processes(process)
        # All at once, so that none has time to tidy up.
        for pid in ranks.values():
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=launch.TIMEOUT)
        self.assertIn("resumes at step", self.train("killed", RANKS, run__steps=max(40, self.lines("killed"))).out)

    def test_fewer_ranks_than_the_launcher_started_are_refused(self):
        command = [os.environ["PROWL_TRAIN"], *map(str, self.arguments("single", {"run.steps": 2}))]
        for name in ("PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, name: "2"})
            self.assertEqual(done.returncode, launch.REFUSED, done.stdout + done.stderr)
            self.assertRegex(done.stderr, f"error: {name} says 2 tasks, but MPI has 1 rank")
        self.assertFalse((self.folder / "single").exists())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PAIRS = int(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
