# SPDX-License-Identifier: GPL-2.0-only
"""dblp.torch, by real DDPs over TCP. The scenarios of ranks are in ddp.py."""

import array
import contextlib
import errno
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

import torch
import torch.distributed as dist

import dblp
import dblp.torch
from common import LONG, good, torchrun_options, until, with_ranks
from device import FakeTorchDevice
from dblp.staging import Stager
from dblp.tensors import stager
from fakedevice import Stream
from test_run import ended, run, start

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "ddp.py")


def ranks(n, scenario, *options, **more):
    return run("-n", str(n), "--transport", "tcp", *options, SCRIPT, scenario, **more)


def said(lines):
    """Output of ranks, by rank"""
    return [line.split("] ", 1)[1] for line in sorted(lines)]


class Replicas(unittest.TestCase):
    """All ranks end with the same bits, which are nearly those of Gloo"""

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

    def test_of_some_ranks_and_then_of_all(self):
        self.same(3, "some")

    def test_when_ranks_have_different_numbers_of_batches(self):
        self.same(3, "join")

    def test_when_a_rank_moves_its_parameters(self):
        self.same(2, "swapped")

    def test_whatever_the_loss_scale(self):
        self.same(2, "scaled")

    def prints(self, n, scenario, line, *options):
        status, out, err = ranks(n, scenario, "--require", "--no-hook", *options)
        self.assertEqual((status, said(out)), (0, [line] * n), err)
        return err

    def test_are_those_of_gloo_with_all_options_of_ddp(self):
        self.prints(2, "matrix", "the same 96")

    def test_have_what_cannot_be_summed_from_gloo(self):
        err = self.prints(2, "sparse", "sparse")
        self.assertEqual(err.count("sparse_coo of torch.float32 use PyTorch's own path"), 2)

    def test_that_are_copied_go_by_it_or_say_so(self):
        status, out, err = ranks(2, "copied", "--require", "--no-hook")
        self.assertEqual(status, 0, err)
        self.assertEqual(out.count("[0] copied") + out.count("[1] copied"), 2)
        self.assertEqual(len(set(said(out))), 2, out)
        self.assertEqual(err.count("an unpickled DistributedDataParallel uses PyTorch's own path"), 2)


