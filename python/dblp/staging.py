# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Operations on tensors in memory of a device, such as a GPU, by pinned buffers in memory of the host.

A Stager belongs to one communicator and begins operations in the order of submit(), which is the
same on all ranks. submit() never waits for the device or for other ranks:

    stager = Stager(abort)
    job = stager.submit(device, nbytes, begin, [(0, tensor)])
    job.future          # completed on a side stream, so that its consumers wait by event
    job.wait()          # the result of the operation, or its exception

In submit() an event is recorded on the caller's stream. A thread then takes one of two buffers, and
lets a side stream wait for the event and copy the tensors into the buffer. When the copy has ended,
the thread calls begin(host), which begins the operation on the buffer and returns an object with
wait(), such as a dblp.Request. A second thread waits for its end, and lets another side stream copy
the buffer back and complete the future. Two streams let copies in both directions overlap, and with
two buffers, the copies of one operation overlap with the network of the other.

After a failure abort() is called, because other ranks would wait for this one. All jobs that have
not ended, and all later ones, end with the same exception.

This module does not import PyTorch: a Device has the calls that it needs. dblp.accelerator
implements them for PyTorch.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import threading
import weakref
from typing import Any, Callable, Deque, Dict, Hashable, List, Optional, Protocol, Sequence, Tuple

__all__ = ["Device", "Job", "Stager"]

#: Tensors, each with its offset in bytes in the buffer; an offset is a multiple of the element size
Places = Sequence[Tuple[int, Any]]

#: Seconds to wait for the threads of a Stager that is closed
_LIMIT = 5.0


class Device(Protocol):
    """A device whose copies from and to pinned memory are asynchronous. Methods may raise any exception."""

    @property
    def key(self) -> Hashable:
        """The same for all objects that stand for this device."""

    def use(self) -> None:
        """
        Make this the current device of the calling thread, as each thread of a Stager does before other calls.
        A thread starts with the first device, where calls would otherwise take memory.
        """

    def stream(self) -> Any:
        """A new side stream."""

    def record(self, stream: Any = None) -> Any:
        """Record a new event on a stream; None: on the current stream of the calling thread."""

    def wait(self, stream: Any, event: Any) -> None:
        """Let a stream wait for an event."""

    def synchronize(self, event: Any) -> None:
        """Wait for an event in the calling thread."""

    def pinned(self, nbytes: int) -> Any:
        """A new buffer of pinned memory."""

    def free(self, host: Any) -> None:
        """Free a buffer of pinned()."""

    def slice(self, host: Any, nbytes: int) -> Any:
        """The first `nbytes` of a buffer."""

    def copy(self, host: Any, offset: int, tensor: Any, stream: Any, back: bool) -> None:
        """
        Let a stream copy a tensor into a buffer, from `offset` on, or with `back` the buffer into
        the tensor. The memory of the tensor is not reused before the copy has ended, even if the
        tensor is freed (record_stream()).
        """

    def future(self) -> Any:
        """A future whose result is in memory of this device."""

    def complete(self, future: Any, value: Any, stream: Any) -> None:
        """
        Set the result of a future. Its tensors are valid when the work of a stream up to now has
        ended. After a failure the value is None, and the stream is not used.
        """


class _Slot:
    """A pinned buffer. `free_at` is the event after which the device does not use it any more."""

    def __init__(self) -> None:
        self.host: Any = None
        self.size = 0
        self.free_at: Any = None


class _Side:
    """Streams and buffers of one device."""

    def __init__(self, device: Device, slots: int) -> None:
        self.device = device
        self.down, self.up = device.stream(), device.stream()
        self.slots = [_Slot() for _ in range(slots)]
        #: The first one was used least recently, so its copy back is the first to end
        self.idle = collections.deque(self.slots)

    def grow(self, slot: _Slot, nbytes: int) -> None:
        """Replace a buffer that is too small"""
        if slot.size >= nbytes:
            return
        self.empty(slot)
        slot.host = self.device.pinned(nbytes)
        slot.size = nbytes

    def empty(self, slot: _Slot) -> None:
        host, slot.host, slot.size = slot.host, None, 0
        event, slot.free_at = slot.free_at, None
        if event is not None:
            self.device.synchronize(event)
        if host is not None:
            self.device.free(host)


