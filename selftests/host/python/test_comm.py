# SPDX-License-Identifier: GPL-2.0-only
"""Communicators over TCP: the parts that Python adds to those of selftests/unit/test_comm.c."""

import array
import asyncio
import contextlib
import dataclasses
import errno
import gc
import os
import pickle
import select
import signal
import struct
import tempfile
import threading
import time
import unittest
import weakref
from unittest import mock

import dblp
from common import LONG, Folder, Store, attributes, good, process, until, with_ranks

try:
    import numpy
except ImportError:
    numpy = None


# Background processes of a shell ignore SIGINT
INTERRUPTIBLE = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


@contextlib.contextmanager
def other_rank(function, **attr):
    """Yield a communicator as rank 0, while another thread runs function(comm) as rank 1"""
    store, outcome = Store(), []

    def run():
        try:
            with dblp.Comm(1, 2, store.kv(), **attributes(**attr)) as comm:
                outcome.append(function(comm))
        except BaseException as e:
            outcome.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    comm = dblp.Comm(0, 2, store.kv(), **attributes(**attr))
    try:
        yield comm
    finally:
        thread.join(LONG)
        assert not thread.is_alive()
        comm.close()
    good(outcome)


def readable(comm, timeout=0):
    return bool(select.select([comm], [], [], timeout)[0])


