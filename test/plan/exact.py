#!/usr/bin/env python3
"""What prowl-plan says of a run is what the run's ledger counts, number for number."""
import json
import os
import re
import subprocess
import unittest

import launch

HARDWARE = """
name = "a host"
[node]
devices = 4
max_nodes = 1
host = true
[memory]
capacity_gib = 64.0
reserved_gib = 0.0
[intra]
bandwidth_gbs = 1.0
[inter]
bandwidth_gbs = 1.0
[[stream]]
mib = 1.0
gbs = 10.0
[[product]]
operation = "gemm"
type = "float32"
narrow = 64
wide = 64
gflops = 10.0
[[product]]
operation = "syrk"
type = "float32"
narrow = 64
wide = 64
gflops = 10.0
"""


class Exact(launch.Case):
    def plan(self, run, ranks, options):
        """The deck's own way."""
        hardware = self.folder / "host.toml"
        hardware.write_text(HARDWARE)
        result = self.folder / f"{run}.json"
        command = [os.environ["PROWL_PLAN"], *map(str, self.arguments(run, options)), "--ranks", str(ranks),
                   "--hardware", hardware, "--json", result]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=launch.TIMEOUT)
        return json.loads(result.read_text())["ways"][0]

    def assert_exact(self, ranks, steps, **options):
        options = {k.replace("__", "."): v for k, v in options.items()}
        run = "-".join([str(ranks), *map(str, options.values())])
        planned = self.plan(run, ranks, options)["steps"]
        self.train(run, ranks, run__steps=steps, **options)
        rows = [row for row in self.metrics(run) if "loss" in row]
        self.assertEqual(len(rows), steps)
        for t, row in enumerate(rows):
            counted = {k: v for k, v in row.items() if re.search(r"_(gathers|scatters|reduces|broadcasts)$|_bytes$", k)}
            del counted["peak_bytes"]
            self.assertEqual(counted, planned[t % len(planned)], f"{run}, step {t}")
        if options.get("optimizer.method", "periodic") == "periodic":
            self.assertEqual(len(planned), options.get("optimizer.period", 3))

    def test_sharded_and_dedicated_at_all_periods(self):
        for ranks in (1, 2, 3, 4):
            for period in (1, 2, 3):
                for placement in ("sharded", "dedicated"):
                    # Buckets of 1 MiB: three and more of this model.
                    self.assert_exact(ranks, period + 1, optimizer__period=period, parallel__placement=placement,
                                      optimizer__bucket_mib=1)

    def test_other_ways_to_run(self):
        for placement in ("sharded", "dedicated"):
            self.assert_exact(4, 2, parallel__placement=placement, parallel__replicate=2)
            self.assert_exact(3, 2, parallel__placement=placement, parallel__residency="z2", train__accumulate=2)
            self.assert_exact(2, 2, parallel__placement=placement, parallel__replicate=2, parallel__prefetch=0)
        for system in ("naive", "sharded_rownorm", "buckets"):
            self.assert_exact(3, 3, optimizer__system=system, optimizer__wire="bf16")
        for method in ("adamw", "rownorm", "muon"):
            self.assert_exact(2, 2, optimizer__method=method)


if __name__ == "__main__":
    unittest.main()
