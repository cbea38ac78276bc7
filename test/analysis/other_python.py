#!/usr/bin/env python3
"""A script of apps/analysis run by a Python without its packages works by the system's, or names both where neither has them."""
import subprocess
import sys
import tempfile
from pathlib import Path

ANALYSIS = Path(__file__).resolve().parents[2] / "apps" / "analysis"
SYSTEM = "/usr/bin/python3"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def check(what, holds, result):
    if not holds:
        sys.exit(f"{what}: exit status {result.returncode}\n{result.stdout}{result.stderr}")


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    bare = f"{folder}/bin/python3"
    result = run(bare, "-c", "import h5py")
    check("a new environment has no h5py", "ModuleNotFoundError" in result.stderr, result)

    scripts = sorted(p for p in ANALYSIS.glob("*.py") if p.name != "interpreter.py")
    assert len(scripts) >= 6, scripts
    if run(SYSTEM, "-c", "import h5py, matplotlib, numpy").returncode == 0:
        for script in scripts:
            result = run(bare, str(script), "--help")
            check(f"{script.name} --help", result.returncode == 0 and "usage" in result.stdout, result)
        result = run(bare, str(ANALYSIS / "nearest.py"), "no such file", "nor this")
        check("arguments with blanks arrive", "no such file" in result.stderr and result.returncode == 1, result)

    without = f"import sys; sys.path.insert(0, '{ANALYSIS}'); sys.argv = ['x/plot.py']; import interpreter; "
    result = run(bare, "-c", without + "interpreter.SYSTEM = '/no/python3'; interpreter.need('sys', 'h5py')")
    check("what is missing is named once, with every interpreter that lacks it",
          result.returncode == 1 and result.stderr == f"plot.py: {bare} has no h5py, nor has /no/python3. "
          "Debian: apt-get install python3-h5py\n", result)