class Sums(unittest.TestCase):
    def test_ranks_get_the_sum_of_each_type(self):
        half, brain = struct.pack("=3e", 0.5, 1.5, -2), struct.pack("=3H", 0x3f00, 0x3fc0, 0xc000)

        def run(comm):
            floats, ints = array.array("f", [0.5, 1.5, -2]), array.array("i", [1, -7, 2**31 - 1])
            halves, brains = bytearray(half), array.array("H", brain)
            plain = bytearray(struct.pack("=2i", 3, -4))
            doubles, longs = array.array("d", [1 + 2**-52, -2]), array.array("q", [2**40, -2**63])
            requests = [comm.allreduce(floats), comm.allreduce(ints),
                        comm.allreduce(halves, "float16"), comm.allreduce(brains, "bfloat16"),
                        comm.allreduce(memoryview(plain), dblp.Dtype.DBLP_INT32),
                        comm.allreduce(doubles), comm.allreduce(longs, "int64")]
            for request in requests:
                result = request.wait(LONG)
                self.assertGreater(result.asked, 0)
                self.assertEqual((result.missing, result.lost, result.late_ranks), (0, 0, 0))
                self.assertGreater(result.ns, 0)
            self.assertEqual(list(floats), [1, 3, -4])
            self.assertEqual(list(ints), [2, -14, -2])
            self.assertEqual(struct.unpack("=3e", halves), (1, 3, -4))
            self.assertEqual(list(brains), [0x3f80, 0x4040, 0xc080])
            self.assertEqual(struct.unpack("=2i", plain), (6, -8))
            self.assertEqual(list(doubles), [2 + 2**-51, -4])
            self.assertEqual(list(longs), [2**41, 0])

        good(with_ranks(2, run))

    def test_all_algorithms_and_rules_are_there(self):
        def run(comm):
            for algo in dblp.Algo:
                for rule in "bubble", "rescale", "feedback":
                    v = array.array("f", [comm.rank + 1] * 1000)
                    comm.allreduce(v, op=dblp.Op("2%", rule, algo, radix=(2, 2), average=True, policy="eager",
                                                 key=algo)).wait(LONG)
                    # Turn 0 averages over the lowest digit: 1, 2 and 3, 4
                    want = 1.5 + comm.rank // 2 * 2 if algo == dblp.Algo.DBLP_AVERAGE else 2.5
                    self.assertEqual(set(v), {want})

        good(with_ranks(4, run))

    def test_zeroes_are_not_sent_and_what_is_pruned_comes_later(self):
        def run(comm):
            dense, thin = array.array("f", [0] * 8000), array.array("f", [0] * 8000)
            dense[5] = thin[5] = comm.rank + 1
            all_of_it = comm.allreduce(dense).wait(LONG)
            result = comm.allreduce(thin, op=dblp.Op(sparse=True)).wait(LONG)
            self.assertEqual(thin, dense)
            self.assertGreater(all_of_it.sent, 10 * result.sent)
            fixed = comm.allreduce(thin, op=dblp.Op(sparse=True, block=256)).wait(LONG)
            self.assertEqual(thin[5], 3 * comm.nranks)
            self.assertGreater(fixed.sent, 1024)
            self.assertLess(fixed.sent, all_of_it.sent)
            big, total = 1000 if comm.rank else 0, 0
            for prune in "1%", 0:
                # Rank 0 owns the first half, so that rank 1 sends it
                v = array.array("f", [big] + [0] * 2000 + [1] * 3 + [0] * 5996)
                result = comm.allreduce(v, op=dblp.Op(sparse=True, prune=prune, rule="feedback")).wait(LONG)
                self.assertEqual(result.pruned > 0, bool(prune) and comm.rank == 1)
                total += v[2001]
            self.assertEqual(total, 4)

        good(with_ranks(2, run))

    def test_residuals_are_copied_set_and_forgotten(self):
        def run(comm):
            kept = array.array("f", [7] * 8000)
            self.assertFalse(comm.residual(3, kept))
            # Rank 0 owns the first half, so that rank 1 sends it
            v = array.array("f", [1000] + [0] * 2000 + [1] * 3 + [0] * 5996)
            comm.allreduce(v, op=dblp.Op(sparse=True, prune="1%", rule="feedback", key=3)).wait(LONG)
            self.assertTrue(comm.residual(3, kept))
            self.assertEqual(kept[2001], comm.rank)
            kept[2001], kept[0] = 8 * kept[2001], float("inf")
            comm.set_residual(3, kept)
            v = array.array("f", [0] * 8000)
            comm.allreduce(v, op=dblp.Op(rule="feedback", key=3)).wait(LONG)
            self.assertEqual((v[0], v[2001]), (0, 8))
            comm.forget(3)
            self.assertFalse(comm.residual(3, kept))
            comm.set_residual(3, array.array("d", [1]))
            with self.assertRaisesRegex(OSError, "the vector differs in type or length from that of the key"):
                comm.residual(3, kept)

        good(with_ranks(2, run))

    def test_elements_go_by_lanes(self):
        def run(comm):
            v = array.array("i", range(1000))
            op = dblp.Op(algo="ps", parts=[(range(0, 200), 1), (range(200, 1000), 0)])
            result = comm.allreduce(v, op=op).wait(LONG)
            self.assertEqual(list(v), [2 * i for i in range(1000)])
            return [lane.asked for lane in result.lanes]

        lanes = [dblp.Lane(large="25%", rest=2), dblp.Lane(budget="1%", policy="early", tos=40, priority=2),
                 dblp.Lane(ect=False, after=True)]
        outcome = good(with_ranks(2, run, lanes=lanes))
        self.assertEqual(outcome[0], [800, 800, 2400])

    def test_lanes_that_cannot_be_are_refused(self):
        for lanes, error, reason in (
                ([dblp.Lane(large="10%")], ValueError, "rest of lane 0"),
                ([dblp.Lane(after=True)], ValueError, "wait for itself"),
                ([dblp.Lane(tos=1)], ValueError, "tos of lane 0 is 1"),
                ([dblp.Lane(priority="high")], TypeError, "priority of lane 0 must be an int"),
                ([dblp.Lane(budget="1")], ValueError, "no unit"),
                ([dblp.Lane()] * 9, OSError, "contradict each other")):
            with self.assertRaisesRegex(error, reason):
                dblp.Comm(0, 1, Store().kv(), **attributes(lanes=lanes))

    def test_parts_that_ranks_own_make_the_whole(self):
        def run(comm):
            v = array.array("i", [comm.rank + 1] * 10)
            ring = dblp.Op(algo="ring")
            comm.reduce_scatter(v, op=ring).wait(LONG)
            own = comm.owned(10, ring)
            for part in own:
                self.assertEqual(set(v[part.start:part.stop]), {6})
                v[part.start:part.stop] = array.array("i", [comm.rank + 10] * len(part))
            comm.allgather(v, op=ring).wait(LONG)
            return own, list(v)

        outcome = good(with_ranks(3, run))
        whole = [None] * 10
        for rank, (own, _) in enumerate(outcome):
            for i in (i for part in own for i in part):
                whole[i] = rank + 10
        self.assertEqual([v for _, v in outcome], [whole] * 3)

    def test_as_many_parts_are_owned_as_there_are(self):
        op = dblp.Op(parts=[(range(10 * i, 10 * i + 10), i % 2) for i in range(100)])
        outcome = good(with_ranks(2, lambda comm: comm.owned(1000, op), lanes=[dblp.Lane()] * 2))
        self.assertEqual([len(own) for own in outcome], [50, 50])
        self.assertEqual(sorted(i for own in outcome for part in own for i in part), list(range(1000)))

    def test_many_outstanding_operations_cost_no_more_each_than_few(self):
        def cost(comm, n):
            vectors = [array.array("i", [1]) for _ in range(n)]
            since = time.thread_time()
            requests = [comm.allreduce(v) for v in vectors]
            spent = time.thread_time() - since
            for request in requests:
                request.wait(LONG)
            return spent / n

        def run(comm):
            cost(comm, 500)
            return cost(comm, 8000), cost(comm, 500)

        many, few = map(min, zip(*good(with_ranks(2, run))))
        self.assertLess(many, 5 * few)

    def test_vectors_go_to_one_rank_or_come_from_one(self):
        def run(comm):
            for root in range(comm.nranks):
                v, text = array.array("d", [comm.rank + 0.5] * 5), bytearray(b"rank %d" % comm.rank)
                comm.reduce(v, op=dblp.Op(root=root, algo="ps" if root else None)).wait(LONG)
                self.assertEqual(list(v) == [4.5] * 5, comm.rank == root)
                comm.broadcast(text, root).wait(LONG)
                self.assertEqual(text, b"rank %d" % root)
            with self.assertRaisesRegex(OSError, "contradict"):
                comm.reduce(v, op=dblp.Op(algo="ring"))
            self.assertRaisesRegex(ValueError, "cannot be written", comm.broadcast, b"1")

        good(with_ranks(3, run))

    def test_bytes_are_sent_to_a_rank_amid_operations_of_all(self):
        def run(comm):
            after, before = (comm.rank + 1) % 3, (comm.rank + 2) % 3
            first, second, sums = bytearray(5), array.array("d", [0] * 1000), array.array("i", [1])
            requests = [comm.recv(first, before)]
            if comm.rank:
                requests.append(comm.allreduce(sums))
            requests += [comm.send(b"%05d" % comm.rank, after), comm.recv(second, before),
                         comm.send(array.array("d", [comm.rank] * 1000), after)]
            if not comm.rank:
                requests.append(comm.allreduce(sums))
            for request in reversed(requests):
                request.wait(LONG)
            self.assertEqual((first, list(second), sums[0]), (b"%05d" % before, [before] * 1000, 3))
            for rank in comm.rank, 3:
                self.assertRaisesRegex(ValueError, "is not another one of", comm.send, b"", rank)
            self.assertRaisesRegex(ValueError, "cannot be written", comm.recv, b"1", before)

        good(with_ranks(3, run))

    def test_a_barrier_waits_for_all(self):
        with other_rank(lambda comm: comm.barrier(LONG)) as comm:
            comm.barrier(LONG)
        go = threading.Event()
        with other_rank(lambda comm: go.wait(LONG) and comm.barrier(LONG)) as comm:
            self.assertRaises(TimeoutError, comm.barrier, 0.05)
            go.set()

    def test_an_empty_vector_is_a_vector(self):
        good(with_ranks(2, lambda comm: comm.allreduce(array.array("f")).wait(LONG)))

    @unittest.skipUnless(numpy, "numpy is not installed (python3-numpy)")
    def test_numpy_arrays_of_any_shape(self):
        def run(comm):
            for dtype in "float32", "float16", "int32", "float64", "int64":
                v = numpy.full((3, 4, 5), comm.rank + 1, dtype)
                comm.allreduce(v).wait(LONG)
                self.assertTrue((v == 3).all())
            for wrong in numpy.zeros(4, bool), numpy.zeros((4, 4), "f").T, numpy.zeros(8, "f")[::2]:
                with self.assertRaises((TypeError, ValueError)):
                    comm.allreduce(wrong)

        good(with_ranks(2, run))


