# SPDX-License-Identifier: GPL-2.0-only
"""dblp.torch, by real DDPs over TCP: what ranks do is in ddp.py."""

import os
import sys
import tempfile
import types
import unittest

import torch

import dblp
import dblp.torch
from test_run import run

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "ddp.py")


def ranks(n, scenario, *options, **more):
    return run("-n", str(n), "--transport", "tcp", *options, SCRIPT, scenario, **more)


def said(lines):
    """What ranks have said, by rank"""
    return [line.split("] ", 1)[1] for line in sorted(lines)]


class Replicas(unittest.TestCase):
    """All ranks end with the same bits, and nearly those of Gloo"""

    def same(self, n, scenario, kinds=1, models=1):
        status, out, err = ranks(n, scenario, "--require", "--no-hook")
        self.assertEqual(status, 0, err)
        self.assertEqual(len(out), n * models, out)
        self.assertEqual(len(set(said(out))), kinds, out)

    def test_with_unequal_buckets_and_parameters_without_gradients(self):
        self.same(4, "plain")

    def test_whose_gradients_go_by_lanes(self):
        self.same(3, "lanes")

    def test_when_buckets_are_rebuilt(self):
        self.same(3, "rebuilt")

    def test_when_gradients_are_accumulated_without_sync(self):
        self.same(2, "no_sync")

    def test_with_gradients_of_16_bits(self):
        self.same(2, "fp16")

    def test_of_two_models_in_turn(self):
        self.same(2, "two", 2, 2)

    def test_of_groups_of_ranks(self):
        self.same(4, "group", 2)


class Averages(unittest.TestCase):
    def test_are_of_groups_in_turn_and_at_the_end_of_all(self):
        status, out, err = ranks(4, "averager", "--require")
        self.assertEqual((status, out), (0, []), err)

    def test_keep_replicas_near_each_other_and_at_the_end_the_same(self):
        status, out, err = ranks(4, "shuffled", "--require")
        self.assertEqual((status, len(out), len(set(said(out)))), (0, 4, 1), err)

    def test_of_what_cannot_be_are_refused(self):
        status, out, err = ranks(2, "averager_refused")
        self.assertEqual((status, said(out)), (0, ["refused"] * 2), err)


class Norms(unittest.TestCase):
    def test_of_gradients_are_told_to_the_job_once_for_each_host(self):
        status, out, err = ranks(3, "norms", "--no-hook", "--job", "7", "--norms", "3")
        self.assertEqual((status, said(out)), (0, ["norms"] * 3), err)
        self.assertEqual(err.count("a gradient whose norm is nan is not in the mean that job 7 is told"), 2)


class Failures(unittest.TestCase):
    def test_all_learn_which_rank_failed_in_backward(self):
        status, out, err = ranks(3, "crash")
        self.assertEqual(status, 7, err)
        self.assertIn("rank 1 has failed with exit status 7: the others are ended", err)
        self.assertLessEqual(set(out), {"[0] error 1", "[2] error 1"})

    def test_ranks_that_were_told_different_budgets_fail(self):
        status, out, err = ranks(2, "differ", "--no-hook")
        self.assertEqual(status, 0, err)
        self.assertEqual([line.split(" has failed: ")[1] for line in out], ["Protocol error"] * 2)

    def test_what_cannot_be_is_refused(self):
        status, out, err = ranks(2, "refused", "--no-hook")
        self.assertEqual((status, said(out)), (0, ["refused"] * 2), err)


class Unmodified(unittest.TestCase):
    def test_scripts_go_by_it_without_a_line_of_their_own(self):
        status, out, err = ranks(2, "unmodified", "--require", "--budget", "2%")
        self.assertEqual(status, 0, err)
        # Of two numbers there is one sum: to the bit that of Gloo
        gloo = ranks(2, "unmodified", "--no-hook")
        self.assertEqual(gloo[:2], (0, out))
        self.assertIn("over tcp at", err)
        self.assertNotIn("over tcp at", gloo[2])
        status, _, err = ranks(2, "unmodified", "--no-hook", "--require")
        self.assertEqual(status, 1)
        self.assertIn("without having used dblp", err)

    def test_a_hook_of_the_script_is_left(self):
        status, out, err = ranks(2, "own", "--budget", "2%")
        self.assertEqual((status, said(out)), (0, ["own"] * 2), err)
        self.assertNotIn("over tcp at", err)

    def test_another_module_for_the_site_is_not_hidden(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="ascii") as f:
                f.write("import sys\nsys.site_is_mine = True\n")
            env = {**os.environ, "PYTHONPATH": folder + ":" + os.environ["PYTHONPATH"]}
            got = run("-n", "1", "--transport", "tcp", "--", sys.executable, "-c",
                      "import sys; print(sys.site_is_mine, 'torch' in sys.modules, 'dblp' in sys.modules)",
                      env=env)
        self.assertEqual(got[:2], (0, ["[0] True False False"]), got[2])


