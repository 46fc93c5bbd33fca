#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
dblp.torch over AF_DBLP, by scenarios of ddp.py, in a network namespace whose loopback
interface loses packets. For selftests/vm/run --torch. The same ranks run all scenarios, because
importing PyTorch takes four seconds.
"""

import json
import os
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
SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ddp.py")


def said(out, rank):
    return [line.split("] ", 1)[1] for line in out if line.startswith(f"[{rank}] ")]


class Replicas(unittest.TestCase):
    def same(self, n, *scenarios):
        status, out, err = run("-n", str(n), "--require", "--no-hook", SCRIPT, *scenarios)
        self.assertEqual(status, 0, err)
        self.assertIn("over dblp at", err)
        lines = said(out, 0)
        self.assertEqual(len(lines), len(scenarios), out)
        self.assertEqual([said(out, rank) for rank in range(1, n)], [lines] * (n - 1), out)

    def test_have_the_same_bits_whatever_was_lost_and_whatever_is_in_buckets(self):
        self.same(4, "lossy", "plain", "rebuilt", "no_sync", "fp16", "scaled")


class Failures(unittest.TestCase):
    def test_all_learn_which_rank_failed_in_backward(self):
        status, out, err = run("-n", "3", "--no-hook", SCRIPT, "crash")
        self.assertEqual(status, 7, err)
        self.assertIn("rank 1 has failed with exit status 7: the others are ended", err)
        self.assertLessEqual(set(out), {"[0] error 1", "[2] error 1"})


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
