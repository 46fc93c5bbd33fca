# SPDX-License-Identifier: GPL-2.0-only
"""As guard.c and lib.sh do: find out whether a test can run here."""

import importlib.util
import os
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))


def guard(*modules):
    """Skip this test if AF_DBLP or a Python module is missing; prefer the programs of this tree"""
    os.environ.update(PATH=f"{TOP}/selftests/build:{os.environ['PATH']}", PYTHONPATH=f"{TOP}/python",
                      DBLP_LIBRARY=f"{TOP}/tools/libdblp/libdblp.so.0.1.0")
    sys.path.insert(0, f"{TOP}/python")
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if os.geteuid():
        why = "needs root"
    elif missing:
        why = f"needs {missing[0]} for Python"
    elif not os.path.isdir("/sys/module/dblp") and subprocess.call(["modprobe", "-q", "dblp"]):
        why = "the module dblp is not loaded"
    else:
        return
    print(f"TAP version 13\n1..0 # SKIP {why}")
    sys.exit(4)
