# SPDX-License-Identifier: GPL-2.0-only
"""The backend "dblp" of torch.distributed, over TCP, with ranks that are threads of this process."""

import concurrent.futures
import contextlib
import datetime
import functools
import gc
import importlib.util
import itertools
import operator
import os
import select
import threading
import types
import unittest
import unittest.mock
import weakref

import torch
import torch.distributed as dist

destroy = dist.destroy_process_group

import dblp
import dblp.torch
from common import LONG, good, until
from device import FakeTorchDevice
from dblp.accelerator import Accelerator, device_of
from dblp.staging import Stager
from fakedevice import FakeDevice, Stream

NEW = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6)
if NEW:
    from dblp.backend import ProcessGroup, create
    from dblp.options import Options, lossy

SUMMED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8,
          torch.complex64)
FOLDED = (torch.int8, torch.int16)
RO = dist.ReduceOp


def with_groups(n, function, options=None, timeout=LONG, **each):
    """Call function(group) in n threads; returns results or exceptions. each: a list for a rank, by keyword"""
    store, outcome, barrier = dist.HashStore(), [None] * n, threading.Barrier(n)

    def run(rank):
        group = None
        try:
            more = {name: values[rank] for name, values in each.items()}
            group = ProcessGroup(**{**dict(store=store, rank=rank, size=n, ranks=list(range(n)), options=options[rank] if isinstance(options, list) else options or Options(),
                                           timeout=datetime.timedelta(seconds=timeout)), **more})
            outcome[rank] = function(group)
            barrier.wait(LONG)
        except BaseException as e:
            outcome[rank] = e
            barrier.abort()
        finally:
            if group is not None:
                group.shutdown()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    with unittest.mock.patch.dict("os.environ", DBLP_TRANSPORT="tcp"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * LONG)
            assert not thread.is_alive(), "a rank has not ended"
    return [e if not isinstance(e, threading.BrokenBarrierError) else None for e in outcome]


def values(rank, shape, dtype):
    """Small integers, whose sums are exact in all types; strides that are not contiguous"""
    n = max(1, functools.reduce(operator.mul, shape, 1))
    flat = (torch.arange(n) * 3 + rank) % 5 + 1
    t = flat[:functools.reduce(operator.mul, shape, 1)].to(dtype)
    return t.reshape(shape[::-1]).permute(*reversed(range(len(shape)))) if len(shape) > 1 else t.reshape(shape)


def layouts(t):
    """The tensor itself, and as a view with gaps"""
    wide = torch.zeros((*t.shape, 2), dtype=t.dtype)
    wide[..., 1] = t
    return t, wide[..., 1]


SHAPES = ((), (1,), (0,), (7,), (5, 3), (3, 0), (50, 41))


class Test(unittest.TestCase):
    def run_ranks(self, n, function, **more):
        return good(with_groups(n, function, **more))

    def assert_same(self, got, want):
        self.assertEqual((got.dtype, tuple(got.shape)), (want.dtype, tuple(want.shape)))
        self.assertTrue(torch.equal(got, want), (got, want))