class Bucket:
    """As much of a bucket of DDP as is looked at"""

    def __init__(self, *parameters):
        self._parameters = parameters
        self._buffer = torch.cat([p.flatten() for p in parameters])

    def parameters(self):
        return self._parameters

    def buffer(self):
        return self._buffer


class Ops(unittest.TestCase):
    """What an operation is, without ranks"""

    def setUp(self):
        attributes = dict(rendezvous=({}.__setitem__, {}.get), transport="tcp")
        self.comm = self.enterContext(dblp.Comm(0, 1, **attributes))
        self.ops = []
        begin = self.comm._begin

        def note(function, address, count, how, keep):
            self.ops.append((how.flags & dblp.OpFlags.DBLP_OP_BUDGET, how.budget, how.key, how.rule))
            return begin(function, address, count, how, keep)

        self.comm._begin = note

    def reduce(self, state, bucket):
        self.assertIs(dblp.torch.hook(state, bucket).wait(), bucket.buffer())
        return self.ops.pop()

    def test_nothing_may_be_lost_the_first_time_that_a_bucket_comes(self):
        state = dblp.torch.State(self.comm, "2%")
        other = dblp.torch.State(self.comm, "3%", rule="bubble")
        a, b = torch.ones(3), torch.ones(3)
        first, second, turned = Bucket(a), Bucket(a, b), Bucket(b, a)
        keys = set()
        for bucket in first, second, turned:
            self.assertEqual(self.reduce(state, bucket)[:3], (1, 0, 0))
            flag, budget, key, rule = self.reduce(state, bucket)
            self.assertEqual((flag, budget, rule), (1, 20000, dblp.Rule.DBLP_FEEDBACK))
            self.assertEqual(self.reduce(state, bucket)[2], key)
            keys.add(key)
        self.assertEqual(self.reduce(other, first)[:2], (1, 0))
        flag, budget, key, rule = self.reduce(other, first)
        self.assertEqual((budget, rule), (30000, dblp.Rule.DBLP_BUBBLE))
        # One for each vector; none that programs are likely to choose
        self.assertEqual(len(keys | {key}), 4)
        self.assertGreaterEqual(min(keys), 1 << 32)
        self.assertEqual((state.buckets, other.buckets), (9, 2))

    def test_without_a_budget_the_phase_or_the_job_says_it(self):
        state, bucket = dblp.torch.State(self.comm), Bucket(torch.ones(3))
        self.assertEqual(self.reduce(state, bucket)[:2], (1, 0))
        self.assertEqual(self.reduce(state, bucket)[:2], (0, 0))

    def test_parameters_go_by_the_lanes_that_they_are_given(self):
        front, large = torch.ones(3), torch.ones(5)
        got = []
        begin = self.comm._begin

        def note(function, address, count, how, keep):
            got.append([(how.part[i].first, how.part[i].end, how.part[i].lane) for i in range(how.parts)])
            # This communicator has one lane
            how.parts, how.part = 0, None
            return begin(function, address, count, how, keep)

        self.comm._begin = note
        state = dblp.torch.State(self.comm, "2%", lane_of=lambda p: int(p is large))
        self.reduce(state, Bucket(front, front, large, torch.ones(0), front))
        self.reduce(state, Bucket(large))
        self.assertEqual(got, [[(0, 6, 0), (6, 11, 1), (11, 14, 0)], [(0, 5, 1)]])
        with self.assertRaisesRegex(ValueError, "a communicator that is open has its lanes"):
            dblp.torch.register(None, comm=self.comm, lanes=[dblp.Lane()])
        with self.assertRaisesRegex(TypeError, "parts is not for who calls this"):
            dblp.torch.State(self.comm, parts=[])

    def test_what_is_not_in_memory_of_the_cpu_is_refused(self):
        state = dblp.torch.State(self.comm)
        bucket = types.SimpleNamespace(parameters=lambda: (), buffer=lambda: torch.ones(3, device="meta"))
        with self.assertLogs("dblp", "ERROR"), self.assertRaisesRegex(TypeError, "on meta: only dense"):
            dblp.torch.hook(state, bucket)
        self.assertIsInstance(state.error, TypeError)


if __name__ == "__main__":
    unittest.main()