class Norms(unittest.TestCase):
    def test_norms_that_cannot_be_and_jobs_that_are_not_there_are_refused(self):
        for norm in float("nan"), float("inf"), -1, 2**32:
            with self.assertRaisesRegex(ValueError, "is not a number within"):
                dblp.report_norm(7, norm)
        self.assertRaisesRegex(TypeError, "job must be an int", dblp.report_norm, "7", 1)
        self.assertRaises(TypeError, dblp.report_norm, 7, None)
        with self.assertRaises(OSError) as refused:
            dblp.report_norm(4294967295, 1.5)
        reason = {errno.EAFNOSUPPORT: "the kernel has no AF_DBLP", errno.ENOENT: "no such job",
                  errno.EPERM: "belongs to another user"}[refused.exception.errno]
        self.assertIn(reason, str(refused.exception))


class Buffers(unittest.TestCase):
    def test_what_is_no_vector_is_refused_and_nothing_begins(self):
        odd = memoryview(bytearray(9))[1:]
        wrong = [
            (b"1234", "float32", ValueError, "cannot be written"),
            (bytearray(6), "float32", ValueError, "6 bytes is not a multiple of 4"),
            (odd, "int32", ValueError, "not aligned"),
            (memoryview(array.array("f", [0] * 4))[::2], None, ValueError, "not contiguous"),
            (array.array("h", [1]), None, TypeError, "format 'h' of the buffer is not float16"),
            (array.array("d", [1]), "float32", TypeError, "'d' of the buffer does not match DBLP_FLOAT32"),
            (array.array("i", [1]), "float32", TypeError, "'i' of the buffer does not match DBLP_FLOAT32"),
            (array.array("f", [1]), "float8", ValueError, "is not one of float32, float16"),
            (bytearray(4), None, TypeError, "pass dtype for bytes"),
            ([1.0], None, TypeError, "buffer|bytes-like"),
        ]

        def run(comm):
            for buf, dtype, error, reason in wrong:
                with self.assertRaisesRegex(error, reason):
                    comm.allreduce(buf, dtype)
            # Operations are numbered on each rank: a refused one must not take a number
            if comm.rank:
                self.assertRaises(ValueError, comm.allreduce, array.array("f"), "float8")
            self.assertEqual(comm.allreduce(array.array("f", [1])).wait(LONG).missing, 0)

        good(with_ranks(2, run))

    def test_attributes_that_cannot_be_are_refused(self):
        v = array.array("f", [1])
        wrong = [
            (dict(algo="best"), ValueError, "algo 'best' is not one of"),
            (dict(budget="2"), ValueError, "no unit"),
            (dict(key=-1), ValueError, "key -1 is not within"),
            (dict(key=1 << 64), ValueError, "is not within"),
            (dict(wait_ms=1 << 32), ValueError, "wait_ms"),
            (dict(wait_ms=0.5), TypeError, "wait_ms must be an int"),
            (dict(radix=[1] * 17), ValueError, "radix has 17 entries"),
            (dict(carry=True), ValueError, "carry needs a budget"),
            (dict(prune="1"), ValueError, "no unit"),
            (dict(prune="1%", rule="feedback"), ValueError, "prune needs sparse"),
            (dict(prune="1%", sparse=True), ValueError, "prune needs the rule 'feedback'"),
            (dict(prune="100%", sparse=True, rule="feedback"), ValueError, "prune must be less than 100%"),
            (dict(block=8), ValueError, "block needs sparse"),
            (dict(block=3, sparse=True), ValueError, "block 3 is not a power of two up to 1048576"),
            (dict(block=1 << 21, sparse=True), ValueError, "block 2097152 is not a power of two"),
            (dict(phase=8), ValueError, "phase 8 is not within 0 ... 7"),
            (dict(sparse=1), TypeError, "sparse must be a bool, not 1"),
            (dict(server="no"), TypeError, "server must be a bool"),
            (dict(keep=True, algo="ring"), OSError, "contradict each other"),
            (dict(root=1, algo="ps"), ValueError, "root is 1, and there are ranks 0 ... 0"),
            (dict(radix=[2, 3], algo="bcube"), ValueError, "product of radix is 6, not 1, the number of ranks"),
            (dict(parts=[(range(0, 1), 1)]), OSError, "has no such lane"),
            (dict(parts=[(range(0, 2), 0)]), OSError, "parts do not cover it"),
            (dict(parts=[(range(1, 2), 0)]), ValueError, "elements 0 ... 0 are in no part"),
            (dict(parts=[(range(0, 2), 0), (range(1, 3), 0)]), ValueError, "element 1 is in two parts"),
            (dict(parts=[(range(0, 2, 2), 0)]), ValueError, "is empty or has a step"),
            (dict(parts=[(range(0, 1), -1)]), ValueError, "lane -1 is not within"),
            (dict(parts=[(range(0, 1), 1 << 32)]), ValueError, "lane 4294967296 is not within"),
            (dict(parts=[(range(0, 1), "0")]), TypeError, "lane must be an int"),
            (dict(bucket=1), TypeError, "bucket"),
        ]
        with dblp.Comm(0, 1, Store().kv(), **attributes()) as comm:
            for how, error, reason in wrong:
                with self.assertRaisesRegex(error, reason):
                    comm.allreduce(v, op=dblp.Op(**how))
            for begin in (lambda: comm.owned(1, op=dblp.Op(root=1, algo="ps")), lambda: comm.broadcast(v, root=1),
                          lambda: comm.reduce(v, op=dblp.Op(root=1))):
                with self.assertRaisesRegex(ValueError, "root is 1"):
                    begin()
            for begin in comm.allreduce, comm.reduce:
                with self.assertRaisesRegex(TypeError, "op must be a dblp.Op, not {'budget': 0}"):
                    begin(v, op=dict(budget=0))
            self.assertIsNone(comm.error)

    def test_how_an_operation_is_done_is_a_value(self):
        op = dblp.Op("2%", "feedback", radix=[2, 2], parts=[(range(4), 0)])
        same = pickle.loads(pickle.dumps(op))
        self.assertEqual((same, hash(same), {op: 1}[same]), (op, hash(op), 1))
        self.assertEqual(dataclasses.replace(op, rule="bubble").budget, "2%")
        self.assertRaises(dataclasses.FrozenInstanceError, setattr, op, "budget", 0)
        # Invalid values are refused by the constructor
        self.assertRaisesRegex(ValueError, "no unit", dblp.Op, "2")
        self.assertRaisesRegex(TypeError, "turn must be an int", dblp.Op, turn="1")

    def test_a_vector_is_exported_until_the_end(self):
        go = threading.Event()

        def late(comm):
            go.wait(LONG)
            comm.allreduce(bytearray(4000), "int32").wait(LONG)

        with other_rank(late) as comm:
            v = bytearray(4000)
            request = comm.allreduce(v, "int32")
            self.assertRaises(BufferError, v.extend, b"more")
            self.assertRaises(TimeoutError, request.wait, 0.05)
            self.assertFalse(request.done())
            self.assertRaises(BufferError, v.extend, b"more")
            go.set()
            result = request.wait(LONG)
            v.extend(b"more")
            self.assertTrue(request.done())
            self.assertEqual(request.wait(), result)

    def test_a_request_that_is_dropped_keeps_its_vector(self):
        class Vector(array.array):
            """A bytearray that weak references can refer to"""

        go, sums = threading.Event(), array.array("i", [7] * 100000)

        def late(comm):
            go.wait(LONG)
            comm.allreduce(sums).wait(LONG)
            comm.allreduce(bytearray(4), "int32").wait(LONG)

        with other_rank(late) as comm:
            v = Vector("i", [35] * 100000)
            alive = weakref.ref(v)
            comm.allreduce(v)
            del v
            gc.collect()
            self.assertIsNotNone(alive())
            go.set()
            # The next operation that begins collects the end of this one
            self.assertTrue(readable(comm, LONG))
            comm.allreduce(bytearray(4), "int32").wait(LONG)
            self.assertIsNone(alive())
            self.assertFalse(readable(comm))
        self.assertEqual(set(sums), {42})


