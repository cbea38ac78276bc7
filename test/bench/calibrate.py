"""calibrate.py RANKS -- COMMAND...: runs prowl-bench calibrate, reads its file back, and checks what must hold on every
machine. The links are compared with the times that were printed, by the model of src/plan/hardware.hpp. No time is checked."""
import math
import os
import re
import subprocess
import sys
import tempfile
import tomllib

ranks, command = int(sys.argv[1]), sys.argv[3:]


def run(*arguments, expect=0):
    done = subprocess.run(command + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode == 0) == (expect == 0), f"{arguments}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def check_keys(machine):
    assert set(machine) == {"name", "node", "memory", "kernel", "overlap", "intra", "inter", "stream", "product"}
    assert set(machine["node"]) == {"devices", "max_nodes", "host", "shared_product", "shared_stream"}
    assert set(machine["memory"]) == {"capacity_gib", "reserved_gib"}
    assert set(machine["kernel"]) == {"latency_us"} and set(machine["overlap"]) == {"slowdown"}
    for link in ("intra", "inter"):
        assert set(machine[link]) == {"latency_us", "bandwidth_gbs"}


def check_values(machine):
    node, memory = machine["node"], machine["memory"]
    assert machine["name"] == "a \"test\"" and node["devices"] == ranks and node["max_nodes"] == 1
    if node["host"]:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        assert math.isclose(memory["capacity_gib"], physical / ranks, rel_tol=1e-3)
    assert 0 < memory["reserved_gib"] < memory["capacity_gib"] and machine["kernel"]["latency_us"] > 0
    for shared in (node["shared_product"], node["shared_stream"]):
        assert 0 < shared <= 1 and (ranks > 1 or shared == 1)
    assert 0 <= machine["overlap"]["slowdown"] <= 1 and (ranks > 1 or machine["overlap"]["slowdown"] == 0)
    assert machine["inter"] == machine["intra"] and machine["intra"]["bandwidth_gbs"] > 0
    assert all(row["mib"] > 0 and row["gbs"] > 0 for row in machine["stream"]) and len(machine["stream"]) > 1


def check_products(machine):
    rates = {}
    for row in machine["product"]:
        assert row["type"] == "float32" and row["gflops"] > 0 and row["narrow"] <= row["wide"]
        rates.setdefault(row["operation"], {})[row["narrow"] ** 2 * row["wide"]] = row["gflops"]
    assert set(rates) == {"gemm", "syrk"}
    for operation, by_work in rates.items():
        assert by_work[max(by_work)] > by_work[min(by_work)], f"{operation}: {by_work}"


def check_links(machine, output):
    """The file's latency and bandwidth miss the printed times less than any near them."""
    times = [(kind, 1024 * float(kib), 1e-6 * float(us))
             for kind, kib, us in re.findall(r"^(all_\w+) +(\d+) KiB +(\S+) us$", output, re.MULTILINE)]
    assert {kind for kind, _, _ in times} == {"all_gather", "all_reduce"}

    def miss(latency_us, bandwidth_gbs):
        total = 0
        for kind, payload, seconds in times:
            twice = 2 if kind == "all_reduce" else 1
            model = twice * (math.ceil(math.log2(ranks)) * latency_us * 1e-6 +
                             (ranks - 1) / ranks * payload / (bandwidth_gbs * 1e9))
            total += (model / seconds - 1) ** 2
        return total

    latency, bandwidth = machine["intra"]["latency_us"], machine["intra"]["bandwidth_gbs"]
    best = miss(latency, bandwidth)
    # Of a quadratic, and from numbers with four digits: steps of 5% to every side are far above the rounding.
    for a in (-1, 0, 1):
        for b in (0.95, 1, 1.05):
            near = max(0, latency + a * max(0.05 * latency, 0.1))
            assert best <= miss(near, bandwidth * b) + 1e-5, f"{near} us, {bandwidth * b} GB/s\n{output}"


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "machine.toml")
    printed = run("calibrate", path, "--quick", "--name", 'a "test"')
    with open(path, "rb") as file:
        described = tomllib.load(file)
    assert os.listdir(folder) == ["machine.toml"]
    check_keys(described)
    check_values(described)
    check_products(described)
    if ranks > 1:
        check_links(described, printed)
    assert "within it" in printed and ("nominal" in printed) == (ranks == 1)

    for bad in ("/dev/null/machine.toml", folder):
        refused = run("calibrate", bad, "--quick", expect=1)
        assert refused.count("error:") == 1 and bad in refused and "kernel" not in refused, refused
    run("calibrate", expect=1)
    run("calibrate", path, "--capacity-gib", "-1", expect=1)