class Reductions(Test):
    def each(self, n):
        """All operations that types have, on all shapes and strides"""
        for dtype in (*SUMMED, *FOLDED):
            names = ["SUM"]
            if dtype not in (torch.complex64,):
                names += ["MIN", "MAX", "PRODUCT"]
            if dtype.is_floating_point or dtype.is_complex:
                names.append("AVG")
            elif dtype not in (torch.float16,):
                names += ["BAND", "BOR", "BXOR"]
            for name, shape in itertools.product(names, SHAPES if dtype in (torch.float32, torch.int8) else SHAPES[3:5]):
                inputs = [values(rank, shape, dtype) for rank in range(n)]
                yield name, inputs

    def combined(self, name, inputs):
        fold = {"SUM": torch.add, "AVG": torch.add, "MIN": torch.minimum, "MAX": torch.maximum, "PRODUCT": torch.mul,
                "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[name]
        want = functools.reduce(fold, inputs)
        return want / len(inputs) if name == "AVG" else want

    def near(self, got, want, name):
        if name != "AVG":
            self.assert_same(got, want)
        else:
            self.assertEqual(got.dtype, want.dtype)
            self.assertTrue(torch.allclose(got, want, rtol=1e-2))

    def test_all_reduce_combines_all_types_shapes_and_strides_in_place(self):
        def run(group):
            opts = dist.AllreduceOptions()
            for name, inputs in self.each(group.size()):
                opts.reduceOp = getattr(RO, name)
                for t in layouts(inputs[group.rank()].clone()):
                    work = group.allreduce([t], opts)
                    self.assertTrue(work.wait())
                    self.near(t, self.combined(name, inputs), name)
        for n in 1, 2, 3:
            self.run_ranks(n, run)

    def test_reduce_changes_the_root_only(self):
        def run(group):
            opts = dist.ReduceOptions()
            for i, (name, inputs) in enumerate(self.each(group.size())):
                opts.reduceOp, opts.rootRank = getattr(RO, name), i % group.size()
                for t in layouts(inputs[group.rank()].clone()):
                    group.reduce([t], opts).wait()
                    if group.rank() == opts.rootRank:
                        self.near(t, self.combined(name, inputs), name)
                    else:
                        self.assert_same(t, inputs[group.rank()])
        self.run_ranks(3, run)

    def test_reduce_scatter_gives_each_rank_its_part_and_keeps_inputs(self):
        def run(group):
            n, rank = group.size(), group.rank()
            opts = dist.ReduceScatterOptions()
            for name, inputs in self.each(n):
                opts.reduceOp = getattr(RO, name)
                for own in layouts(torch.zeros_like(inputs[0])):
                    # Part i of rank r has the values of rank r + i
                    parts = [inputs[(rank + i) % n].clone() for i in range(n)]
                    want = self.combined(name, [inputs[(r + rank) % n] for r in range(n)])
                    group.reduce_scatter([own], [parts], opts).wait()
                    self.near(own, want, name)
                    for i, part in enumerate(parts):
                        self.assert_same(part, inputs[(rank + i) % n])
                    whole = torch.stack(parts)
                    out = torch.zeros_like(own)
                    group._reduce_scatter_base(out, whole, opts).wait()
                    self.near(out, want, name)
                    self.assert_same(whole, torch.stack(parts))
        for n in 1, 2, 3:
            self.run_ranks(n, run)

    def test_reduce_scatter_takes_parts_of_different_sizes(self):
        def run(group):
            n, rank = group.size(), group.rank()
            opts = dist.ReduceScatterOptions()
            for dtype, name in itertools.product((torch.float32, torch.int8), ("SUM", "MAX")):
                opts.reduceOp = getattr(RO, name)
                parts = [torch.full((3 * i, 2), rank + i, dtype=dtype) for i in range(n)]
                out = torch.zeros((3 * rank, 2), dtype=dtype)
                group.reduce_scatter([out], [parts], opts).wait()
                each = [r + rank for r in range(n)]
                self.assert_same(out, torch.full_like(out, sum(each) if name == "SUM" else max(each)))
        self.run_ranks(3, run)

    def test_contributions_are_multiplied_first_by_premul_sum(self):
        def run(group):
            n, rank = group.size(), group.rank()
            opts = dist.AllreduceOptions(), dist.ReduceOptions(), dist.ReduceScatterOptions()
            for one in opts:
                one.reduceOp = dist._make_nccl_premul_sum(0.5)
            for i, t in enumerate(layouts(torch.full((3, n), rank + 1.0))):
                inputs, out = t.clone(), torch.zeros(3)
                group._reduce_scatter_base(out, inputs, opts[2]).wait()
                self.assertEqual((out.tolist(), inputs.tolist()), ([1.5] * 3, [[rank + 1.0] * n] * 3))
                group.reduce_scatter([out], [[torch.full((3,), 2.0 * r) for r in range(n)]], opts[2]).wait()
                self.assertEqual(out.tolist(), [2.0 * rank] * 3)
                opts[1].rootRank = i
                group.reduce([t], opts[1]).wait()
                self.assert_same(t, torch.full((3, n), 1.5 if rank == i else rank + 1.0))
                t.fill_(rank + 1.0)
                group.allreduce([t], opts[0]).wait()
                self.assert_same(t, torch.full((3, n), 1.5))
            with self.assertRaisesRegex(TypeError, "int32 cannot be reduced by PREMUL_SUM"):
                group.allreduce([torch.ones(1, dtype=torch.int32)], opts[0])
        self.run_ranks(2, run)

    def test_types_that_cannot_be_combined_are_refused_on_all_ranks_and_others_go_on(self):
        def run(group):
            opts = dist.AllreduceOptions()
            for dtype, op, why in ((torch.bool, RO.SUM, "bool cannot be reduced by SUM: use BOR"),
                                   (torch.int32, RO.AVG, "int32 cannot be reduced by AVG"),
                                   (torch.float32, RO.BAND, "float32 cannot be reduced by BAND"),
                                   (torch.complex64, RO.MAX, "complex64 cannot be reduced by MAX"),
                                   (torch.float8_e4m3fn, RO.SUM, "float8_e4m3fn cannot be reduced by SUM")):
                opts.reduceOp = op
                with self.assertRaisesRegex(TypeError, why):
                    group.allreduce([torch.ones(3).to(dtype)], opts)
            opts.reduceOp = RO.SUM
            for wrong, why in (([torch.ones(3, device="meta")], "on meta, a device without streams"),
                               ([torch.eye(3).to_sparse()] * 2, "sparse_coo")):
                with self.assertRaisesRegex(TypeError, why):
                    group.allreduce(wrong, opts)
            t = torch.ones(3)
            group.allreduce([t], opts).wait()
            return t.tolist()
        self.assertEqual(self.run_ranks(2, run), [[2.0] * 3] * 2)

    def test_do_not_depend_on_the_default_device(self):
        def run(group):
            n, rank = group.size(), group.rank()
            for dtype in torch.float32, torch.complex64, torch.int8:
                t, outs, whole, part = (torch.full(s, rank + 1).to(dtype) for s in ((3,), (n, 3), (n, 3), (3,)))
                with torch.device("meta"):
                    group.allreduce([t]).wait()
                    group._reduce_scatter_base(part, whole).wait()
                    group.allgather([list(outs)], [part]).wait()
                self.assertEqual((t.tolist(), part.tolist(), outs.tolist()), ([3] * 3, [3] * 3, [[3] * 3] * n))
        self.run_ranks(2, run)

    def test_all_reduce_sums_sparse_tensors(self):
        def run(group):
            n, rank = group.size(), group.rank()
            opts = dist.AllreduceOptions()
            for op, dense in itertools.product((RO.SUM, RO.AVG), (0, 1)):
                opts.reduceOp = op
                # Rank 0 has no element, and each other rank one of its own more, which it has twice
                inputs = [torch.zeros(n + 1, 3) for _ in range(n)]
                for r, one in enumerate(inputs):
                    one[:r + 1, 1] = 2.0 * r
                t = (inputs[rank] / 2).to_sparse(2 - dense)
                t = torch.sparse_coo_tensor(t._indices().repeat(1, 2), t._values().repeat(2, *[1] * dense), t.shape)
                work = group.allreduce([t], opts)
                self.assertIs(work.result()[0], t)
                self.assert_same(t.to_dense(), sum(inputs) / (n if op == RO.AVG else 1))
            opts.reduceOp = RO.MAX
            with self.assertRaisesRegex(TypeError, "sparse tensors of torch.float32 cannot be reduced by MAX"):
                group.allreduce([t], opts)
        for n in 1, 3:
            self.run_ranks(n, run)

    def test_bools_are_combined_as_sets(self):
        def run(group):
            opts = dist.AllreduceOptions()
            got = []
            for op in RO.BOR, RO.BAND, RO.MAX, RO.BXOR:
                opts.reduceOp = op
                t = torch.tensor([True, group.rank() == 1, False])
                group.allreduce([t], opts).wait()
                got.append(t.tolist())
            return got
        self.assertEqual(self.run_ranks(2, run),
                         [[[True, True, False], [True, False, False], [True, True, False], [False, True, False]]] * 2)



class Copies(Test):
    DTYPES = (torch.float32, torch.bool, torch.complex128, torch.int16, torch.float8_e5m2) if NEW else ()

    def each(self, n):
        for dtype, shape in itertools.product(self.DTYPES, SHAPES):
            yield [values(rank, shape, torch.int16).to(dtype) for rank in range(n)]

    def assert_same(self, got, want):
        # Comparison is not implemented for all types
        super().assert_same(*(t.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8) for t in (got, want)))

    def test_broadcast_copies_from_each_root(self):
        def run(group):
            opts = dist.BroadcastOptions()
            for i, inputs in enumerate(self.each(group.size())):
                opts.rootRank, opts.rootTensor = i % group.size(), 0
                for t in layouts(inputs[group.rank()].clone()):
                    group.broadcast([t], opts).wait()
                    self.assert_same(t, inputs[opts.rootRank])
        for n in 1, 3:
            self.run_ranks(n, run)

    def test_all_gather_has_tensors_of_all_ranks(self):
        def run(group):
            n, rank = group.size(), group.rank()
            for inputs in self.each(n):
                for t in layouts(inputs[rank].clone()):
                    outs = [torch.zeros_like(t) for _ in range(n)]
                    group.allgather([outs], [t]).wait()
                    for out, want in zip(outs, inputs):
                        self.assert_same(out, want)
                    whole = torch.zeros((n, *t.shape), dtype=t.dtype)
                    group._allgather_base(whole, t).wait()
                    for out, want in zip(whole, inputs):
                        self.assert_same(out, want)
        for n in 1, 3:
            self.run_ranks(n, run)

    def test_all_gather_takes_tensors_of_different_sizes_and_a_part_of_the_output(self):
        def run(group):
            n, rank = group.size(), group.rank()
            outs = [torch.zeros(r, 2) for r in range(n)]
            group.allgather([outs], [torch.full((rank, 2), float(rank))]).wait()
            for r, out in enumerate(outs):
                self.assert_same(out, torch.full((r, 2), float(r)))
            whole = torch.zeros(n, 2)
            whole[rank] = rank
            group._allgather_base(whole, whole[rank]).wait()
            self.assertEqual(whole[:, 1].tolist(), [0, 1, 2])
        self.run_ranks(3, run)

    def test_gather_and_scatter_from_each_root(self):
        def run(group):
            n, rank = group.size(), group.rank()
            for i, inputs in enumerate(self.each(n)):
                root = i % n
                for t in layouts(inputs[rank].clone()):
                    opts = dist.GatherOptions()
                    opts.rootRank = root
                    outs = [torch.zeros_like(t) for _ in range(n)] if rank == root else []
                    group.gather([outs] if outs else [], [t], opts).wait()
                    for out, want in zip(outs, inputs):
                        self.assert_same(out, want)
                    opts = dist.ScatterOptions()
                    opts.rootRank = root
                    out = torch.zeros_like(t)
                    group.scatter([out], [inputs] if rank == root else [], opts).wait()
                    self.assert_same(out, inputs[rank])
        for n in 1, 3:
            self.run_ranks(n, run)

    def test_all_to_all_exchanges_parts_of_any_sizes(self):
        def run(group):
            n, rank = group.size(), group.rank()
            # Rank r sends r + i rows to rank i, of value 10 r + i
            ins = [torch.full((rank + i, 3), 10 * rank + i, dtype=torch.int16) for i in range(n)]
            want = [torch.full((r + rank, 3), 10 * r + rank, dtype=torch.int16) for r in range(n)]
            outs = [torch.zeros_like(t) for t in want]
            group.alltoall(outs, ins).wait()
            for out, expected in zip(outs, want):
                self.assert_same(out, expected)
            out = torch.zeros_like(torch.cat(want))
            group.alltoall_base(out, torch.cat(ins), [r + rank for r in range(n)], [rank + i for i in range(n)]).wait()
            self.assert_same(out, torch.cat(want))
            # Without splits all parts are equal
            out = torch.zeros(2 * n)
            group.alltoall_base(out, torch.arange(2.0 * n) + 100 * rank, [], []).wait()
            self.assertEqual(out.tolist(), [100.0 * r + 2 * rank + i for r in range(n) for i in range(2)])
        for n in 1, 3:
            self.run_ranks(n, run)

    def test_messages_of_pairs_are_received_in_order_whatever_else_is_begun(self):
        def run(group):
            peer = 1 - group.rank()
            received = [torch.zeros(shape) for shape in ((4,), (0,), (2, 2))]
            sent = [torch.full(t.shape, float(10 * group.rank() + i)) for i, t in enumerate(received)]
            # The ranks begin operations in different orders, where that is allowed
            if group.rank():
                works = [group.recv([t], peer, 0) for t in received]
                total = torch.ones(3)
                works.append(group.allreduce([total]))
                outs = [torch.zeros(1), torch.zeros(1)]
                works.append(group.alltoall(outs, [torch.ones(1), torch.ones(1)]))
                works += [group.send([t], peer, 0) for t in sent]
            else:
                works = [group.send([t], peer, 0) for t in sent]
                total = torch.ones(3)
                works.append(group.allreduce([total]))
                works += [group.recv([t], peer, 0) for t in received]
                outs = [torch.zeros(1), torch.zeros(1)]
                works.append(group.alltoall(outs, [torch.ones(1), torch.ones(1)]))
            for work in works:
                work.wait()
            self.assertEqual([t.flatten().tolist() for t in received],
                             [[10.0 * peer] * 4, [], [10.0 * peer + 2] * 4])
            self.assertEqual((total.tolist(), [o.item() for o in outs]), ([2.0] * 3, [1.0, 1.0]))
        self.run_ranks(2, run)

    def test_several_tensors_are_one_work(self):
        def run(group):
            n, rank = group.size(), group.rank()
            tensors = [torch.full((i,), rank + 1, dtype=d) for i, d in ((3, torch.float32), (5, torch.int8), (0, torch.float64))]
            group.allreduce_coalesced(tensors).wait()
            self.assertEqual([t.tolist() for t in tensors], [[3.0] * 3, [3] * 5, []])
            outs = [torch.zeros(4), torch.zeros(6)]
            group.allgather_into_tensor_coalesced(outs, [torch.full((2,), float(rank)), torch.full((3,), rank + 5.0)]).wait()
            self.assertEqual([o.tolist() for o in outs], [[0, 0, 1, 1], [5, 5, 5, 6, 6, 6]])
            outs = [torch.zeros(2), torch.zeros(1)]
            group.reduce_scatter_tensor_coalesced(outs, [torch.arange(4.0), torch.arange(2.0)]).wait()
            self.assertEqual([o.tolist() for o in outs], [[4.0 * rank, 4.0 * rank + 2], [2.0 * rank]])
            group._start_coalescing(torch.device("cpu"))
            t = [torch.ones(2), torch.ones(3)]
            for one in t:
                group.allreduce([one])
            group._end_coalescing(torch.device("cpu")).wait()
            self.assertEqual([one.tolist() for one in t], [[n] * 2, [n] * 3])
            gathered = [[torch.zeros(1), torch.zeros(2)] for _ in range(n)]
            group.allgather_coalesced(gathered, [torch.full((1,), float(rank)), torch.full((2,), float(rank))]).wait()
            self.assertEqual([[o.tolist() for o in outs] for outs in gathered], [[[0], [0, 0]], [[1], [1, 1]]])
        self.run_ranks(2, run)