class Watched:
    """The library, with the maximum number of threads in dblp_wait() for the request of rank 0"""

    def __init__(self, lib):
        self.lib, self.lock, self.waiting, self.most = lib, threading.Lock(), {}, 0

    def __getattr__(self, name):
        return getattr(self.lib, name)

    def dblp_wait(self, req, *args):
        with self.lock:
            n = self.waiting[req.value] = self.waiting.get(req.value, 0) + 1
            self.most = max(self.most, n)
        try:
            return self.lib.dblp_wait(req, *args)
        finally:
            with self.lock:
                self.waiting[req.value] -= 1


class Waiting(unittest.TestCase):
    def test_the_descriptor_is_readable_when_a_request_has_ended(self):
        go = threading.Event()

        def late(comm):
            go.wait(LONG)
            for _ in range(3):
                comm.allreduce(array.array("i", [1])).wait(LONG)

        with other_rank(late) as comm:
            v = [array.array("i", [1]) for _ in range(3)]
            requests = [comm.allreduce(a) for a in v]
            self.assertFalse(readable(comm))
            self.assertEqual(comm.ended(), [])
            go.set()
            found = []
            while len(found) < 2:
                self.assertTrue(readable(comm, LONG))
                found += comm.ended()
            for request in set(requests) - set(found):
                self.assertTrue(readable(comm, LONG))
                request.wait(LONG)
            self.assertFalse(readable(comm))
            self.assertEqual([list(a) for a in v], [[2]] * 3)

    def test_ended_looks_at_no_more_requests_than_have_ended(self):
        def two(comm):
            for _ in range(2):
                comm.allreduce(array.array("i", [1])).wait(LONG)
            go.wait(LONG)
            for _ in range(98):
                comm.allreduce(array.array("i", [1])).wait(LONG)

        def collect(op, seconds):
            looked.append(op)
            return real(op, seconds)

        go, looked, found = threading.Event(), [], []
        with other_rank(two) as comm:
            requests = [comm.allreduce(array.array("i", [1])) for _ in range(100)]
            real, comm._collect = comm._collect, collect
            while len(found) < 2:
                self.assertTrue(readable(comm, LONG))
                found += comm.ended()
            self.assertEqual(found, requests[:2])
            self.assertEqual(comm.ended(), [])
            self.assertLess(len(looked), 10)
            go.set()
            for request in requests[2:]:
                request.wait(LONG)
        self.assertEqual(comm.ended(), [])

    def test_ends_are_asked_for_while_another_thread_begins_an_operation(self):
        def begin(handle, req):
            # As if another thread called this now
            found.append(comm.ended())
            return dblp._c.lib.dblp_barrier(handle, req)

        found = []
        with other_rank(lambda comm: comm.barrier(LONG)) as comm:
            comm._submit(begin, (), None).wait(LONG)
        self.assertEqual(found, [[]])

    def test_asyncio_waits_for_requests(self):
        async def reduce(comm):
            loop, ended = asyncio.get_running_loop(), asyncio.Queue()
            loop.add_reader(comm, lambda: [ended.put_nowait(r) for r in comm.ended()])
            request = comm.allreduce(array.array("f", [1]))
            self.assertIs(await asyncio.wait_for(ended.get(), LONG), request)
            loop.remove_reader(comm)
            return request.wait(0).asked

        self.assertEqual(good(with_ranks(2, lambda comm: asyncio.run(reduce(comm)))), [4, 0])

    def test_threads_that_wait_for_one_request_get_the_same(self):
        go = threading.Event()

        def late(comm):
            go.wait(LONG)
            comm.allreduce(array.array("i", [1])).wait(LONG)

        with other_rank(late) as comm:
            request, results = comm.allreduce(array.array("i", [1])), []
            threads = [threading.Thread(target=lambda: results.append(request.wait(LONG)))
                       for _ in range(4)]
            # The first dblp_wait() that returns frees the request
            with mock.patch.object(dblp.comm._c, "lib", Watched(dblp.comm._c.lib)) as lib:
                for thread in threads:
                    thread.start()
                until(lambda: lib.waiting)
                self.assertFalse(request.done())
                go.set()
                for thread in threads:
                    thread.join(LONG)
            self.assertEqual(lib.most, 1)
            self.assertEqual(results, [request.wait()] * 4)

    def test_a_signal_interrupts_a_wait_and_nothing_else(self):
        code = INTERRUPTIBLE + """
def late(comm):
    if not go.wait(LONG):
        os._exit(3)
    comm.allreduce(bytearray(4), "int32").wait(LONG)

go = threading.Event()
store = Store()
thread = threading.Thread(
    target=lambda: late(dblp.Comm(1, 2, store.kv(), **attributes())))
thread.start()
comm = dblp.Comm(0, 2, store.kv(), **attributes())
request = comm.allreduce(bytearray(4), "int32")
def tell():
    until(lambda: any(op.waiter for op in comm._ops))
    print("waits", flush=True)

threading.Thread(target=tell).start()
try:
    request.wait()
except KeyboardInterrupt:
    go.set()
    print(request.wait(LONG).missing)
thread.join()
"""
        with process(code) as p:
            self.assertEqual(p.stdout.readline(), "waits\n")
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.communicate(timeout=LONG), ("0\n", ""))
            self.assertEqual(p.returncode, 0)

    def test_a_signal_interrupts_the_opening(self):
        code = INTERRUPTIBLE + """
print("opens", flush=True)
try:
    dblp.Comm(1, 2, (None, lambda key: print("asks", flush=True)),
              transport="tcp", join_ms=LONG * 10000)
except KeyboardInterrupt:
    print("interrupted")
"""
        with process(code) as p:
            self.assertEqual(p.stdout.readline() + p.stdout.readline(), "opens\nasks\n")
            p.send_signal(signal.SIGINT)
            said, errors = p.communicate(timeout=LONG)
            self.assertTrue(said.endswith("interrupted\n"), said + errors)


