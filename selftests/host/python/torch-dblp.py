#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
dblp.torch over AF_DBLP, by scenarios of ddp.py and c10d.py, in a network namespace whose loopback
interface loses packets. For selftests/vm/run --torch. The same ranks run several scenarios, because
importing PyTorch takes four seconds. The backend needs PyTorch 2.6: --kernel 6.12-trixie has it.
"""

import importlib.util
import json
import os
import runpy
import subprocess
import sys
import unittest

if __name__ == "__main__":
    sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../lib"))
    import guard
    guard.guard("torch")
    os.environ.update(ATEN_CPU_CAPABILITY="default", DNNL_MAX_CPU_ISA="SSE41", DDP_BUDGET="0%")

import test_run
from test_run import run

#: Seconds: four ranks import PyTorch at once, and Gloo waits for TCP
test_run.LONG = 400
HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPT, BACKEND = (os.path.join(HERE, name) for name in ("ddp.py", "c10d.py"))


def said(out, rank):
    return [line.split("] ", 1)[1] for line in out if line.startswith(f"[{rank}] ")]


def new():
    """Has PyTorch the interface of backends in Python? Importing it here would take long"""
    [folder] = importlib.util.find_spec("torch").submodule_search_locations
    version = runpy.run_path(os.path.join(folder, "version.py"))["__version__"]
    return tuple(map(int, version.split(".")[:2])) >= (2, 6)


class Test(unittest.TestCase):
    def same(self, n, script, lines, *scenarios):
        """All ranks print so many lines, the same ones"""
        status, out, err = run("-n", str(n), "--require", "--no-hook", script, *scenarios)
        self.assertEqual(status, 0, err)
        self.assertIn("over dblp at", err)
        self.assertEqual(len(said(out, 0)), lines, out)
        self.assertEqual([said(out, rank) for rank in range(1, n)], [said(out, 0)] * (n - 1), out)

    def crash(self, script, scenario, line):
        """All ranks learn that rank 1 of 3 has failed"""
        status, out, err = run("-n", "3", "--no-hook", script, scenario)
        self.assertEqual(status, 7, err)
        self.assertIn("rank 1 has failed with exit status 7: the others are ended", err)
        for text in out:
            self.assertRegex(text, rf"^\[[02]\] {line}")


class Replicas(Test):
    def test_have_the_same_bits_whatever_was_lost_and_whatever_is_in_buckets(self):
        self.same(4, SCRIPT, 6, "lossy", "plain", "rebuilt", "no_sync", "fp16", "scaled")


class Failures(Test):
    def test_all_learn_which_rank_failed_in_backward(self):
        self.crash(SCRIPT, "crash", "error 1$")


@unittest.skipUnless(new(), "the backend needs PyTorch 2.6")
class Backend(Test):
    def test_fsdp2_one_optimizer_and_compiled_ddp_have_the_bits_of_gloo(self):
        self.same(2, BACKEND, 2 + 1 + 2 + 1, "fsdp", "zero", "compiled", "registered")

    def test_hybrid_shards_have_the_sums_of_gloo_and_sums_lose_what_they_may(self):
        self.same(4, BACKEND, 1 + 4, "hsdp", "lossy")

    def test_all_learn_which_rank_failed(self):
        self.crash(BACKEND, "killed", ".*rank 1 has failed: ")


class Unmodified(unittest.TestCase):
    def test_scripts_go_by_it_without_a_line_of_their_own(self):
        subprocess.run("dblpctl job add 7 clr on".split(), check=True)
        status, out, err = run("-n", "2", "--require", "--budget", "2%", "--job", "7", "--norms", "3",
                               SCRIPT, "unmodified", "unmodified")
        self.assertEqual(status, 0, err)
        self.assertIn("over dblp at", err)
        self.assertEqual((len(said(out, 0)), said(out, 0)), (2, said(out, 1)), out)
        # Two trainings of six rounds, in which one rank has reported
        job = subprocess.run("dblpctl -j job show 7".split(), check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(json.loads(job)["reports"], 4)
        self.assertGreater(float(json.loads(job)["norm"]), 0)


def main():
    """Tests in a network namespace of their own, with segments as short as those of a network."""
    if os.environ.get("PYTHON_NETNS") is None:
        os.environ["PYTHON_NETNS"] = "1"
        os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])
    for command in "ip link set lo mtu 1500 up", "tc qdisc add dev lo root netem loss 2%":
        subprocess.run(command.split(), check=True)
    from tap import Tap
    return Tap.main(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))


if __name__ == "__main__":
    sys.exit(main())