class Works(Test):
    def test_end_in_any_order_and_have_futures(self):
        def run(group):
            peer, rank = 1 - group.rank(), group.rank()
            late = torch.zeros(2)
            receiving = group.recv([late], peer, 0)
            t = torch.ones(4).reshape(2, 2).t()
            summing = group.allreduce([t])
            # Its message has not been sent yet
            self.assertEqual(summing.get_future().wait()[0].sum().item(), 8)
            self.assertFalse(receiving.is_completed())
            done = threading.Event()
            future = receiving.get_future().then(lambda f: (f.value()[0] + 1, done.set())[0])
            group.barrier().wait()
            group.send([torch.full((2,), float(rank))], peer, 0).wait()
            self.assertEqual(future.wait().tolist(), [peer + 1.0] * 2)
            self.assertTrue(done.is_set() and receiving.is_completed())
        self.run_ranks(2, run)

    def hold(self, completer):
        """Stop the thread of a Completer that has a future where it would wait again; returns a function that releases it"""
        poll, held, go = completer._poll, threading.Event(), threading.Event()

        def stop():
            held.set()
            self.assertTrue(go.wait(LONG))
            poll()

        completer._poll = stop
        completer.wake()
        self.assertTrue(held.wait(LONG))
        if select.select([completer._wake_read], [], [], 0)[0]:
            os.read(completer._wake_read, 4096)
        return go.set

    def test_have_futures_that_complete_although_the_program_waits_as_well(self):
        def run(group):
            peer, t = 1 - group.rank(), torch.zeros(2)
            receiving = group.recv([t], peer, 0)
            future = receiving.get_future().then(lambda f: f.value()[0].tolist())
            release = self.hold(group._completer)
            ready.wait(LONG)
            sending = group.send([torch.ones(2)], peer, 0)
            for work in receiving, sending:
                work.wait()
            release()
            until(future.done)
            return future.value()
        ready = threading.Barrier(2)
        self.assertEqual(self.run_ranks(2, run), [[1.0] * 2] * 2)

    def test_that_have_not_ended_fail_at_the_end_of_the_group(self):
        def run(group):
            future = group.recv([torch.zeros(2)], 1 - group.rank(), 0).get_future()
            release = self.hold(group._completer)
            ready.wait(LONG)
            group.shutdown()
            until(future.done)
            self.assertRaisesRegex(Exception, "Operation canceled|has failed", future.wait)
            release()
        ready = threading.Barrier(2)
        self.run_ranks(2, run)

    def test_functions_at_their_end_may_carry_out_operations(self):
        def run(group):
            def again(future):
                # As in PyTorch's hook PowerSGD; the second one needs a thread that is not blocked
                return group.allreduce([future.value()[0] + 1]).get_future().wait()
            first = group.allreduce([torch.ones(2)]).get_future().then(again)
            return first.then(lambda f: group.allreduce([f.value()[0] * 2]).get_future().wait()).wait()[0].tolist()
        self.assertEqual(self.run_ranks(2, run), [[24.0] * 2] * 2)

    def test_many_at_once_are_ended_by_any_thread(self):
        def run(group):
            def some(i):
                tensors = [torch.full((100 + i,), 1.0) for _ in range(40)]
                with lock:
                    works = [group.allreduce([t]) for t in tensors]
                for work in works:
                    work.wait()
                return all((t == 2).all() for t in tensors)
            lock = threading.Lock()
            return all([some(i) for i in range(5)])
        self.assertEqual(self.run_ranks(2, run), [True] * 2)