class Failures(unittest.TestCase):
    def test_a_process_that_is_killed_is_named(self):
        code = """
comm = dblp.Comm(1, 2, Folder(sys.argv[1]).kv(), **attributes())
print("is there", flush=True)
time.sleep(LONG)
"""
        with tempfile.TemporaryDirectory() as folder, process(code, folder) as p:
            with dblp.Comm(0, 2, Folder(folder).kv(), **attributes()) as comm:
                self.assertEqual(p.stdout.readline(), "is there\n")
                request = comm.allreduce(bytearray(4), "int32")
                self.assertIsNone(comm.error)
                p.kill()
                with self.assertRaises(dblp.RankError) as failed:
                    request.wait(LONG)
                for e in failed.exception, comm.error, pickle.loads(pickle.dumps(comm.error)):
                    self.assertEqual((e.rank, e.errno), (1, errno.ECONNRESET))
                    self.assertIn("rank 1 has failed", str(e))
                self.assertRaises(dblp.RankError, comm.allreduce, bytearray(4), "int32")
                self.assertRaises(dblp.RankError, request.wait)

    def test_ranks_that_disagree_are_told(self):
        def run(comm):
            comm.allreduce(bytearray(4 + 4 * comm.rank), "int32").wait(LONG)

        first, second = with_ranks(2, run)
        self.assertIsInstance(first, dblp.RankError)
        self.assertEqual((first.rank, first.errno), (second.rank, errno.EPROTO))

    def test_an_exception_in_a_context_fails_on_all(self):
        def run(comm):
            if comm.rank == 1:
                raise KeyError("mine")
            comm.allreduce(bytearray(4), "int32").wait(LONG)

        first, second, third = with_ranks(3, run)
        self.assertIsInstance(second, KeyError)
        for e in first, third:
            self.assertEqual((type(e), e.rank, e.errno), (dblp.RankError, 1, errno.ECANCELED))

    def test_abort_says_what_it_was_told(self):
        def run(comm):
            if comm.rank == 1:
                self.assertRaises(ValueError, comm.abort, -errno.EIO)
                comm.abort(errno.EIO)
            comm.allreduce(bytearray(4), "int32").wait(LONG)

        for e in with_ranks(2, run):
            self.assertEqual((type(e), e.rank, e.errno), (dblp.RankError, 1, errno.EIO))

    def test_operations_that_take_too_long_name_ranks_that_have_not_begun_them(self):
        begun = threading.Event()

        def run(comm):
            if comm.rank in (1, 3):
                until(lambda: comm.error)
                raise comm.error
            if not comm.rank:
                begun.wait(LONG)
            request = comm.allreduce(bytearray(4), "int32", dblp.Op(limit_ms=0 if comm.rank else 100))
            begun.set()
            request.wait(LONG)

        for e in with_ranks(4, run):
            self.assertEqual((type(e), e.rank, e.errno, e.ranks), (dblp.RankError, 1, errno.ETIMEDOUT, (1, 3)))
            self.assertIn("operation 0 has not ended after 100 ms: ranks 1 and 3 have not begun it", str(e))
            same = pickle.loads(pickle.dumps(e))
            self.assertEqual((str(same), same.ranks), (str(e), e.ranks))

    def test_all_operations_of_a_communicator_may_have_a_limit(self):
        def run(comm):
            if comm.rank:
                comm.recv(bytearray(4), 0).wait(LONG)
            until(lambda: comm.error)
            raise comm.error

        for e in with_ranks(2, run, operation_ms=100):
            self.assertEqual((e.rank, e.errno, e.ranks), (0, errno.ETIMEDOUT, (0,)))

    def test_a_key_that_is_in_use_is_refused(self):
        go, op = threading.Event(), dblp.Op(rule="feedback", key=7)

        def late(comm):
            go.wait(LONG)
            comm.allreduce(array.array("f", [1]), op=op).wait(LONG)

        with other_rank(late) as comm:
            request = comm.allreduce(array.array("f", [1]), op=op)
            with self.assertRaisesRegex(OSError, "this key has not ended") as refused:
                comm.allreduce(array.array("f", [1]), op=op)
            self.assertEqual(refused.exception.errno, errno.EBUSY)
            go.set()
            request.wait(LONG)