class Staged(unittest.TestCase):
    """Gradients on a device, which is this process: the whole way by pinned memory, over TCP"""

    def ranks(self, n, scenarios, *options, script=SCRIPT):
        with tempfile.TemporaryDirectory() as folder:
            return run("-n", str(n), "--transport", "tcp", "--no-hook", *options, script, *scenarios.split(),
                       env={**os.environ, "DDP_DEVICE": "fake", "DDP_FOLDER": folder})

    def same(self, n, lines, scenarios):
        status, out, err = self.ranks(n, scenarios, "--require")
        self.assertEqual(status, 0, err)
        by_rank = [[line.split("] ", 1)[1] for line in out if line.startswith(f"[{rank}] ")] for rank in range(n)]
        self.assertEqual(by_rank, by_rank[:1] * n, out)
        self.assertEqual(len(by_rank[0]), lines, out)
        return by_rank[0]

    def test_gradients_have_the_bits_of_gloo_with_all_options_of_ddp(self):
        self.assertEqual(self.same(2, 1, "matrix"), ["the same 96"])

    def test_replicas_are_the_same_whatever_is_in_buckets(self):
        self.same(2, 6, "sparse swapped scaled fp16 two")
        self.same(2, 4, "copied again")
        self.same(3, 5, "lanes plain rebuilt no_sync join")

    def test_norms_of_gradients_are_told_to_the_job(self):
        status, out, err = self.ranks(3, "norms", "--job", "7", "--norms", "3")
        self.assertEqual((status, said(out)), (0, ["norms"] * 3), err)

    def test_all_learn_which_rank_failed_in_backward(self):
        status, out, err = self.ranks(3, "crash")
        self.assertEqual(status, 7, err)
        self.assertLessEqual(set(out), {"[0] error 1", "[2] error 1"})

    def test_a_bucket_that_cannot_begin_on_a_rank_fails_on_all(self):
        status, out, err = self.ranks(2, "unbegun")
        self.assertEqual((status, out), (7, ["[0] error 1"]), err)


    def gpu(self, *names, **env):
        with start("--cuda", *names, launch=[sys.executable, os.path.join(HERE, "run")], env={**os.environ, **env}) as p:
            return ended(p)

    def test_backward_neither_waits_for_the_device_nor_stops_sums(self):
        status, out, err = self.ranks(2, "amp overlap unsynchronised", "--job", "7", script=os.path.join(HERE, "gpu.py"))
        self.assertEqual((status, said(out)), (0, ["0.0e+00 from Gloo", "6 buckets", "6 buckets"]), err)

    def test_the_checks_of_a_gpu_are_a_table(self):
        status, out, err = self.gpu("plain pinned", DDP_DEVICE="fake")
        self.assertEqual(status, 0, out)
        self.assertRegex("\n".join(out), r"(?s)1 of 1 passed.*staging, .* ok +0.* of .* GB/s +>= 0.8")

    @unittest.skipIf(torch.cuda.is_available(), "this machine has a GPU")
    def test_the_checks_of_a_gpu_say_that_there_is_none(self):
        status, out, err = self.gpu(DDP_DEVICE="cpu")
        self.assertEqual(status, 4)
        for text in *out, err:
            self.assertRegex(text, "TAP version|finds no GPU on this machine: nothing was tested")


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
        self.assertEqual(err.count("a gradient with norm nan is omitted from the mean reported to job 7"), 2)


class Failures(unittest.TestCase):
    def test_all_learn_which_rank_failed_in_backward(self):
        status, out, err = ranks(3, "crash")
        self.assertEqual(status, 7, err)
        self.assertIn("rank 1 has failed with exit status 7: the others are ended", err)
        self.assertLessEqual(set(out), {"[0] error 1", "[2] error 1"})

    def test_a_bucket_that_cannot_begin_on_a_rank_fails_on_all(self):
        status, out, err = ranks(2, "unbegun", "--no-hook")
        self.assertEqual((status, out), (7, ["[0] error 1"]), err)

    def test_ranks_that_were_told_different_budgets_fail(self):
        status, out, err = ranks(2, "differ", "--no-hook")
        self.assertEqual(status, 0, err)
        self.assertEqual([line.split(" has failed: ")[1] for line in out], ["Protocol error"] * 2)

    def test_what_cannot_be_is_refused(self):
        status, out, err = ranks(2, "refused", "--no-hook")
        self.assertEqual((status, said(out)), (0, ["refused"] * 2), err)


    def test_a_rank_that_begins_no_operation_is_named_at_the_time_limit(self):
        status, out, err = ranks(3, "stalled", "--no-hook")
        self.assertEqual(status, 7, err)
        self.assertLessEqual(set(said(out)), {"(1,) rank 1 has not begun it"}, out)
        self.assertTrue(out, err)

    def test_a_wait_in_backward_is_interrupted(self):
        status, out, err = ranks(2, "interrupted", "--no-hook")
        self.assertEqual((status, out), (7, ["[0] interrupted"]), err)