class OnDevice(unittest.TestCase):
    """Tests whose tensors are on a device of device.py, so that each operation goes through a Stager"""

    def setUp(self):
        self.device = FakeTorchDevice()
        patch = unittest.mock.patch("dblp.starting.device_of",
                                    lambda device: self.device if device.type == "cpu" else device_of(device))
        patch.start()
        self.addCleanup(patch.stop)


class DeviceReductions(OnDevice, Reductions):
    pass


class DeviceCopies(OnDevice, Copies):
    pass


class DeviceWorks(OnDevice, Works):
    pass


class Devices(OnDevice, Test):
    def test_inputs_are_copied_after_the_work_of_the_callers_stream(self):
        self.device.current = Stream()
        self.addCleanup(lambda: self.device.current.release())

        def run(group):
            t = torch.zeros(3)
            if group.rank() == 0:
                self.device.current.hold()
            self.device.current.put(lambda: t.fill_(group.rank() + 1.0))
            work = group.allreduce([t])
            # It has returned, although the stream of rank 0 is held
            self.assertFalse(work.is_completed())
            if group.rank() == 0:
                self.device.current.release()
            work.wait()
            return t.tolist()
        self.assertEqual(self.run_ranks(2, run), [[3.0] * 3] * 2)

    def test_have_pinned_memory_of_the_cpu_whatever_the_default_device(self):
        with unittest.mock.patch("torch.empty") as empty:
            Accelerator.pinned(None, 5)
        empty.assert_called_once_with(5, dtype=torch.uint8, device="cpu", pin_memory=True)

    def test_with_a_number_become_the_current_one(self):
        for name, has, called in (("cuda:1", ["set_device"], True), ("cuda", ["set_device"], False), ("mps:0", [], False)):
            device = Accelerator.__new__(Accelerator)
            device.device, device._module = torch.device(name), unittest.mock.Mock(spec=has)
            device.use()
            self.assertEqual(device._module.method_calls, [unittest.mock.call.set_device(device.device)] * called)

    def test_works_end_when_outputs_are_back(self):
        self.device.stream = functools.partial(FakeDevice.stream, self.device)

        def run(group):
            t = torch.ones(2)
            opts = dist.AllreduceOptions()
            group.allreduce([t]).wait()
            _, up = self.device.streams
            up.hold()
            self.addCleanup(up.release)
            opts.reduceOp = RO.AVG
            work = group.allreduce([t], opts)
            until(work._begun.jobs[0].done)
            self.assertFalse(work.is_completed())
            up.release()
            work.wait()
            self.assertTrue(work.is_completed())
        self.run_ranks(1, run)

    def test_only_inputs_are_copied_there_and_only_outputs_back(self):
        moves = []
        move = self.device.move

        def note(host, offset, tensor, back):
            moves.append(("back" if back else "there", tensor.numel()))
            move(host, offset, tensor, back)

        def run(group):
            rank, n = group.rank(), group.size()
            opts = dist.BroadcastOptions()
            group.broadcast([torch.zeros(5)], opts).wait()
            group._allgather_base(torch.zeros(7 * n), torch.zeros(7)).wait()
            group._reduce_scatter_base(torch.zeros(11), torch.zeros(11 * n)).wait()
            (group.send if rank else group.recv)([torch.zeros(13)], 1 - rank, 0).wait()
        with unittest.mock.patch.object(self.device, "move", note):
            self.run_ranks(2, run)
        self.assertEqual(sorted(moves), sorted([("there", 5), ("back", 5), *[("there", 7), ("back", 14)] * 2,
                                                *[("there", 22), ("back", 11)] * 2, ("there", 13), ("back", 13)]))

    def test_messages_that_are_not_received_delay_no_others(self):
        def run(group):
            n, rank = group.size(), group.rank()
            mine = [torch.full((3,), float(i)) for i in range(8)]
            if rank == 0:
                works = [group.send([t], 1, 0) for t in mine] + [group.send([mine[0]], 2, 0)]
                works += [group.allreduce([torch.ones(1)])]
            else:
                got = [torch.zeros(3) for _ in range(8)]
                t = torch.ones(1)
                if rank == 1:
                    # Rank 2 sends this after the last message of rank 0
                    group.recv([torch.zeros(1)], 2, 0).wait()
                else:
                    group.recv([torch.zeros(3)], 0, 0).wait()
                    group.send([torch.zeros(1)], 1, 0).wait()
                works = [group.allreduce([t])] + [group.recv([g], 0, 0) for g in got if rank == 1]
            for work in works:
                work.wait()
            if rank == 1:
                self.assertEqual([g[0].item() for g in got], [*range(8)])
                self.assertEqual(t.item(), n)
        self.run_ranks(3, run)

    def test_a_thread_copies_outputs_back_where_the_program_waits_for_something_else(self):
        def run(group):
            late = torch.zeros(1)
            work = group.recv([late], 1 - group.rank(), 0)
            group.send([torch.tensor([7.0])], 1 - group.rank(), 0).wait()
            until(lambda: late.item() == 7)
            until(work.is_completed)
        self.run_ranks(2, run)

    def test_tensors_of_autograd_keep_their_place_in_its_graph(self):
        def run(group):
            for begin, sums in ((group.allreduce, True), (lambda t: group.broadcast(t, dist.BroadcastOptions()), False)):
                leaf = torch.nn.Parameter(torch.full((3,), group.rank() + 1.0))
                derived = leaf * 2
                made_by = derived.grad_fn
                # The threads that copy have modes of their own
                with torch.no_grad():
                    begin([leaf]).wait()
                begin([derived]).wait()
                self.assertEqual((leaf.tolist(), derived.tolist()), ([3.0 if sums else 1.0] * 3, [6.0 if sums else 2.0] * 3))
                self.assertTrue(leaf.requires_grad and leaf.is_leaf)
                self.assertIs(derived.grad_fn, made_by)
                with torch.inference_mode():
                    t = torch.full((3,), group.rank() + 1.0)
                    begin([t]).wait()
                self.assertEqual((t.tolist(), t.is_inference()), (leaf.tolist(), True))
        self.run_ranks(2, run)

    def test_operations_on_the_cpu_begin_after_those_before_them(self):
        self.device.current = Stream()
        near = threading.local()
        flush = Stager.flush

        def released(stager):
            self.device.current.release()
            return flush(stager)

        def run(group):
            t, copied = torch.ones(2), torch.full((3,), group.rank() + 5.0)
            if group.rank() == 0:
                self.device.current.hold()
            group.barrier().wait()
            work = group.allreduce([t])
            near.cpu = True
            group.broadcast([copied], dist.BroadcastOptions()).wait()
            work.wait()
            return t.tolist(), copied.tolist()

        with unittest.mock.patch("dblp.starting.device_of", lambda _: None if hasattr(near, "cpu") else self.device), \
                unittest.mock.patch("dblp.starting.Stager.flush", released):
            self.assertEqual(self.run_ranks(2, run), [([2.0] * 2, [5.0] * 3)] * 2)

    def test_a_copy_that_fails_is_an_error_of_all_ranks(self):
        self.device.fail["copy"] = lambda: (_ for _ in ()).throw(RuntimeError("the device is lost"))

        def run(group):
            work = group.allreduce([torch.ones(2)])
            future = work.get_future()
            for wait in work.wait, work.wait, future.wait:
                with self.assertRaisesRegex(Exception, "the device is lost|Operation canceled|has failed"):
                    wait()
            self.assertFalse(work.is_success())
        self.run_ranks(2, run)

    def test_of_two_kinds_in_one_operation_are_refused(self):
        others = iter([FakeTorchDevice("fake 1"), FakeTorchDevice("fake 2")])

        def run(group):
            with self.assertRaisesRegex(TypeError, "on several devices: fake 1, fake 2"):
                group._allgather_base(torch.ones(1, device="meta"), torch.ones(1))
        with unittest.mock.patch("dblp.starting.device_of", lambda device: next(others)):
            self.run_ranks(1, run)