class Ends(unittest.TestCase):
    def test_close_ends_what_has_not_ended(self):
        go = threading.Event()

        with other_rank(lambda comm: go.wait(LONG)) as comm:
            v, seen = bytearray(4), []
            request = comm.allreduce(v, "int32")

            def wait():
                try:
                    comm.allreduce(bytearray(4), "int32").wait()
                except OSError as e:
                    seen.append(e.errno)

            thread = threading.Thread(target=wait)
            thread.start()
            until(lambda: any(op.waiter for op in comm._ops))
            comm.close()
            comm.close()
            thread.join(LONG)
            go.set()
            self.assertEqual(seen, [errno.ECANCELED])
            with self.assertRaises(OSError) as canceled:
                request.wait()
            self.assertEqual(canceled.exception.errno, errno.ECANCELED)
            v.extend(b"free")
            self.assertIn("closed", repr(comm))
            for use in comm.describe, comm.stats, comm.fileno, comm.abort, lambda: comm.rank:
                with self.assertRaisesRegex(ValueError, "is closed"):
                    use()
            with self.assertRaisesRegex(ValueError, "is closed"):
                comm.allreduce(v, "int32")

    def test_close_aborts_only_waits(self):
        class Held:
            """The library, whose calls of one name return when close() waits for them"""

            def __init__(self, lib, name):
                self.lib, self.name, self.aborts = lib, name, 0
                self.entered, self.leave = threading.Event(), threading.Event()

            def __getattr__(self, name):
                function = getattr(self.lib, name)
                self.aborts += name == "dblp_comm_abort"
                return function if name != self.name else lambda *args: self.hold(function, *args)

            def hold(self, function, *args):
                self.entered.set()
                assert self.leave.wait(LONG), "close() does not wait"
                return function(*args)

        def closed(name, use):
            """Number of aborts by close() while another thread carries out use(comm, request)"""
            def receive(comm):
                data = bytearray(4)
                comm.broadcast(data).wait(LONG)
                received.append(bytes(data))
                go.wait(LONG)

            def wait_for(condition, timeout=None):
                if comm._closed:
                    held.leave.set()
                return real(condition, timeout)

            go, received = threading.Event(), []
            with other_rank(receive) as comm:
                comm.broadcast(bytearray(b"root")).wait(LONG)
                request = comm.allreduce(bytearray(4), "int32")
                held = Held(dblp._c.lib, name)
                real, comm._cond.wait_for = comm._cond.wait_for, wait_for
                with mock.patch.object(dblp._c, "lib", held):
                    thread = threading.Thread(target=use, args=(comm, request))
                    thread.start()
                    self.assertTrue(held.entered.wait(LONG))
                    # The other rank has what was sent to it
                    until(lambda: received)
                    comm.close()
                    thread.join(LONG)
                go.set()
            self.assertEqual(received, [b"root"])
            return held.aborts

        def wait(_comm, request):
            with self.assertRaises(OSError):
                request.wait(LONG)

        self.assertEqual(closed("dblp_comm_fd", lambda comm, _: comm.fileno()), 0)
        self.assertEqual(closed("dblp_wait", lambda _, request: request.done()), 0)
        self.assertEqual(closed("dblp_wait", wait), 1)

    def test_one_that_is_dropped_is_closed(self):
        store, before = Store(), len(os.listdir("/proc/self/fd"))
        comm = dblp.Comm(0, 1, store.kv(), **attributes())
        request = comm.allreduce(bytearray(4), "int32")
        del comm
        request.wait(LONG)
        del request
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_program_may_end_at_any_time(self):
        begin = """
comm = dblp.Comm(0, 2, Folder(sys.argv[1]).kv(), **attributes())
request = comm.allreduce(bytearray(4000000), "int32")
comm.allreduce(bytearray(4000000), "int32")
print("begun", flush=True)
"""
        ends = {
            "": 0,
            "threading.Thread(target=request.wait, daemon=True).start()\n"
            "until(lambda: any(op.waiter for op in comm._ops))": 0,
            "raise KeyError('mine')": 1,
            "del comm, request": 0,
            "sys.modules['kept'] = comm, request": 0,
        }
        for end, status in ends.items():
            with self.subTest(end), tempfile.TemporaryDirectory() as folder:
                with process(begin + end, folder) as p:
                    with dblp.Comm(1, 2, Folder(folder).kv(), **attributes()) as comm:
                        self.assertEqual(p.stdout.readline(), "begun\n")
                        _, errors = p.communicate(timeout=LONG)
                        self.assertEqual(p.returncode, status, errors)
                        if "daemon" not in end and not status:
                            self.assertEqual(errors, "")
                        with self.assertRaises(dblp.RankError) as failed:
                            comm.allreduce(bytearray(4000000), "int32").wait(LONG)
                        self.assertEqual(failed.exception.rank, 0)

    def test_what_is_kept_until_the_end_is_closed_before_memory_is_freed(self):
        code = """
comm = dblp.Comm(0, 1, Store().kv(), **attributes())
"""
        # atexit calls the function that was registered first last
        with process(code, first="import atexit\natexit.register(lambda: print(comm))\n") as p:
            self.assertEqual(p.communicate(timeout=LONG), ("<dblp.Comm, closed>\n", ""))

    def test_a_child_has_none(self):
        code = """
comm = dblp.Comm(0, 1, Store().kv(), **attributes())
request = comm.allreduce(bytearray(4), "int32")
if not os.fork():
    for use in comm.describe, lambda: comm.allreduce(bytearray(4), "int32"):
        try:
            use()
            os._exit(1)
        except ValueError:
            pass
    comm.close()
    del comm, request
    sys.exit(7)
status = os.wait()[1]
print(os.waitstatus_to_exitcode(status), request.wait(LONG).missing)
print(comm.allreduce(bytearray(4), "int32").wait(LONG).missing)
"""
        with process(code) as p:
            self.assertEqual(p.communicate(timeout=LONG), ("7 0\n0\n", ""))


