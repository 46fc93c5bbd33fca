#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
The Python package over AF_DBLP, with losses: ranks are threads of this process, in a
network namespace of its own, whose loopback interface loses packets.

For selftests/vm/run --ynl. Other files here test the parts that need no AF_DBLP.
"""

import array
import json
import os
import subprocess
import sys
import unittest

if __name__ == "__main__":
    sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../lib"))
    import guard
    guard.guard()

import dblp
from common import LONG, Store, good, process, until, with_ranks

COUNT = 500000
ROUNDS = 5
DBLP = dict(transport="dblp")
#: Directory of common.py
HERE = os.path.dirname(os.path.realpath(__file__))


def ones():
    return array.array("f", [1.0]) * COUNT


def dblpctl(*args):
    return subprocess.run(["dblpctl", *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def sockets():
    return json.loads(dblpctl("-j", "socket", "list"))


class Losses(unittest.TestCase):
    def setUp(self):
        # A closed connection is listed until its peer has everything
        until(lambda: not sockets())

    def test_without_a_budget_nothing_is_lost(self):
        def run(comm):
            v = ones()
            result = comm.allreduce(v).wait(LONG)
            self.assertIn("over dblp at", comm.describe())
            self.assertEqual((set(v), result.missing, result.budget_most), ({4.0}, 0, 0))

        good(with_ranks(4, run, **DBLP))

    def test_what_is_missing_is_within_the_budget_and_the_same_for_all(self):
        def run(comm):
            total, missing = [0.0] * COUNT, 0
            for _ in range(ROUNDS):
                v = ones()
                result = comm.allreduce(v, op=dblp.Op(budget="10%", policy="eager")).wait(LONG)
                self.assertLessEqual(result.missing, result.asked // 10)
                self.assertEqual((result.budget_least, result.budget_most), (100000, 100000))
                total, missing = [a + b for a, b in zip(total, v)], missing + result.missing
            return total, missing

        outcome = good(with_ranks(4, run, **DBLP))
        totals = [total for total, _ in outcome]
        self.assertEqual(totals[1:], totals[:1] * 3)
        # A contribution is one of four ones, of four bytes
        lost = sum(4 * ROUNDS - int(element) for element in totals[0]) * 4
        self.assertGreater(lost, 0)
        self.assertEqual(lost, sum(missing for _, missing in outcome))

    def test_what_was_lost_comes_later_with_feedback(self):
        def run(comm):
            total, lost = [0.0] * COUNT, 0
            for i in range(ROUNDS):
                v = ones()
                op = dblp.Op("10%" if i < ROUNDS - 1 else 0, "feedback", policy="eager", key=1)
                result = comm.allreduce(v, op=op).wait(LONG)
                lost += result.lost
                total = [a + b for a, b in zip(total, v)]
            return set(total), lost

        outcome = good(with_ranks(2, run, **DBLP))
        self.assertEqual([total for total, _ in outcome], [{2.0 * ROUNDS}] * 2)
        self.assertGreater(sum(lost for _, lost in outcome), 0)

    def test_what_is_moved_is_not_lost_whatever_the_budget_of_the_job(self):
        dblpctl("job", "add", "7", "phase", "tolerant")

        def run(comm):
            text, sums = bytearray(b"%7d" % comm.rank * 100000), ones()
            comm.broadcast(text, 2).wait(LONG)
            comm.barrier(LONG)
            comm.reduce(sums, op=dblp.Op(budget=0, root=1)).wait(LONG)
            got = bytearray(len(text))
            requests = [comm.recv(got, (comm.rank + 2) % 3), comm.send(b"%7d" % comm.rank * 100000, (comm.rank + 1) % 3)]
            for request in requests:
                request.wait(LONG)
            self.assertEqual((text, got), (b"%7d" % 2 * 100000, b"%7d" % ((comm.rank + 2) % 3) * 100000))
            self.assertEqual(set(sums) == {3.0}, comm.rank == 1)

        try:
            good(with_ranks(3, run, job=7, **DBLP))
        finally:
            until(lambda: not sockets())
            dblpctl("job", "del", "7")

    def test_sockets_show_their_job_and_rank(self):
        code = ("with dblp.Comm(0, 1, Store().kv(), transport='dblp', job=7):\n"
                " print('open', flush=True)\n sys.stdin.read()")
        dblpctl("job", "add", "7", "name", "resnet")
        try:
            for env, rank in ({}, 0), ({"RANK": "5"}, 5):
                with process(code, env={**os.environ, **env}, stdin=subprocess.PIPE, cwd=HERE) as p:
                    self.assertEqual(p.stdout.readline(), "open\n")
                    [s] = json.loads(dblpctl("-j", "socket", "list", "-p"))
                    self.assertEqual((s["job_name"], [(q["pid"], q["rank"]) for q in s["processes"]]),
                                     ("resnet", [(p.pid, rank)]))
                    self.assertEqual(dblpctl("socket", "list", "-p").split()[-3:-1], ["resnet", str(rank)])
                    self.assertIn("job 7 (resnet)", " ".join(dblpctl("socket", "show", str(s["id"])).split()))
                    p.communicate("", LONG)
        finally:
            until(lambda: not sockets())
            dblpctl("job", "del", "7")

    def test_sockets_are_in_the_job_and_norms_move_it(self):
        dblpctl("job", "add", "7", "clr", "on")
        try:
            with dblp.Comm(0, 1, Store().kv(), job=7):
                for norm, phase in (8, "critical"), (7.5, "tolerant"), (1, "critical"):
                    dblp.report_norm(7, norm)
                    job = json.loads(dblpctl("-j", "job", "show", "7"))
                    self.assertEqual((job["phase_name"], job["sockets"]), (phase, 1))
            with self.assertRaisesRegex(FileNotFoundError, "there is no such job"):
                dblp.report_norm(8, 1)
        finally:
            until(lambda: not sockets())
            dblpctl("job", "del", "7")


class Launcher(unittest.TestCase):
    def test_ranks_of_dblp_run_use_it(self):
        code = ("import array, os, dblp\nwith dblp.Comm() as comm:\n v = array.array('f', [1]) * 100000\n"
                " r = comm.allreduce(v, op=dblp.Op(os.environ['DBLP_BUDGET'], policy='eager')).wait()\n"
                " print(comm.describe().split(' at ')[0], r.budget_most)")
        p = subprocess.run([sys.executable, "-m", "dblp.run", "-n", "2", "--budget", "2%", "--require", "--",
                            sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=LONG, check=False)
        self.assertEqual((p.returncode, sorted(p.stdout.splitlines())), (0, [
            f"[{r}] rank {r} of 2, epoch 0, over dblp 20000" for r in range(2)]), p.stderr)
        self.assertRegex(p.stderr, r"progress: operation 1, .*% missing, budget 2%\n")

    def test_needs_neither_root_nor_files_of_the_module(self):
        # As in a container: no other files, networks and rights
        enter = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "unshare", "--user", "--map-root-user",
                 "--net", "--mount", "--pid", "--fork", "sh", "-c",
                 "mount -t tmpfs none /lib/modules && ip link set lo up && exec $0 \"$@\""]
        code = ("import array, dblp\nwith dblp.Comm() as comm:\n v = array.array('i', [1])\n"
                " comm.allreduce(v).wait()\n print(v[0], comm.describe().split(' at ')[0])")
        p = subprocess.run([*enter, sys.executable, "-m", "dblp.run", "-n", "2", "--require", "--", sys.executable,
                            "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG,
                           check=False)
        self.assertEqual((p.returncode, sorted(p.stdout.splitlines())), (0, [
            f"[{r}] 2 rank {r} of 2, epoch 0, over dblp" for r in range(2)]), p.stderr)

    def test_says_so_when_an_operator_changes_budgets(self):
        code = ("import array, dblp\nwith dblp.Comm() as comm:\n while True:\n"
                "  comm.allreduce(array.array('f', [1]) * 100000, op=dblp.Op('2%', policy='eager')).wait()\n"
                "  assert comm.allreduce(array.array('f', [1]) * 100000, op=dblp.Op(0)).wait().budget_most == 0")
        with subprocess.Popen([sys.executable, "-m", "dblp.run", "-n", "2", "--", sys.executable, "-c", code],
                              stderr=subprocess.PIPE, text=True) as p:
            try:
                self.assertTrue(any(line.endswith("budget 0% ... 2%\n") for line in p.stderr))
                for s in json.loads(dblpctl("-j", "socket", "list", "state", "established")):
                    dblpctl("socket", "set", str(s["id"]), "loss", "25%")
                self.assertTrue(any(line.endswith("budget 0% ... 25%\n") for line in p.stderr))
            finally:
                p.terminate()
                p.communicate(timeout=LONG)


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
