# SPDX-License-Identifier: GPL-2.0-only
"""dblp.staging on a device of this process, without ranks."""

import gc
import os
import threading
import time
import unittest

from common import LONG, process, until
from dblp.staging import Stager
from fakedevice import FakeDevice, Stream


class Request:
    """An operation that adds 1 to each byte of its buffer when a test ends it"""

    def __init__(self, host):
        self.host, self.error = host, None
        self.ended = threading.Event()

    def end(self, error=None):
        self.error = error
        for i, value in enumerate(self.host):
            self.host[i] = value + 1
        self.ended.set()

    def wait(self):
        assert self.ended.wait(LONG)
        if self.error:
            raise self.error
        return "result"


def tensor(*values):
    return memoryview(bytearray(values))


class Staging(unittest.TestCase):
    def setUp(self):
        self.device = FakeDevice()
        self.aborted, self.begun = [], []
        self.stager = Stager(lambda: self.aborted.append(1))
        self.addCleanup(self.end_all)

    def end_all(self):
        """Let threads of a test that has failed end"""
        self.aborted = None
        for stream in self.device.streams:
            getattr(stream, "release", bool)()
        for request in self.begun:
            request.ended.set()
        self.stager.close()

    def begin(self, host):
        self.begun.append(Request(host))
        return self.begun[-1]

    def submit(self, data, nbytes=None, **how):
        return self.stager.submit(how.pop("device", self.device), nbytes or len(data), how.pop("begin", self.begin),
                                  how.pop("inputs", [(0, data)]), **how)

    def begins(self, n):
        until(lambda: len(self.begun) >= n)
        self.assertEqual(len(self.begun), n)

    def up(self):
        """The stream of copies from buffers; the first one is that of copies to them"""
        return self.device.streams[1]

    def round(self, data):
        """A job from its beginning to its end"""
        job = self.submit(data)
        self.begins(len(self.begun) + (len(self.begun) == 0 or self.begun[-1].ended.is_set()))
        self.begun[-1].end()
        job.future.wait()
        return job

    def test_inputs_are_copied_after_the_work_of_the_callers_stream(self):
        data = tensor(0, 0)
        producer = self.device.current = Stream()
        self.addCleanup(lambda: producer.release())
        producer.hold()

        def compute():
            data[:] = b"\x05\x06"

        producer.put(compute)
        # Returns, although the stream is held
        job = self.submit(data)
        self.assertFalse(self.stager.flush(0.05))
        self.assertEqual((self.begun, bytes(data)), ([], b"\0\0"))
        producer.release()
        self.begins(1)
        self.assertEqual(bytes(self.begun[0].host), b"\x05\x06")
        self.begun[0].end()
        self.assertIs(job.future.wait()[0], data)
        self.assertEqual((bytes(data), job.wait()), (b"\x06\x07", "result"))

    def test_a_future_is_completed_after_the_copies_back(self):
        data = tensor(1)
        job = self.submit(data)
        self.begins(1)
        self.up().hold()
        self.begun[0].end()
        self.assertEqual(job.wait(LONG), "result")
        self.assertFalse(job.future.done())
        self.assertEqual(bytes(data), b"\1")
        self.up().release()
        job.future.wait()
        self.assertEqual(bytes(data), b"\2")

    def test_two_operations_run_at_once_and_a_third_waits_for_a_buffer(self):
        data = [tensor(i, i) for i in range(5)]
        jobs = [self.submit(d) for d in data]
        for i in range(5):
            self.begins(min(i + 2, 5))
            self.assertEqual([r.host[0] for r in self.begun[i:]], [*range(i, min(i + 2, 5))])
            self.assertFalse(jobs[i].done())
            self.begun[i].end()
            jobs[i].future.wait()
        self.assertEqual([bytes(d) for d in data], [bytes([i + 1] * 2) for i in range(5)])
        self.assertEqual((self.device.allocated, self.device.nbytes), (2, 4))

    def test_a_buffer_is_not_overwritten_before_its_copy_back_has_ended(self):
        data = [tensor(10 * i) for i in range(3)]
        jobs = [self.submit(d) for d in data]
        self.begins(2)
        self.up().hold()
        self.begun[0].end()
        jobs[0].wait(LONG)
        self.assertFalse(self.stager.flush(0.05))
        self.begins(2)
        self.up().release()
        self.begins(3)
        for request in self.begun[1:]:
            request.end()
        for job in jobs:
            job.future.wait()
        self.assertEqual([d[0] for d in data], [1, 11, 21])

    def test_copies_to_buffers_do_not_wait_for_copies_back(self):
        data = [tensor(1), tensor(2)]
        jobs = [self.submit(data[0])]
        self.begins(1)
        self.up().hold()
        self.begun[0].end()
        jobs[0].wait(LONG)
        jobs.append(self.submit(data[1]))
        self.begins(2)
        self.up().release()
        self.begun[1].end()
        jobs[1].future.wait()

    def test_buffers_grow_to_the_largest_operation_and_are_reused(self):
        for n in 100, 100, 50, 300, 300, 200, 1:
            data = tensor(*[7] * n)
            self.round(data)
            self.assertEqual(bytes(data), b"\x08" * n)
        self.assertEqual((self.device.allocated, self.device.nbytes), (4, 600))

    def test_a_buffer_that_grows_is_freed_after_the_last_copy(self):
        self.stager = Stager(lambda: None, slots=1)
        first, second = tensor(1), tensor(2, 3)
        job = self.submit(first)
        self.begins(1)
        self.up().hold()
        self.begun[0].end()
        job.wait(LONG)
        other = self.submit(second)
        self.assertFalse(self.stager.flush(0.05))
        self.assertEqual(self.device.nbytes, 1)
        self.up().release()
        self.begins(2)
        self.begun[1].end()
        other.future.wait()
        self.assertEqual((bytes(first), bytes(second), self.device.nbytes), (b"\2", b"\3\4", 2))

    def test_inputs_and_outputs_may_be_at_other_places(self):
        mine, every = tensor(7), [tensor(0), tensor(0), tensor(0)]
        job = self.submit(None, 3, inputs=[(1, mine)], outputs=list(enumerate(every)))
        self.begins(1)
        self.begun[0].host[2] = 40
        self.begun[0].end()
        self.assertEqual([bytes(t)[0] for t in job.future.wait()][1:], [8, 41])
        self.assertEqual(bytes(mine), b"\7")

    def test_devices_have_buffers_of_their_own_and_one_order(self):
        other = FakeDevice("other")
        data = [tensor(i) for i in range(4)]
        for i, d in enumerate(data):
            self.submit(d, device=other if i > 1 else self.device)
        self.begins(4)
        self.assertEqual([r.host[0] for r in self.begun], [0, 1, 2, 3])
        self.assertEqual((self.device.nbytes, other.nbytes), (2, 2))

    def test_threads_use_the_device_of_each_call(self):
        devices = [self.device, FakeDevice("other")]
        for i in range(6):
            # Buffers of all devices grow in between
            job = self.submit(tensor(*[i] * (i + 1)), device=devices[i % 2])
            self.begins(i + 1)
            self.begun[i].end()
            job.future.wait()
        self.stager.close()
        self.assertEqual([device.misused for device in devices], [[], []])

    def test_flush_waits_until_all_have_begun_or_have_ended(self):
        job = self.submit(tensor(1))
        self.assertTrue(self.stager.flush(LONG))
        self.assertEqual(len(self.begun), 1)
        self.assertFalse(self.stager.flush(0, ended=True))
        self.begun[0].end()
        self.assertTrue(self.stager.flush(LONG, ended=True))
        self.assertTrue(job.done())

    # Failures

    def fails(self, error, jobs):
        """All jobs end with the same exception, and so do later ones"""
        for job in [*jobs, self.submit(tensor(0))]:
            self.assertIsNone(job.future.wait())
            with self.assertRaises(type(error)) as caught:
                job.wait(LONG)
            self.assertIs(caught.exception, error)
        self.assertEqual(self.aborted, [1])
        # Nothing is left in use
        self.stager.close()
        self.assertEqual((self.aborted, self.device.nbytes), ([1], 0))

    def test_a_failed_operation_ends_all_that_wait(self):
        error = OSError("rank 1 has failed")
        data = [tensor(i) for i in range(5)]
        jobs = [self.submit(d) for d in data]
        self.begins(2)
        self.begun[0].end(error)
        # As the library ends the others
        self.begun[1].end(OSError("rank 1 has failed, as well"))
        self.fails(error, jobs)
        self.begins(2)
        self.assertEqual([d[0] for d in data], [0, 1, 2, 3, 4])

    def test_an_operation_that_does_not_begin_ends_all_that_wait(self):
        error = ValueError("no such lane")

        def refuse(_host):
            raise error

        first = self.submit(tensor(1))
        self.begins(1)
        jobs = [self.submit(tensor(2), begin=refuse), self.submit(tensor(3))]
        until(lambda: self.aborted)
        # abort() ends the first
        self.begun[0].end(OSError("aborted"))
        self.fails(error, [first, *jobs])

    def test_a_device_that_fails_ends_all_that_wait(self):
        for name in "pinned", "copy":
            with self.subTest(name):
                self.setUp()
                error = RuntimeError(f"out of {name}")

                def fail(error=error):
                    raise error

                self.device.fail[name] = fail
                self.fails(error, [self.submit(tensor(1)), self.submit(tensor(2))])
                self.assertEqual(self.begun, [])

    def test_a_copy_back_that_fails_ends_all_that_wait(self):
        error = RuntimeError("device lost")
        job = self.submit(tensor(1))
        self.begins(1)

        def fail():
            raise error

        self.device.fail["copy"] = fail
        self.begun[0].end()
        self.fails(error, [job])

    def test_a_wait_may_have_a_limit(self):
        job = self.submit(tensor(1))
        self.assertRaises(TimeoutError, job.wait, 0.01)
        self.begins(1)
        self.begun[0].end()
        self.assertEqual(job.wait(LONG), "result")

    # Ends

    def threads(self):
        return [t for t in threading.enumerate() if t.name == "dblp-staging"]

    def test_close_frees_the_buffers_and_ends_the_threads(self):
        self.round(tensor(1))
        self.assertEqual((self.device.nbytes, len(self.threads())), (1, 2))
        self.stager.close()
        self.assertEqual((self.device.nbytes, self.threads(), self.aborted), (0, [], []))
        self.assertRaisesRegex(ValueError, "is closed", self.submit, tensor(1))
        self.stager.close()

    def test_a_stager_that_is_dropped_is_closed(self):
        self.round(tensor(1))
        self.stager = Stager(lambda: None)
        gc.collect()
        self.assertEqual((self.device.nbytes, self.threads()), (0, []))

    def test_close_ends_operations(self):
        jobs = [self.submit(tensor(i)) for i in range(4)]
        self.begins(2)

        def abort():
            for request in self.begun:
                request.end(OSError("aborted"))

        self.stager._core._abort = abort
        self.stager.close()
        for job in jobs:
            with self.assertRaisesRegex(OSError, "the communicator was closed"):
                job.wait(LONG)
        self.assertEqual((len(self.begun), self.device.nbytes, self.threads()), (2, 0, []))

    def test_a_child_of_a_fork_has_no_operations(self):
        self.submit(tensor(1))
        self.begins(1)
        pid = os.fork()
        if not pid:
            try:
                self.stager.close()
                # abort() would fail the parent's communicator
                if not self.aborted:
                    self.submit(tensor(1))
            except ValueError:
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.aborted, [])

    def test_a_program_may_end_while_operations_wait(self):
        began = time.monotonic()
        with process("""
import threading
from dblp.staging import Stager
from fakedevice import FakeDevice
class Request:
    wait = threading.Event().wait
stager = Stager(Request.wait.__self__.set)
jobs = [stager.submit(FakeDevice(), 1, lambda host: Request, [(0, memoryview(bytearray(1)))]) for _ in range(5)]
print("submitted")
""") as p:
            out, err = p.communicate(timeout=LONG)
        self.assertEqual((p.returncode, out, err), (0, "submitted\n", ""))
        self.assertLess(time.monotonic() - began, LONG / 2)


if __name__ == "__main__":
    unittest.main()