class Job:
    """An operation of a Stager."""

    def __init__(self, side: _Side, nbytes: int, begin: Callable[[Any], Any], inputs: Places,
                 outputs: Places) -> None:
        #: Completed with the list of output tensors when the copies back are in their stream, or
        #: with None after a failure. Its consumers call wait() for the exception.
        self.future = side.device.future()
        self._side, self._nbytes, self._begin = side, nbytes, begin
        self._inputs, self._outputs = inputs, outputs
        self._ready = side.device.record()
        self._slot: Optional[_Slot] = None
        self._request: Any = None
        self._result: Any = None
        self._error: Optional[BaseException] = None
        self._ended = threading.Event()

    def new_future(self) -> Any:
        """A future whose result is in memory of the job's device."""
        return self._side.device.future()

    def done(self) -> bool:
        """Has the operation ended? Then wait() returns or raises at once."""
        return self._ended.is_set()

    def wait(self, timeout: Optional[float] = None) -> Any:
        """
        Wait for the end of the operation, and return what the request's wait() returned, or raise
        its exception. Raises TimeoutError after `timeout` seconds; None: no limit. The outputs
        are valid for streams that wait for the future.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the operation has not ended after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._result


class _Core:
    """What the threads of a Stager use; they do not keep the Stager itself."""

    def __init__(self, abort: Callable[[], Any], slots: int) -> None:
        self._abort, self._nslots = abort, slots
        self._pid = os.getpid()
        self._cond = threading.Condition()
        self._sides: Dict[Hashable, _Side] = {}
        #: Jobs that have not begun, with the one that is being begun, and jobs that have begun
        self._waiting: Deque[Job] = collections.deque()
        self._begun: Deque[Job] = collections.deque()
        #: Is a job being ended, which is in neither?
        self._ending = False
        self._error: Optional[BaseException] = None
        self._closed = False
        self._threads: List[threading.Thread] = []

    def submit(self, device: Device, nbytes: int, begin: Callable[[Any], Any], inputs: Places,
               outputs: Places) -> Job:
        """Append a job."""
        with self._cond:
            if self._closed or self._pid != os.getpid():
                raise ValueError("the Stager is closed, or belongs to the parent of a fork()")
            side = self._sides.get(device.key)
            if side is None:
                side = self._sides[device.key] = _Side(device, self._nslots)
            if not self._threads:
                self._start()
            job = Job(side, nbytes, begin, inputs, outputs)
            self._waiting.append(job)
            self._cond.notify_all()
        return job

    def _start(self) -> None:
        for target in self._run_begin, self._run_end:
            thread = threading.Thread(target=target, name="dblp-staging", daemon=True)
            self._threads.append(thread)
            thread.start()

    def flush(self, timeout: Optional[float], ended: bool) -> bool:
        """Wait until all jobs have begun, or have ended. Have they in time?"""
        with self._cond:
            return self._cond.wait_for(lambda: not (self._waiting or (ended and (self._begun or self._ending))), timeout)

    # The thread that begins operations

    def _run_begin(self) -> None:
        while True:
            with self._cond:
                self._cond.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                job = self._waiting[0]
            try:
                self._load(job)
            except BaseException as e:  # pylint: disable=broad-except
                self._fail(e)
            with self._cond:
                self._waiting.popleft()
                self._begun.append(job)
                self._cond.notify_all()
            del job

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _load(self, job: Job) -> None:
        """Copy the inputs of a job into a buffer, and begin its operation"""
        side, device = job._side, job._side.device
        device.use()
        with self._cond:
            self._cond.wait_for(lambda: side.idle or self._error)
            self._check()
            slot = job._slot = side.idle.popleft()
        side.grow(slot, job._nbytes)
        if slot.free_at is not None:
            device.wait(side.down, slot.free_at)
        device.wait(side.down, job._ready)
        for offset, tensor in job._inputs:
            device.copy(slot.host, offset, tensor, side.down, False)
        slot.free_at = device.record(side.down)
        device.synchronize(slot.free_at)
        self._check()
        job._request = job._begin(device.slice(slot.host, job._nbytes))

    # The thread that ends them

    def _run_end(self) -> None:
        while True:
            with self._cond:
                self._cond.wait_for(lambda: self._begun or (self._closed and not self._waiting))
                if not self._begun:
                    self._empty()
                    return
                job = self._begun.popleft()
                self._ending = True
            self._end(job)
            del job
            with self._cond:
                self._ending = False
                self._cond.notify_all()

    def _end(self, job: Job) -> None:
        """Copy the outputs of a job back, and complete its future"""
        side, device, value = job._side, job._side.device, None
        try:
            device.use()
            if job._slot is None or job._request is None:
                self._check()
                raise RuntimeError("begin() returned no request")
            job._result = job._request.wait()
            for offset, tensor in job._outputs:
                device.copy(job._slot.host, offset, tensor, side.up, True)
            job._slot.free_at = device.record(side.up)
            value = [tensor for _, tensor in job._outputs]
        except BaseException as e:  # pylint: disable=broad-except
            self._fail(e)
            job._error = self._error
        self._release(job)
        job._ended.set()
        try:
            device.complete(job.future, value, side.up)
        except BaseException as e:  # pylint: disable=broad-except
            # A callback of the future raised, or the device has failed
            self._fail(e)

    def _release(self, job: Job) -> None:
        slot, job._slot = job._slot, None
        job._request = None
        # It refers to tensors, as these do
        del job._begin
        job._inputs = job._outputs = ()
        with self._cond:
            if slot is not None:
                job._side.idle.append(slot)
            self._cond.notify_all()

    # Failure and end

    def _fail(self, error: BaseException) -> None:
        """Record the first error; the jobs that have not begun end with it"""
        with self._cond:
            if self._error is not None:
                return
            self._error = error
            self._cond.notify_all()
        with contextlib.suppress(Exception):
            self._abort()

    def _empty(self) -> None:
        for side in self._sides.values():
            with contextlib.suppress(Exception):
                side.device.use()
            for slot in side.slots:
                with contextlib.suppress(Exception):
                    side.empty(slot)
        self._sides.clear()

    def close(self) -> None:
        """End all jobs, the threads, and free the buffers."""
        if self._pid != os.getpid():
            # A fork() has no threads
            return
        with self._cond:
            self._closed = True
            unfinished = bool(self._waiting or self._begun)
            unfinished |= any(len(side.idle) < len(side.slots) for side in self._sides.values())
            self._cond.notify_all()
        if unfinished:
            self._fail(OSError(errno.ECANCELED, f"{os.strerror(errno.ECANCELED)}: the communicator was closed"))
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_LIMIT)


class Stager:
    """
    Begins operations of one communicator on tensors of devices, in the order of submit().

    abort: called after a failure, and by close() if jobs have not ended. It makes the operations
        that have begun end, and must not refer to this object or, strongly, to the communicator.
    slots: number of pinned buffers of a device. Each grows to the size of its largest job.

    The threads start with the first job. Buffers are freed by close(), when this object is freed,
    and at the end of the program.
    """

    def __init__(self, abort: Callable[[], Any], slots: int = 2) -> None:
        if slots < 1:
            raise ValueError(f"a Stager needs a buffer, not {slots}")
        self._core = _Core(abort, slots)
        self._finalizer = weakref.finalize(self, self._core.close)

    def submit(self, device: Device, nbytes: int, begin: Callable[[Any], Any], inputs: Places,
               outputs: Optional[Places] = None) -> Job:
        """
        Append an operation; all ranks do so in the same order.

        nbytes: size of the buffer.
        begin: function of the buffer that begins the operation and returns an object with wait().
            Another thread calls it when the inputs are in the buffer. It must not wait for ranks.
        inputs: tensors to copy into the buffer, each with its offset in bytes. Work that the
            caller's current stream has now, such as their computation, is waited for.
        outputs: tensors to copy from the buffer after the operation; None: the inputs.

        Tensors must not be written to until streams that use them have waited for the future of
        the returned Job. Raises ValueError after close().
        """
        return self._core.submit(device, nbytes, begin, inputs, inputs if outputs is None else outputs)

    def flush(self, timeout: Optional[float] = None, ended: bool = False) -> bool:
        """
        Wait until all submitted operations have begun, or have failed: before an operation of the
        communicator that is not submitted here. With `ended`, wait until they have ended on this rank.
        Returns False if `timeout` seconds were too short.
        """
        return self._core.flush(timeout, ended)

    def close(self) -> None:
        """
        Free the buffers. Jobs that have not ended end with ECANCELED, and the communicator is
        aborted. May be called again.
        """
        self._finalizer()