class Starts(unittest.TestCase):
    """Process groups of PyTorch's launcher, and restarts"""

    def test_ranks_may_come_as_late_as_the_process_group_allows(self):
        status, out, err = ranks(2, "skewed", "--no-hook")
        self.assertEqual((status, len(set(said(out)))), (0, 1), err)

    def test_communicators_end_with_their_groups(self):
        with unittest.mock.patch.dict("os.environ", DBLP_TRANSPORT="tcp"):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
            other = dist.new_group([0])
            comms = [dblp.torch.communicator(group) for group in (None, other)]
            for group, closed in ((dist.GroupMember.NON_GROUP_MEMBER, [False, False]), (other, [False, True]),
                                  (None, [True, True])):
                dist.destroy_process_group(group)
                self.assertEqual(["closed" in repr(comm) for comm in comms], closed)

    def test_a_process_may_have_one_group_after_another(self):
        with tempfile.TemporaryDirectory() as folder:
            status, out, err = ranks(2, "again", "--no-hook", env={**os.environ, "DDP_FOLDER": folder})
        self.assertEqual((status, len(out), len(set(said(out)))), (0, 2, 1), err)

    def test_torchrun_starts_ranks_again_after_a_failure(self):
        how, env = torchrun_options()
        with tempfile.TemporaryDirectory() as folder:
            # -r and -t: Debian 12's torchrun fails without them, on Python 3.11
            got = subprocess.run([sys.executable, "-m", "torch.distributed.run", *how, "--nproc_per_node", "2",
                                  "--max_restarts", "2", "-r", "1", "-t", "1", "--log_dir", folder, SCRIPT, "elastic"],
                                 env={**os.environ, **env, "DBLP_TRANSPORT": "tcp", "DDP_FOLDER": folder}, timeout=LONG * 4,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        ends = sorted(line.split(":", 1)[1] for line in got.stdout.splitlines())
        self.assertEqual((got.returncode, len(ends), len(set(ends))), (0, 2, 1), got.stdout + got.stderr)
        self.assertRegex(ends[0], "from round 7 on, start 2: ")


class Unmodified(unittest.TestCase):
    def test_scripts_may_have_a_first_pass_on_one_rank_and_ranks_without_data(self):
        for scenario in "alone", "uneven":
            status, out, err = ranks(2, scenario, "--require", "--budget", "2%")
            self.assertEqual((status, len(out), len(set(said(out)))), (0, 2, 1), err)

    def test_scripts_go_by_it_without_a_line_of_their_own(self):
        status, out, err = ranks(2, "unmodified", "--require", "--budget", "2%")
        self.assertEqual(status, 0, err)
        # The sum of two numbers has one order: the bits of Gloo
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
    """The part of a DDP bucket that dblp.torch uses"""

    def __init__(self, *parameters, index=0):
        self._parameters, self._index = parameters, index
        self._buffer = torch.cat([p.flatten() for p in parameters])

    def parameters(self):
        return self._parameters

    def buffer(self):
        return self._buffer

    def index(self):
        return self._index

    def is_last(self):
        return True


class Scaler:
    def __init__(self, scale):
        self.scale = scale

    def get_scale(self):
        return self.scale


def elsewhere():
    """Another default device than the CPU, where PyTorch can change it"""
    return torch.device("meta") if hasattr(torch.device, "__enter__") else contextlib.nullcontext()


class Residuals(unittest.TestCase):
    """Residuals of two ranks that prune: the elements that a rank does not send. Each gradient is 1."""

    SIZE = 2000
    HOW = dict(sparse=True, prune="20%", block=16)

    def rounds(self, state, total, n, scale=1, dtype=torch.float32, layout=((0, 1), (2,))):
        """Carry out n rounds, and add their gradients to the applied ones"""
        for _ in range(n):
            for places in layout:
                bucket = Bucket(*(self.parameters[self.of(state)][p] for p in places))
                bucket.buffer()[:] = scale
                bucket._buffer = bucket.buffer().to(dtype)
                with elsewhere():
                    dblp.torch.hook(state, bucket).wait()
                for p, part in zip(places, bucket.buffer().float().split(self.SIZE)):
                    total[p] += part / scale

    def of(self, state):
        return state.comm.rank

    def setUp(self):
        self.parameters = [[torch.ones(self.SIZE) for _ in range(3)] for _ in range(2)]

    def off(self, total, n):
        return (total - n).abs().max().item()

    def run_ranks(self, function):
        def run(comm):
            return function(comm, torch.zeros(3, self.SIZE))

        return good(with_ranks(2, run))

    def test_follow_the_loss_scale(self):
        for dtype in torch.float32, torch.float16:
            for own in False, True:
                def run(comm, total, dtype=dtype, own=own):
                    scaler = Scaler(2.0 ** 14)
                    state = dblp.torch.State(comm, scaler=None if own else scaler, **self.HOW)
                    self.rounds(state, total, 5, scaler.scale, dtype)
                    self.assertTrue(any(r.any() for r in state.state_dict()["residuals"].values()))
                    if own:
                        state.scale(2.0 ** 8 / scaler.scale)
                    scaler.scale = 2.0 ** 8
                    self.rounds(state, total, 5, scaler.scale, dtype)
                    self.assertLessEqual(self.off(total, 10), 1)
                    state.how.update(prune=0)
                    self.rounds(state, total, 1, scaler.scale, dtype)
                    self.assertEqual(self.off(total, 11), 0)

                self.run_ranks(run)

    def test_follow_parameters_to_other_buckets_and_checkpoints(self):
        def run(comm, total):
            state = dblp.torch.State(comm, **self.HOW)
            self.rounds(state, total, 3)
            kept = state.state_dict()
            self.rounds(state, total, 2, layout=((2, 1), (0,)))
            with elsewhere():
                stored = pickle.dumps(state)
            del state
            # The residual of the DDP is freed, when the thread of the State has dropped the last future
            until(lambda: not any(comm.residual((1 << 32) + i, array.array("f", [0] * size))
                                  for i, size in enumerate((2, 1, 2, 1)) for size in (size * self.SIZE,)))
            state = pickle.loads(stored)
            # Without a process group the state cannot open a communicator
            state._comm = comm
            self.rounds(state, total, 2, layout=((0,), (1, 2)))
            state.how.update(prune=0)
            self.rounds(state, total, 1, layout=((0,), (1, 2)))
            # Parameters are numbered in the order of the buckets
            self.assertEqual(self.off(total, 8), 0)
            return sum(r.abs().sum().item() for r in kept["residuals"].values())

        self.assertGreater(sum(self.run_ranks(run)), 0)

    def test_of_gradients_on_a_device_are_those_after_all_that_was_begun(self):
        near, flush = threading.local(), Stager.flush

        def noted(stager, *args, **how):
            # Rank 1 begins its operation when rank 0, whose operation has begun, waits for the end
            if near.rank == 0:
                waiting.set()
            else:
                self.assertTrue(waiting.wait(LONG))
                near.device.current.release()
            return flush(stager, *args, **how)

        def run(comm, total, use):
            near.rank, near.device = comm.rank, FakeTorchDevice()
            state = dblp.torch.State(comm)
            state.load_state_dict({"residuals": {"0": torch.ones(4)}, "scale": 1})
            if comm.rank:
                near.device.current = Stream()
                near.device.current.hold()
            bucket = Bucket(torch.zeros(4))
            future = dblp.torch.hook(state, bucket)
            if comm.rank == 0:
                stager(comm).flush(LONG)
            begun.wait(LONG)
            use(state)
            future.wait()
            return bucket.buffer().tolist(), {name: r.tolist() for name, r in state.state_dict()["residuals"].items()}

        for use, left in ((dblp.torch.State.state_dict, [0.0]), (lambda state: state.scale(2.0), [0.0]), (dblp.torch.State.reset, []),
                          (lambda state: state.load_state_dict({"residuals": {"0": torch.full((4,), 3.0)}, "scale": 1}), [3.0])):
            waiting, begun = threading.Event(), threading.Barrier(2)
            with unittest.mock.patch("dblp.torch.device_of", lambda _: near.device), \
                    unittest.mock.patch("dblp.tensors.Stager.flush", noted):
                got = self.run_ranks(lambda comm, total, use=use: run(comm, total, use))
            self.assertEqual(got, [([1.0] * 4, {"0": value * 4 for value in [left] if value})] * 2)

    def assert_load_is_refused(self, state, why, residuals, scale=1):
        """What was there before is left"""
        def kept():
            return {name: tensor.tolist() for name, tensor in state.state_dict()["residuals"].items()}

        before = kept()
        with self.assertRaisesRegex(ValueError, why):
            state.load_state_dict({"residuals": residuals, "scale": scale})
        self.assertEqual(kept(), before)

    def test_of_another_type_and_size_are_loaded_or_refused(self):
        def run(comm, total):
            first = dblp.torch.State(comm, **self.HOW)
            self.rounds(first, total, 3)
            second = dblp.torch.State(comm, **self.HOW)
            second.load_state_dict(first.state_dict())
            self.rounds(second, total, 1, dtype=torch.float16)
            second.how.update(prune=0)
            self.rounds(second, total, 1, dtype=torch.float16)
            self.assertEqual(self.off(total, 5), 0)
            self.assertTrue(first.state_dict()["residuals"])
            self.assert_load_is_refused(first, "residual of 0 has 1 elements, not 2000", {"0": torch.ones(1)})
            self.assert_load_is_refused(first, "scale is not 0", {}, 0)
            first.reset()
            self.assertEqual(first.state_dict()["residuals"], {})
            named = dblp.torch.State(comm, module=torch.nn.Linear(3, 2))
            named.load_state_dict({"residuals": {"weight": torch.ones(6)}, "scale": 1})
            self.assert_load_is_refused(named, "weight has 5 elements, not 6", {"weight": torch.ones(5)})
            self.assert_load_is_refused(named, "of bais, and no such parameter", {"bais": torch.ones(2)})
            for factor in 0, float("inf"):
                with self.assertRaisesRegex(ValueError, "cannot be scaled"):
                    first.scale(factor)

        self.run_ranks(run)


class Ops(unittest.TestCase):
    """Attributes of operations, without ranks"""

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

    def test_how_buckets_are_summed_may_be_an_object(self):
        op = dblp.Op("3%", policy="eager", wait_ms=9)
        by_op, same = dblp.torch.State(self.comm, op=op), dblp.torch.State(self.comm, "3%", "bubble", policy="eager",
                                                                           wait_ms=9)
        self.assertEqual(by_op.how, same.how)
        self.assertEqual(pickle.loads(pickle.dumps(by_op)).how, same.how)
        self.assertRaisesRegex(TypeError, "op excludes", dblp.torch.State, self.comm, "2%", op=op)
        self.assertRaisesRegex(TypeError, "op excludes", dblp.torch.register, None, rule="bubble", op=op)
        average = dblp.torch.State(self.comm, op=dblp.Op("3%", policy="eager", wait_ms=9, average=True))
        self.assertEqual(average.how, by_op.how)
        self.assertRaisesRegex(TypeError, "key is set by the hook", dblp.torch.State, self.comm, op=dblp.Op(key=1))

    def test_each_bucket_has_a_key_wherever_its_parameters_are(self):
        state = dblp.torch.State(self.comm, "2%")
        other = dblp.torch.State(self.comm, "3%", rule="bubble")
        a, b, c = torch.ones(3), torch.ones(3), torch.ones(3)
        keys = set()
        for bucket in Bucket(a), Bucket(b, c):
            flag, budget, key, rule = self.reduce(state, bucket)
            self.assertEqual((flag, budget, rule), (1, 20000, dblp.Rule.DBLP_FEEDBACK))
            # As by a script that evaluates with averages of parameters
            a.data = a.data.clone()
            self.assertEqual(self.reduce(state, bucket)[2], key)
            keys.add(key)
        flag, budget, key, rule = self.reduce(other, Bucket(a))
        self.assertEqual((budget, rule), (30000, dblp.Rule.DBLP_BUBBLE))
        # One key for each vector, above the keys of programs
        self.assertEqual(len(keys | {key}), 3)
        self.assertGreaterEqual(min(keys), 1 << 32)
        self.assertEqual((state.buckets, other.buckets), (4, 1))

    def test_attributes_are_built_once_for_each_bucket(self):
        state = dblp.torch.State(self.comm, "2%")
        buckets = Bucket(torch.ones(3)), Bucket(torch.ones(4))
        with unittest.mock.patch.object(dblp.torch, "make_op", wraps=dblp.torch.make_op) as built:
            for bucket in buckets * 3:
                self.reduce(state, bucket)
            self.assertEqual(built.call_count, 2)
            state.how.update(budget="3%")
            self.assertEqual(self.reduce(state, buckets[0])[1], 30000)

    def test_a_key_that_is_in_use_keeps_no_other_residual(self):
        state = dblp.torch.State(self.comm, "2%")
        for bucket in Bucket(torch.ones(3)), Bucket(torch.ones(4)):
            self.reduce(state, bucket)
        with unittest.mock.patch.object(self.comm, "forget", side_effect=OSError(errno.EBUSY, "in use")) as forget:
            state._residuals.end()
        self.assertEqual(forget.call_count, 2)

    def test_parameters_on_a_device_without_pinned_memory_are_refused(self):
        with self.assertRaisesRegex(TypeError, "on meta, a device without streams: only those in"):
            dblp.torch.State(self.comm, module=torch.nn.Linear(2, 2, device="meta"))
        # A device of which PyTorch knows more than this machine
        name = "xpu" if torch.cuda.is_available() else "cuda"
        self.assertRaisesRegex(TypeError, f"on {name}, and PyTorch has no pinned", dblp.accelerator.device_of, name)

    def test_numbers_of_the_environment_that_are_wrong_are_named(self):
        for name, function in (("DBLP_NORMS", dblp.torch.register), ("DBLP_JOB", dblp.torch.communicator),
                               ("TORCHELASTIC_RESTART_COUNT", dblp.torch.communicator)):
            with unittest.mock.patch.dict(os.environ, {name: "1x"}), \
                    self.assertRaisesRegex(ValueError, name + "=1x of the environment is not a number"):
                function(unittest.mock.Mock(_get_fsdp_state=None))

    def test_without_a_budget_the_phase_or_the_job_says_it(self):
        self.assertEqual(self.reduce(dblp.torch.State(self.comm), Bucket(torch.ones(3)))[:2], (0, 0))

    def test_a_norm_that_the_kernel_does_not_take_is_left_out(self):
        norms = dblp.torch._Norms(7, 1)
        with unittest.mock.patch.object(dblp.torch, "report_norm") as told, self.assertLogs("dblp", "WARNING"):
            for value, scale in (2.0 ** 32, 1), (2.0 ** 34, 8), (2.0 ** 100, 1):
                norms.add(torch.tensor([value]))
                norms.report(float(norms.take()), scale)
        self.assertEqual([call.args for call in told.call_args_list], [(7, 2.0 ** 31)])

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
        with self.assertRaisesRegex(ValueError, "lanes and options are for"):
            dblp.torch.register(None, comm=self.comm, lanes=[dblp.Lane()])
        with self.assertRaisesRegex(TypeError, "parts is set by the hook"):
            dblp.torch.State(self.comm, parts=[])

    def test_what_is_not_in_memory_of_the_cpu_is_refused(self):
        state = dblp.torch.State(self.comm)
        bucket = types.SimpleNamespace(parameters=lambda: (), buffer=lambda: torch.ones(3, device="meta"))
        with self.assertLogs("dblp", "ERROR"), self.assertRaisesRegex(TypeError, "on meta, a device without streams: only those in"):
            dblp.torch.hook(state, bucket)
        self.assertIsInstance(state.error, TypeError)


if __name__ == "__main__":
    unittest.main()
