#!/usr/bin/env python3
"""prowl-plan as users run it: files, sweeps, pictures, and requests that cannot be met."""
import csv
import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

INPUTS = Path(__file__).resolve().parents[2] / "inputs"
DECK = INPUTS / "mmdit-1.3b.toml"


class Command(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def run_plan(self, *arguments):
        return subprocess.run([os.environ["PROWL_PLAN"], *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)

    def plan(self, *arguments):
        done = self.run_plan(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *arguments):
        path = self.folder / "plan.json"
        self.plan(*arguments, "--json", path)
        return json.loads(path.read_text())

    def assert_refused(self, arguments, *parts):
        done = self.run_plan(*arguments)
        self.assertEqual(done.returncode, 2)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for part in parts:
            self.assertIn(part, lines[0])

    def test_the_papers_table_comes_out_of_its_decks(self):
        published = {"1.3b": {"Muon": ("10.0", "0.0", "2.38"), "Periodic": ("3.3", "0.7", "0.79")},
                     "9b": {"Muon": ("80.0", "0.0", "17.30"), "Periodic": ("26.7", "0.7", "5.77")}}
        # trainable = 45 L d^2 - 13 d^2 + 19 L d + 8312 d + 256 L + 6211, and 16 L buffers.
        sizes = {"1.3b": (1216, 19), "4b": (1920, 24), "9b": (2560, 32), "15b": (2880, 40)}
        for model, (d, layers) in sizes.items():
            out = self.json(INPUTS / f"mmdit-{model}.toml", "--ranks", 256)
            trainable = 45 * layers * d * d - 13 * d * d + 19 * layers * d + 8312 * d + 256 * layers + 6211
            self.assertEqual(out["parameters"], {"trainable": trainable, "total": trainable + 16 * layers,
                                                 "muon": (45 * layers - 17) * d * d})
            ways = {w["name"]: w for w in out["ways"]}
            for method in ("Muon", "Periodic"):
                w = ways[f"{method} overlap"]
                figures = f"{w['all_gathers']:.1f}", f"{w['all_reduces']:.1f}", f"{w['optimizer_gib']:.2f}"
                if model in published:
                    self.assertEqual(figures, published[model][method])
            naive, full, muon = (ways[n]["optimizer_gib"] for n in ("Periodic naive", "Periodic overlap", "Muon overlap"))
            self.assertEqual(naive, muon)
            self.assertAlmostEqual(full / muon, 1 / 3, delta=0.001)  # -66.7%

    def test_every_way_has_its_parts(self):
        out = self.json(DECK, "--ranks", 256, "--mesh", "32x8")
        ways = {w["name"]: w for w in out["ways"]}
        expected = {"deck: periodic", "AdamW"} | {
            f"{m} {s}" for m in ("Muon", "Periodic")
            for s in ("naive", "sharded_rownorm", "buckets", "overlap", "dedicated z3", "dedicated z2", "dedicated hybrid")}
        self.assertEqual(set(ways), expected)
        for w in ways.values():
            memory = dict(w["memory_bytes"])
            self.assertEqual(memory.pop("total"), sum(v for k, v in memory.items() if k != "capacity"))
            self.assertAlmostEqual(sum(p["seconds"] for p in w["critical_path"]), w["step_s"], delta=1e-9 * w["step_s"])
            self.assertLessEqual(w["optimizer_s"], w["step_s"])
        self.assertEqual(ways["deck: periodic"]["mesh"], [32, 8])
        self.assertGreater(ways["Periodic dedicated z2"]["memory_bytes"]["units"],
                           ways["Periodic dedicated z3"]["memory_bytes"]["units"])

    def test_the_largest_model_on_the_most_ranks_is_planned_on_a_laptop(self):
        begin = time.monotonic()
        pid = os.posix_spawn(os.environ["PROWL_PLAN"], [os.environ["PROWL_PLAN"], str(INPUTS / "mmdit-15b.toml"), "--ranks", "4096"],
                             os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(status, 0)
        print(f"4,096 ranks: {time.monotonic() - begin:.2f} s, {usage.ru_maxrss / 1024:.0f} MiB")
        if not os.environ.get("PROWL_SANITIZE"):
            self.assertLess(usage.ru_maxrss, 500 * 1024)

    def test_sweeps(self):
        table, path = self.folder / "s.csv", self.folder / "s.json"
        out = self.plan(INPUTS / "mmdit-15b.toml", "--sweep", "ranks=8..4096", "--csv", table, "--json", path)
        self.assertIn("\n8 ranks: no placement and mesh of 8 ranks fits", out)
        self.assertRegex(out, r"\n4096 ranks: (sharded|dedicated).* on \d+ x \d+: .* parallel.placement=")
        with table.open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(sorted({int(r["ranks"]) for r in rows}), [8 * 2**i for i in range(10)])
        self.assertEqual(len(rows), len(json.loads(path.read_text())["ways"]))
        for r in rows:
            self.assertEqual(int(r["replicas"]) * int(r["shards"]), int(r["ranks"]))
            self.assertGreaterEqual(float(r["step_s"]), float(r["optimizer_s"]))
        volume = [float(r["optimizer_gib"]) for r in rows if r["way"] == "Periodic overlap"]
        self.assertEqual(volume[:6], sorted(volume[:6]))  # (p-1)/p

    def test_what_ifs(self):
        deck, *ways = self.json(DECK, "--ranks", 64, "--k", "1..8")["ways"]
        self.assertEqual(deck["optimizer_s"], ways[2]["optimizer_s"])  # K = 3
        self.assertEqual([w["period"] for w in ways], list(range(1, 9)))
        times = [w["optimizer_s"] for w in ways]
        self.assertEqual(times, sorted(times, reverse=True))
        _, *ways = self.json(DECK, "--ranks", 64, "--wire", "fp32|bf16", "--bucket", "64,256", "--placement", "sharded,dedicated")["ways"]
        self.assertEqual(len(ways), 4 + 1)  # dedicated gathers nothing: once
        gib = {(w["wire"], w["bucket_mib"]): w["optimizer_gib"] for w in ways if w["placement"] == "sharded"}
        self.assertAlmostEqual(gib["fp32", 64] / gib["bf16", 64], 2, delta=0.01)  # but for the column sums

    def test_pictures_and_timelines(self):
        for name, arguments in (("a.png", ["--ranks", 64]), ("b.svg", ["--sweep", "ranks=8,64"]), ("c.png", ["--ranks", 64, "--k", "1,3"])):
            self.plan(DECK, *arguments, "--plot", self.folder / name)
            self.assertGreater((self.folder / name).stat().st_size, 5000)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.png", "b.svg", "c.png"])
        trace = self.folder / "trace.json"
        out = self.plan(DECK, "--ranks", 64, "--trace", trace)
        self.assertIn("recommended: ", out)
        events = json.loads(trace.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        self.assertLessEqual({"NS5", "forward", "backward", "optimizer all_gather", "backward reduce_scatter"},
                             {e["name"] for e in spans})
        self.assertEqual([e["ts"] for e in spans], sorted(e["ts"] for e in spans))
        for tid in {e["tid"] for e in spans}:  # what is on one track follows each other
            track = [e for e in spans if e["tid"] == tid]
            for a, b in zip(track, track[1:]):
                self.assertLessEqual(a["ts"] + a["dur"], b["ts"] + 1e-4, (a, b))
        steps = [e for e in spans if e["name"].startswith("step ")]
        self.assertEqual(len(steps), 3)
        ns5 = [e["ts"] for e in spans if e["name"] == "NS5"]
        self.assertTrue(ns5 and all(t < steps[1]["ts"] for t in ns5))  # step 0 refreshes

    def test_a_recommendation_can_be_planned_as_it_is(self):
        recommended = self.json(INPUTS / "mmdit-9b.toml", "--ranks", 64, "--type", "bf16")["recommended"]
        again = self.json(INPUTS / "mmdit-9b.toml", "--ranks", 64, "--type", "bf16", *recommended["settings"].split())
        self.assertEqual(again["ways"][0]["step_s"], recommended["way"]["step_s"])
        self.assertEqual(again["ways"][0]["memory_bytes"], recommended["way"]["memory_bytes"])

    def test_impossible_requests_say_what_would_fit(self):
        self.assert_refused([INPUTS / "mmdit-15b.toml", "--ranks", 2], "does not fit", "GiB a rank", "what would fit: ", "ranks")
        self.assert_refused([DECK, "--ranks", 256, "--mesh", "32x7"], "--mesh 32x7", "224", "256", "32x8")
        self.assert_refused([DECK, "--ranks", 256, "--mesh", "32"], "--mesh 32", "32x8")
        self.assert_refused([DECK, "--ranks", 256, "parallel.replicate=3"], "parallel.replicate", "3", "divisor of 256")
        self.assert_refused([DECK, "--ranks", 8, "--hardware", INPUTS / "hardware/tpu.toml"], "tpu.toml", "h100-nvlink-ib.toml")
        self.assert_refused([DECK, "--ranks", 8, "--hardware", "b200"], "b200.toml", "no such file", "h100-nvlink-ib.toml")
        small = self.folder / "small.toml"
        small.write_text((INPUTS / "hardware/h100-nvlink-ib.toml").read_text().replace("max_nodes = 0", "max_nodes = 2"))
        self.assert_refused([DECK, "--ranks", 64, "--hardware", small], "64 ranks", "8 nodes", "16 ranks")
        self.assert_refused([DECK], "--ranks")
        self.assert_refused([DECK, "--ranks", 0], "--ranks")
        self.assert_refused([DECK, "--ranks", 8, "optimizer.perod=3"], "optimizer.perod", "optimizer.period")
        self.assert_refused([DECK, "--sweep", "ranks=64..8"], "ranks=64..8".split("=")[1])
        self.assert_refused([DECK, "--ranks", 8, "--wire", "fp8"], "--wire", "fp8", "bf16")
        self.assert_refused([DECK, "--ranks", 8, "--k", "0..3"], "--k", "0")
        self.assert_refused([self.folder / "none.toml", "--ranks", 8], "none.toml")
        self.assert_refused([DECK, "--ranks", 8, "--json", "/dev/null/x.json"], "x.json")
        self.assert_refused([DECK, "--ranks", 8, "--plot", self.folder / "x.bmp"], "x.bmp")
        self.assert_refused([DECK, "--ranks", 8, "--json", self.folder], str(self.folder), "folder")
        self.assert_refused([DECK, "--sweep", f"ranks={2**32}"], "--sweep", str(2**32))
        self.assert_refused([DECK, "--ranks", 8, "--sweep", "ranks=8"], "--sweep", "--ranks")
        self.assert_refused([DECK, "--ranks", 8, "--per-rank", 2**30], "--per-rank", str(2**30))
        self.assert_refused([DECK, "--ranks", 8, f"train.batch={2**40}"], "train.batch", str(2**40))
        self.assert_refused([DECK, "--ranks", 8, "optimizer.period=1000000"], "optimizer.period", "1000000", "at most")
        self.assert_refused([DECK, "--ranks", 8, "--k", "1..1000000"], "--k", "1000000")
        self.assert_refused([DECK, "--ranks", 8, "--bucket", 2**44], "--bucket", str(2**44))
        self.assert_refused([DECK, "--ranks", 8, "--k", "1..3", "optimizer.method=muon"], "--k", "muon", "periodic")
        self.assert_refused([DECK, "--ranks", 8, "--mesh", ""], "--mesh")
        self.assert_refused([DECK, "--ranks", 8, "--json", self.folder / "x", "--csv", self.folder / "x"], "two files")

    def test_what_would_fit_does_fit(self):
        for deck, *arguments in (("15b", "--ranks", 8, "parallel.residency=z2"),
                                 ("9b", "--ranks", 4, "train.batch=4", "parallel.placement=dedicated", "parallel.owners=first"),
                                 ("15b", "--ranks", 4096, "parallel.placement=dedicated", "parallel.owners=first"),
                                 ("9b", "--ranks", 256, "parallel.prefetch=40"), ("1.3b", "--ranks", 8)):
            request = [INPUTS / f"mmdit-{deck}.toml", *arguments]
            error = self.run_plan(*request).stderr
            self.assertIn("what would fit: ", error)
            for way in error.strip().split("what would fit: ")[1].split(", or "):
                if way.endswith(")"):  # 32 ranks (1 x 32)
                    request[request.index("--ranks") + 1] = int(way.split()[0])
                    self.plan(*request)
                else:
                    self.plan(*request, *way.split())

    def test_a_device_is_written_to_and_a_link_is_followed(self):
        target, link = self.folder / "target.csv", self.folder / "link.csv"
        link.symlink_to(target)
        out = self.plan(DECK, "--ranks", 64, "--k", "1", "--csv", "/dev/stdout")
        self.assertIn("ranks,way,", out)
        self.plan(DECK, "--ranks", 64, "--k", "1", "--csv", link)
        self.assertTrue(link.is_symlink() and target.is_file())


if __name__ == "__main__":
    unittest.main()
