#!/usr/bin/env python3
"""The scripts of apps/analysis, and what every program answers."""
import json
import os
import random
import runpy
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

import launch

SCRIPTS = Path(__file__).resolve().parents[2] / "apps" / "analysis"
sys.path.insert(0, str(SCRIPTS))  # as for a script that is run there


def run_script(name, *arguments):
    return subprocess.run([sys.executable, SCRIPTS / name, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=launch.TIMEOUT)


class Curves(launch.Case):
    def run_of(self, name, losses):
        folder = self.folder / name
        folder.mkdir()
        rows = [{"step": 10 * i, "loss": x, "val_loss": x} for i, x in enumerate(losses)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def drawn(self, *runs):
        """The numbers on the axis of losses, those in sight, and the legend's lines."""
        import matplotlib.pyplot as plt
        with mock.patch.object(sys, "argv", ["plot_loss.py", *map(str, runs), "-o", str(self.folder / "a.png")]):
            runpy.run_path(str(SCRIPTS / "plot_loss.py"), run_name="__main__")
        axes = plt.gcf().axes[0]
        low, high = axes.get_ylim()
        ticks = [(t, label.get_text()) for minor in (False, True)
                 for t, label in zip(axes.get_yticks(minor=minor), axes.get_yticklabels(minor=minor))]
        numbers = [float(text) for t, text in ticks if text and low <= t <= high]
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        plt.close("all")
        return numbers, legend

    def test_every_range_of_losses_has_numbers(self):
        for losses in ((0.29, 0.25, 0.21), (1.686, 0.4, 0.153), (1.0, 1.0), (0.4321, 0.4312), (9.9, 4.1), (1e-5, 3e-5), (100.0, 1e-3)):
            numbers, _ = self.drawn(self.run_of(f"of {losses}", losses))
            self.assertGreaterEqual(len(numbers), 2, losses)
            self.assertEqual(len(set(numbers)), len(numbers), losses)

    def test_every_run_is_in_the_legend(self):
        names = ["_a", "b", "__", "$x$_", "c$"]
        _, legend = self.drawn(*(self.run_of(name, (0.3, 0.2)) for name in names))
        self.assertEqual([line.split(",")[0].strip().replace("\\", "") for line in legend], names)


class Checkpoints(launch.Case):
    def test_a_damaged_file_is_told_from_a_whole_one(self):
        self.train("run", 1, run__steps=2)
        path = self.checkpoints("run")[-1]
        whole = run_script("inspect_checkpoint.py", path)
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        self.assertIn("verified: every byte of the file", whole.stdout)
        self.assertNotIn("@checksum = ", whole.stdout)
        self.assertIn("@checksum = ", run_script("inspect_checkpoint.py", path, "--checksums").stdout)
        content = path.read_bytes()
        with launch.h5py.File(path) as file:
            places = [file["weights/img_in.weight"].id.get_offset() + 7, file["exp_avg/img_in.weight"].id.get_offset()]
        places += [content.index(b'"hidden"') + 3, content.index(b"[model]") + 1]  # attribute model, text deck
        random.seed(3)
        places += [0, 30, 500, 511, 512] + [random.randrange(len(content)) for _ in range(8)]
        for place in places:
            damaged = bytearray(content)
            damaged[place] ^= 4
            (self.folder / "bad.h5").write_bytes(damaged)
            result = run_script("inspect_checkpoint.py", self.folder / "bad.h5")
            self.assertEqual(result.returncode, 1, place)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for size in (0, 100, len(content) // 2, len(content) - 1):
            (self.folder / "short.h5").write_bytes(content[:size])
            self.assertIn(run_script("inspect_checkpoint.py", self.folder / "short.h5").returncode, (1, 2), size)
        (self.folder / "long.h5").write_bytes(content + b"0")
        self.assertEqual(run_script("inspect_checkpoint.py", self.folder / "long.h5").returncode, 1)
        self.assertIn("not verified", run_script("inspect_checkpoint.py", self.data).stdout)


class Programs(unittest.TestCase):
    def answer(self, program, option):
        done = subprocess.run([os.environ[program], option], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), program)
        return done.stdout

    def test_help_is_the_programs_own_and_version_is_one_line(self):
        for program in ("PROWL_TRAIN", "PROWL_SAMPLE", "PROWL_DATA", "PROWL_PLAN", "PROWL_BENCH"):
            name = program.lower().replace("_", "-")
            out = self.answer(program, "--help").splitlines()
            self.assertIn(name, "\n".join(out[:4]), out[:5])
            self.assertNotIn("Kokkos", "\n".join(out[:4]))
            version = self.answer(program, "--version")
            self.assertRegex(version, rf"\A{name} {os.environ['PROWL_VERSION']}, Kokkos \d+\.\d+\.\d+ \(\w+\)\n\Z")


if __name__ == "__main__":
    unittest.main()