class Losses(Test):
    def ops(self, options, *blocks):
        """Budgets and rules of operations as the library gets them: of floats, of integers, and of copies"""
        got = []

        def run(group):
            begin = group.comm._begin

            def note(function, address, count, how, keep):
                got.append((how.budget, how.rule, bool(how.flags & dblp.OpFlags.DBLP_OP_BUDGET)))
                return begin(function, address, count, how, keep)

            group.comm._begin = note
            t, out = torch.ones(4), torch.zeros(4)
            for dtype in torch.float32, torch.int32:
                group.allreduce([t.to(dtype)]).wait()
            group._reduce_scatter_base(out, t).wait()
            group._allgather_base(out, t).wait()
            group.broadcast([t], dist.BroadcastOptions()).wait()
            opts = dist.AllreduceOptions()
            opts.reduceOp = RO.MAX
            group.allreduce([t], opts).wait()
        self.run_ranks(1, run, options=options)
        return got

    def test_are_allowed_by_options_or_blocks_in_sums_of_floats_only(self):
        rescale, bubble = dblp.Rule.DBLP_RESCALE, dblp.Rule.DBLP_BUBBLE

        def expected(*lossy):
            # Whatever else: a budget of 0, which an operator cannot raise
            budgets = [lossy, (0, bubble), lossy, (0, bubble), (0, bubble), (0, bubble)]
            return [(*pair, True) for pair in budgets]

        self.assertEqual(self.ops(None), expected(0, rescale))
        self.assertEqual(self.ops(Options(budget="2%")), expected(20000, rescale))
        with lossy("3%", rule="bubble"):
            self.assertEqual(self.ops(Options(budget="2%")), expected(30000, bubble))
            with lossy(0):
                self.assertEqual(self.ops(None), expected(0, rescale))
            self.assertEqual(self.ops(None), expected(30000, bubble))
        self.assertEqual(self.ops(None), expected(0, rescale))

    def test_options_that_cannot_be_are_refused(self):
        for how, why in ((dict(budget="2"), "no unit"), (dict(budget="auto:5%"), "'auto:5%' is for the hook of a DDP"),
                         (dict(rule="feedback"), "which vectors belong together"),
                         (dict(algo="average"), "does not sum over all"), (dict(algo="best"), "is not one of")):
            self.assertRaisesRegex(ValueError, why, Options, **how)
        with self.assertRaisesRegex(TypeError, "comm is an option of groups"), lossy("2%", comm=dict(job=1)):
            pass


