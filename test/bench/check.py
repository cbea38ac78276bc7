"""check.py RANKS PERIOD -- COMMAND...: runs prowl-bench, and compares the collectives that it counted with the formulas
of arXiv:2608.20818, section 3.3, computed here from the shapes alone. No time is checked."""
import json
import os
import re
import subprocess
import sys
import tempfile

ranks, period, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]


def run(*arguments, expect=0):
    done = subprocess.run(command + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode == 0) == (expect == 0), f"{arguments}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def buckets(matrices, element, cap):
    """Gathered, padded bytes of each bucket, filled greedily in registration order."""
    filled = []
    for rows, columns in matrices:
        size = ranks * -(-rows // ranks) * columns * element
        if filled and filled[-1] + size <= cap:
            filled[-1] += size
        else:
            filled.append(size)
    return filled


def expected(name, matrices, element, cap):
    """All-gathers, their bytes, all-reduces, their bytes: of one rank in one period."""
    if name == "AdamW" or "dedicated" in name:  # an owner has the whole matrix
        return 0, 0, 0, 0
    one_each = name in ("Periodic naive", "Periodic sharded_rownorm")
    refreshes = period if name in ("Muon", "Periodic naive") else 1
    filled = buckets(matrices, element, 0 if one_each else cap)
    others = period - refreshes
    tall = sum(columns for rows, columns in matrices if rows > columns)
    share = (ranks - 1) / ranks
    return (refreshes * len(filled), refreshes * share * sum(filled), others if tall else 0,
            others * 2 * share * 4 * tall)


def check(model, bucket_mib, wire, folder):
    result_file, trace_file = os.path.join(folder, "result.json"), os.path.join(folder, "trace.json")
    table = run("optimizer", "--model", model, "--steps", "4", "--period", str(period), "--bucket-mib",
                str(bucket_mib), "--wire", wire, "--json", result_file, "--trace", trace_file)
    with open(result_file) as file:
        result = json.load(file)
    assert (result["ranks"], result["period"], result["rounds"]) == (ranks, period, -(-4 // period))
    matrices = [p["shape"] for p in result["parameters"]
                if len(p["shape"]) == 2 and re.search(r"(^|\.)blocks\.\d", p["name"])]
    assert matrices
    names = [m["name"] for m in result["methods"]]
    assert names == ["AdamW", "Muon"] + ["Periodic " + s for s in ("naive", "sharded_rownorm", "buckets", "overlap")] + [
        "Muon, dedicated", "Periodic, dedicated"]
    for m in result["methods"]:
        counted = tuple(m[k] for k in ("all_gathers_a_period", "all_gather_bytes_a_period", "all_reduces_a_period",
                                       "all_reduce_bytes_a_period"))
        wanted = expected(m["name"], matrices, 4 if wire == "fp32" else 2, result["bucket_bytes"])
        assert all(abs(c - w) <= 1e-12 * w for c, w in zip(counted, wanted)), f"{m['name']}: {counted}, {wanted}"
        assert m["name"] in table and 0 < m["min_s"] <= m["median_s"]

    with open(trace_file) as file:
        events = json.load(file)["traceEvents"]
    for rank in range(ranks):
        mine = [e for e in events if e["pid"] == rank]
        assert {e["args"]["name"] for e in mine if e["name"] == "thread_name"} == {"compute", "communication"}
        spans = [e for e in mine if e["ph"] == "X"]
        assert {e["tid"] for e in spans} == {0, 1}
        assert all(e["dur"] >= 0 for e in spans)
        assert sum(e["name"] == "NS5" for e in spans) == len(matrices)
        gathers = sum(e["name"].startswith("optimizer all_gather") for e in spans)
        assert gathers == len(buckets(matrices, 4 if wire == "fp32" else 2, result["bucket_bytes"]))


with tempfile.TemporaryDirectory() as folder:
    # Tall, wide, square, rows that the ranks do not divide, and fewer rows than ranks.
    check("33x17*3,16x64*2,24x24,1x9,40x8", 0.01, "fp32", folder)
    check("33x17*3,16x64*2,24x24,1x9,40x8", 0.005, "bf16", folder)
    check("mmdit:d=64,L=2", 0.25, "fp32", folder)
    for bad in ("64x", "mmdit:d=64,q=3", "mmdit-2b", "0x4"):
        assert bad in run("optimizer", "--model", bad, expect=1)
    run("optimizer", "--model", "8x8", "--systems", "fast", expect=1)
    run("optimizer", expect=1)
    assert "momentum/4096" in run("kernels", "--benchmark_filter=momentum/4096", "--benchmark_min_time=0.001")
    run("kernels", "--no-such-option", expect=1)