class Opening(unittest.TestCase):
    def refused(self, error, reason, *args, **attr):
        with self.assertRaisesRegex(error, reason) as e:
            dblp.Comm(*args, **{"transport": "tcp", "join_ms": 100, **attr})
        return e.exception

    def test_attributes_that_cannot_be_are_refused_with_the_reason(self):
        kv = Store().kv()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(
            ("RANK", "WORLD_", "OMPI_", "PMI_", "SLURM_", "MASTER_"))}
        saved = dict(os.environ)
        os.environ.clear()
        os.environ.update(environment)
        try:
            self.refused(OSError, "rank is not given, .* none of RANK, ", None, 1, kv)
            self.refused(OSError, "nranks is not given", 0, None, kv)
            self.refused(OSError, "no MASTER_ADDR", 0, 1)
            for wrong in "many", "-1", "4294967296":
                os.environ["DBLP_JOB"] = wrong
                self.refused(ValueError, f"DBLP_JOB={wrong} of the environment is not", 0, 1, kv)
            del os.environ["DBLP_JOB"]
        finally:
            os.environ.update(saved)
        self.refused(OSError, "rank 2 is out of range", 2, 2, kv)
        self.refused(OSError, "'udp' is neither 'dblp', 'tcp'", 0, 1, kv, transport="udp")
        self.refused(OSError, "not a multiple of 8", 0, 1, kv, message_bytes=9)
        self.refused(OSError, "rendezvous nowhere is not known", 0, 1, "nowhere")
        self.refused(OSError, "there is no device none0", 0, 1, kv, devices=["none0"])
        self.refused(ValueError, "contains a NUL", 0, 1, "tcp://x\0y")
        self.refused(ValueError, "rank -1 is not", -1, 1, kv)
        self.refused(TypeError, "job must be an int", 0, 1, kv, job="1")
        self.refused(TypeError, "transport must be a str", 0, 1, kv, transport=1)
        # A name that the other ranks do not need is not the reason
        with mock.patch.dict(os.environ, MASTER_ADDR="no-such-host.invalid"):
            self.refused(TimeoutError, "have not joined within 100 ms: 1", 0, 2, kv)

    def test_secrets_ports_and_limits_reach_the_library(self):
        kv = Store().kv()
        self.refused(OSError, "ports 9-x are not a range", 0, 1, kv, ports="9-x")
        self.refused(OSError, "the secret is not 32 hexadecimal digits", 0, 1, kv, secret="abc")
        self.refused(OSError, "bind nowhere is not an address", 0, 1, "tcp://127.0.0.1:1", bind="nowhere")
        self.refused(OSError, "only over transport dblp", 0, 1, kv, secret="0" * 32, authenticate=True)
        self.refused(TypeError, "authenticate must be a bool, not 'no'", 0, 1, kv, authenticate="no")
        with mock.patch.dict(os.environ, DBLP_AUTHENTICATE="1"):
            self.refused(OSError, "only with a secret", 0, 1, kv)
        self.refused(ValueError, "operation_ms -1 is not", 0, 1, kv, operation_ms=-1)

    def test_all_ranks_come_as_the_environment_says(self):
        code = """
comm = dblp.Comm(transport="tcp")
v = array.array("i", [1])
comm.allreduce(v).wait(LONG)
print(comm.rank, comm.nranks, v[0], comm.describe().split(",")[0])
"""
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        ranks = [process(code, env={**os.environ, "RANK": str(r), "WORLD_SIZE": "2",
                                    "MASTER_ADDR": "127.0.0.1", "DBLP_PORT": port})
                 for r in range(2)]
        said = [p.communicate(timeout=LONG) for p in ranks]
        self.assertEqual(said, [("0 2 2 rank 0 of 2\n", ""), ("1 2 2 rank 1 of 2\n", "")])

    def test_what_the_store_raises_is_raised(self):
        def fails(*_args):
            raise KeyError("no store")

        for rank, kv in (0, (fails, None)), (1, (None, fails)), (1, (None, lambda key: b"x" * 999)):
            with self.assertRaises((KeyError, ValueError)):
                dblp.Comm(rank, 2, kv, **attributes())

    def test_an_older_epoch_is_refused_and_counted(self):
        store = Store()

        def newer(rank):
            return dblp.Comm(rank, 2, store.kv(), **attributes(epoch=2))

        comms = []
        thread = threading.Thread(target=lambda: comms.append(newer(0)))
        thread.start()
        until(lambda: store.values)
        address = next(iter(store.values.values()))
        with self.assertRaisesRegex(OSError, "epoch 1 is over") as stale:
            dblp.Comm(1, 2, (None, lambda key: address), **attributes(epoch=1))
        self.assertEqual(stale.exception.errno, errno.ESTALE)
        comms.append(newer(1))
        thread.join(LONG)
        self.assertEqual([c.stats().stale for c in comms if c.rank == 0], [1])
        for comm in comms:
            comm.close()


if __name__ == "__main__":
    unittest.main()
