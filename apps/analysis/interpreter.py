"""Finds a Python with the packages that a script imports: the first in the path may not be the one they were installed for."""
import importlib
import os
import subprocess
import sys

SYSTEM = "/usr/bin/python3"  # for which Debian's packages are
DEBIAN = {"h5py": "python3-h5py", "matplotlib": "python3-matplotlib", "numpy": "python3-numpy"}


def need(*packages):
    """Returns where this Python has the packages. Where only the system's has them, the script starts again with that one;
    where neither has, it ends with a line that names both."""
    missing = []
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            missing.append(package)
    if not missing:
        return
    elsewhere = "" if sys.executable == SYSTEM else f", nor has {SYSTEM}"
    if elsewhere and os.path.exists(SYSTEM):
        imports = "; ".join(f"import {package}" for package in packages)
        if subprocess.run([SYSTEM, "-c", imports], stderr=subprocess.DEVNULL).returncode == 0:
            sys.stdout.flush()
            os.execv(SYSTEM, [SYSTEM, *sys.argv])
    sys.exit(f"{os.path.basename(sys.argv[0])}: {sys.executable} has no {', '.join(missing)}{elsewhere}. "
             f"Debian: apt-get install {' '.join(DEBIAN[package] for package in missing)}")