class Default(unittest.TestCase):
    """The default process group, of one rank"""

    @contextlib.contextmanager
    def group(self, backend="dblp", **how):
        with unittest.mock.patch.dict("os.environ", DBLP_TRANSPORT="tcp"):
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, **how)
            try:
                yield dist.group.WORLD
            finally:
                if dist.is_initialized():
                    dist.destroy_process_group()

    def test_has_the_names_that_each_version_of_pytorch_calls(self):
        for new, old in (("all_gather_single", "_allgather_base"), ("reduce_scatter_single", "_reduce_scatter_base"),
                         ("all_to_all_single", "alltoall_base"), ("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
                         ("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"),
                         ("start_coalescing", "_start_coalescing"), ("end_coalescing", "_end_coalescing")):
            self.assertIs(getattr(ProcessGroup, new), getattr(ProcessGroup, old))
        with self.group() as group:
            self.assertFalse(group._get_backend(torch.device("cpu")).supports_tensor_alloc(torch.device("cpu")))

    def test_may_be_bound_to_a_device(self):
        with self.group(device_id=torch.device("cuda:0")) as group:
            self.assertIs(group._get_backend(torch.device("cuda:0")), group)
            t = torch.ones(2)
            dist.all_reduce(t)
            other = dist.new_group([0], device_id=torch.device("cuda:0"))
            dist.all_reduce(t, group=other)
            self.assertEqual(t.tolist(), [1.0] * 2)


    def test_gives_its_time_limit_to_the_hook(self):
        with self.group(timeout=datetime.timedelta(seconds=77)) as group:
            dblp.torch.communicator()
            _, options = dblp.groups._comms[group]
            self.assertEqual([options[name] for name in ("join_ms", "operation_ms")], [77000] * 2)

    def test_with_another_backend_is_refused(self):
        for backend in "cpu:dblp,cuda:gloo", "cpu:gloo,cuda:dblp":
            with self.group(backend):
                for begin in dist.all_reduce, dist.all_reduce, functools.partial(dist.gather, gather_list=[torch.ones(1)]):
                    with self.assertRaisesRegex(ValueError, f"backends {backend}: .* cannot have another backend"):
                        begin(torch.ones(1))
        for backend in "cpu:dblp", "cpu:dblp,cuda:dblp":
            with self.group(backend):
                dist.all_reduce(torch.ones(1))

    def test_is_seen_to_end_by_each_version_of_pytorch(self):
        newer = importlib.util.spec_from_file_location("ending", dblp.ending.__file__)
        ended = []
        with self.group("gloo") as group:
            with unittest.mock.patch.object(dist.distributed_c10d, "_shutdown_backend"), \
                    unittest.mock.patch.object(dist.ProcessGroup, "shutdown", lambda group: ended.append(group), create=True):
                del dist.distributed_c10d._shutdown_backend
                module = importlib.util.module_from_spec(newer)
                newer.loader.exec_module(module)
                module.at_end(ended.append)
                # As destroy_process_group() does since 2.9
                group.shutdown()
        self.assertEqual(ended, [group] * 2)

    def test_leaves_nothing_when_it_is_destroyed(self):
        gc.collect()
        before, found, ends = set(threading.enumerate()), [], []
        for _ in range(4):
            with self.group() as group:
                other = dist.new_group([0])
                comms = [group.comm, other.comm, dblp.torch.communicator(), dblp.torch.communicator(other)]
                dist.gather(torch.ones(1), [torch.ones(1)], group=other)
                future = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(lambda f: ends.append(1))
                # A script may have imported the function by its name before it imports dblp
                destroy(other)
                self.assertEqual(["closed" in repr(comm) for comm in comms], [False, True] * 2)
                destroy()
                self.assertTrue(all("closed" in repr(comm) for comm in comms), comms)
                future.wait()
            gone = [weakref.ref(one) for one in (group, other, *comms)]
            del group, other, comms, future
            until(lambda gone=gone: not any(ref() for ref in gone))
            until(lambda: not set(threading.enumerate()) - before)
            found.append(len(os.listdir("/proc/self/fd")))
        self.assertLessEqual(found[-1], found[0])
        self.assertEqual(len(ends), 4)


class Names(Test):
    """Groups that have the name, and so the store, of an earlier one"""

    def setUp(self):
        self.store = dist.HashStore()

    def create(self, ranks, present=None, timeout=LONG):
        """Create a group of `ranks` by those that are present; returns sums over the group, or errors"""
        def run(rank):
            how = types.SimpleNamespace(store=self.store, group_rank=ranks.index(rank), group_size=len(ranks), group_id="1",
                                        timeout=datetime.timedelta(seconds=timeout), global_ranks_in_group=ranks)
            try:
                group = create(how, None)
                t = torch.ones(1)
                group.allreduce([t]).wait()
                summed.wait(LONG)
                group.shutdown()
                return t.item()
            except OSError as e:
                return str(e)

        present = present or ranks
        summed = threading.Barrier(len(present))
        with unittest.mock.patch.dict("os.environ", DBLP_TRANSPORT="tcp"), \
                concurrent.futures.ThreadPoolExecutor(len(present)) as pool:
            return list(pool.map(run, present))

    def test_are_used_again_by_other_ranks(self):
        for ranks in [0, 1], [1, 2], [0, 1, 2], [2], [3, 2, 1, 0]:
            self.assertEqual(self.create(ranks), [len(ranks)] * len(ranks))

    def test_are_entered_again_by_a_rank_that_ended_before_all_had_agreed(self):
        whole = dist.PrefixStore

        class Ending:
            """A store of a process that ends after some more calls"""

            def __init__(self, *how):
                self.store = whole(*how)

            def __getattr__(self, name):
                if next(calls, None) is None:
                    raise SystemExit
                return getattr(self.store, name)

        for count in range(8):
            self.store, calls = dist.HashStore(), iter(range(count))
            # As in a process that is killed, no call follows the last one
            with unittest.mock.patch("torch.distributed.PrefixStore", Ending):
                self.assertRaises(SystemExit, self.create, [0, 1], [1])
            self.assertEqual(self.create([0, 1]), [2, 2])

    def test_are_used_again_after_a_rank_was_missing(self):
        for failed in self.create([0, 1, 2], [2, 1], timeout=1):
            self.assertRegex(failed, "[12] of 3 ranks have created the process group within 1 s")
        self.assertEqual(self.create([0, 1, 2]), [3] * 3)


class Failures(Test):
    def texts(self, outcome):
        return [f"{type(e).__name__}: {e}".splitlines()[0] for e in outcome]

    def assert_refused(self, n, why, **more):
        texts = self.texts(with_groups(n, lambda group: None, **more))
        self.assertEqual(len(set(texts)), 1, texts)
        self.assertRegex(texts[0], why)

    def test_groups_that_differ_between_ranks_are_refused_on_all(self):
        self.assert_refused(3, r"ranks of a process group differ: rank \d has ranks \[.*\], and rank \d has \[",
                            ranks=[[0, 1, 2], [0, 1, 2], [2, 3, 4]])
        self.assert_refused(2, r"differ: rank \d has options .*'budget': '[23]%'",
                            options=[Options("2%"), Options("3%")])

    def test_ranks_with_another_pytorch_are_refused_on_all(self):
        versions = iter(("2.6.0", "2.7.1"))
        with unittest.mock.patch("dblp.backend._torch_version", lambda: next(versions)):
            self.assert_refused(2, r"differ: rank \d has PyTorch 2\.[67]\.[01], and rank \d has 2\.[67]")

    def test_a_rank_that_cannot_join_is_named_on_all(self):
        self.assert_refused(3, "MeetingError: rank 1 cannot open a communicator: .*there is no device no0",
                            options=[Options(comm=dict(devices="lo" if r != 1 else "no0")) for r in range(3)])

    def test_ranks_that_are_missing_are_counted(self):
        self.assert_refused(2, "2 of 3 ranks have created the process group within 1 s", timeout=1, size=[3, 3],
                            ranks=[[0, 1, 2]] * 2)

    def test_a_rank_that_ends_is_named_by_all_works(self):
        def run(group):
            if group.rank() == 2:
                group.shutdown()
                return []
            t = torch.ones(3)
            errors = []
            for begin in (lambda: group.allreduce([t]), lambda: group.broadcast([t], dist.BroadcastOptions()),
                          lambda: group.barrier()):
                try:
                    begin().wait()
                except RuntimeError as e:
                    errors.append(str(e).splitlines()[0])
            return errors
        got = self.run_ranks(3, run, ranks=[[5, 6, 7]] * 3)
        for errors in got[:2]:
            self.assertEqual(len(errors), 3, errors)
            for text in errors:
                self.assertIn("rank 2 has failed", text)
                self.assertIn("(rank 7 of all)", text)

    def test_ranks_that_begin_different_operations_fail_with_the_same_reason(self):
        def run(group):
            with self.assertRaisesRegex(RuntimeError, "rank . has failed: Protocol error") as e:
                group.allreduce([torch.ones(3 + group.rank())]).wait()
            return str(e.exception).splitlines()[0]
        self.assertEqual(len(set(self.run_ranks(2, run))), 1)

    def test_an_operation_that_a_rank_does_not_begin_fails_at_the_time_limit(self):
        def run(group):
            if group.rank():
                event.wait(LONG)
                return None
            opts = dist.AllreduceOptions()
            opts.timeout = datetime.timedelta(seconds=1)
            try:
                group.allreduce([torch.ones(3)], opts).wait()
            except RuntimeError as e:
                return str(e).splitlines()[0]
            finally:
                event.set()
        event = threading.Event()
        self.assertRegex(self.run_ranks(2, run)[0], "rank 1 has failed: Connection timed out.*has not begun")

    def test_abort_fails_works_of_all_ranks(self):
        def run(group):
            work = group.recv([torch.ones(1)], 1 - group.rank(), 0)
            begun.wait(LONG)
            if group.rank():
                group.abort()
            with self.assertRaisesRegex(RuntimeError, "rank 1 has failed: Operation canceled"):
                work.wait()
            group.shutdown()
            # As abort_process_group() may do
            group.abort()
        begun = threading.Barrier(2)
        self.run_ranks(2, run)

    def test_arguments_that_cannot_be_are_refused_and_change_nothing(self):
        def run(group):
            t, opts = torch.ones(3), dist.GatherOptions()
            for begin, why in ((lambda: group.send([t], 1 - group.rank(), 5), "no tags"),
                               (lambda: group.send([t], group.rank(), 0), "not another one of 2 ranks"),
                               (lambda: group.recv([t], 2, 0), "not another one of 2 ranks"),
                               (lambda: group.recv_anysource([t], 0), "needs the rank that sends"),
                               (lambda: group._allgather_base(t, t), "the output has 3 elements"),
                               (lambda: group.allgather([[t]], [t]), "the outputs have"),
                               (lambda: group.allgather([[t, t.double()]], [t]), "an output is torch.float64"),
                               (lambda: group._reduce_scatter_base(t, t), "the input has 3 elements, not 6"),
                               (lambda: group.reduce_scatter([t], [[t] * 3]), "3 inputs were given for 2 ranks"),
                               (lambda: group.gather([], [t], opts) if not group.rank() else group.gather([[t, t]], [t], opts),
                                "the root needs 2 outputs"),
                               (lambda: group.alltoall_base(t, t, [], []), "has 3 rows, not a multiple of 2"),
                               (lambda: group.alltoall_base(t, t, [1, 1], [1, 2]), r"the splits are \[1, 1\]"),
                               (lambda: group.alltoall([t], [t]), "were given for 2 ranks")):
                with self.assertRaisesRegex((TypeError, ValueError), why):
                    begin()
            group.allreduce([t]).wait()
            return t.tolist()
        self.assertEqual(self.run_ranks(2, run), [[2.0] * 3] * 2)


def load_tests(_loader, tests, _pattern):
    """An older PyTorch has no such backends: selftests/vm/toolroot --torch has a new one"""
    return tests if NEW else unittest.TestSuite()


if __name__ == "__main__":
    unittest.main()
