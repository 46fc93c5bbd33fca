# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Operations of the backend "dblp" that have begun, as works of torch.distributed."""

from __future__ import annotations

import contextlib
import datetime
import os
import select
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from .comm import Comm, Request
from .staging import Job

__all__ = ["Begun", "Completer", "Work"]

#: Works that a Completer keeps, at most
_KEPT = 1 << 12


class Begun:
    """
    Requests of one operation.

    finish: called once, after all requests have succeeded, such as to copy results.
    jobs: those among the requests that copy results to a device.
    """

    def __init__(self, requests: Sequence[Union[Request, Job]], finish: Optional[Callable[[], None]] = None,
                 jobs: Sequence[Job] = ()) -> None:
        self.jobs = list(jobs)
        self._requests = list(requests)
        self._finish = finish
        self._lock = threading.Lock()
        self._error: Optional[BaseException] = None
        self._over = False

    @classmethod
    def all(cls, parts: Sequence[Begun]) -> Begun:
        """Several operations as one."""
        def finish() -> None:
            for part in parts:
                part.wait()

        return cls([request for part in parts for request in part._requests],
                   finish if any(part.finishes for part in parts) else None,
                   [job for part in parts for job in part.jobs])

    def then(self, finish: Callable[[], None]) -> Begun:
        """This operation with more to do at its end."""
        with self._lock:
            first = self._finish

            def both() -> None:
                if first is not None:
                    first()
                finish()

            self._finish = both
        return self

    @property
    def finishes(self) -> bool:
        """Is there something to do after the requests have ended?"""
        return self._finish is not None

    def done(self) -> bool:
        """Have all requests ended? Does not wait."""
        ended = self._over or all(request.done() for request in self._requests)
        return ended and all(job.future.done() for job in self.jobs)

    def future(self) -> Any:
        """A future for the end, whose value may be in memory of the device."""
        return self.jobs[0].new_future() if self.jobs else torch.futures.Future()

    def wait(self, timeout: Optional[float] = None) -> None:
        """
        Wait up to `timeout` seconds for the end. Results on a device are valid for the current stream
        of the calling thread. Raises the exceptions of Request.wait().
        """
        if not self._over:
            self._wait_for_requests(timeout)
            with self._lock:
                self._end()
        if self._error is not None:
            raise self._error
        for job in self.jobs:
            job.future.wait()

    def _wait_for_requests(self, timeout: Optional[float]) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        for request in self._requests:
            try:
                request.wait(None if until is None else max(0.0, until - time.monotonic()))
            except Exception:  # pylint: disable=broad-except
                if not request.done():
                    raise
                # After a failure all requests end

    def _end(self) -> None:
        if self._over:
            return
        try:
            for request in self._requests:
                request.wait()
            if self._finish is not None:
                self._finish()
        except Exception as e:  # pylint: disable=broad-except
            self._error = e
        self._finish = None
        self._over = True


#: Returns the outputs of an operation that has ended, or raises
_Result = Callable[[Any], Any]


class Completer:
    """
    Threads that complete futures of operations, which end in any order. One of them waits at a
    time; functions that programs have added by then() may block the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: List[Tuple[Begun, Any]] = []
        self._comms: List[Comm] = []
        self._wake_read, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._threads = self._idle = 0
        self._stopped = False
        self._kept: Dict[int, Work] = {}

    def keep(self, work: Work) -> None:
        """
        Keep a work until drop(): PyTorch's C++ uses works of Python without keeping them alive. It
        need not wait for a work, so old ones are dropped when there are many.
        """
        with self._lock:
            self._kept[id(work)] = work
            old = self._kept.pop(next(iter(self._kept))) if len(self._kept) > _KEPT else None
        del old

    def drop(self, work: Work) -> None:
        """A work has been waited for, or its future has been completed."""
        with self._lock:
            self._kept.pop(id(work), None)

    def watch(self, comm: Comm) -> None:
        """Also complete operations of this communicator."""
        with self._lock:
            self._comms.append(comm)
        self.wake()

    def future(self, begun: Begun, result: _Result) -> Any:
        """A future that is completed when the operation has ended, with the value of result()."""
        base = begun.future()
        future = base.then(result)
        if begun.done():
            base.set_result(None)
            return future
        with self._lock:
            self._waiting.append((begun, base))
            if not self._threads:
                self._start()
        for job in begun.jobs:
            job.future.add_done_callback(lambda _: self.wake())
        self.wake()
        return future

    def _start(self) -> None:
        self._threads += 1
        threading.Thread(target=self._run, name="dblp-works", daemon=True).start()

    def wake(self) -> None:
        """Look for operations that have ended."""
        # A full pipe wakes the thread as well
        with self._lock, contextlib.suppress(OSError):
            os.write(self._wake, b"x")

    def waited(self) -> None:
        """
        Another thread has waited for an operation. This took its end from the descriptor of the communicator,
        which then wakes no thread here.
        """
        if self._waiting:
            self.wake()

    def finish(self) -> None:
        """All operations have ended: complete their futures, and end the threads."""
        for base in self._take():
            base.set_result(None)
        if not self._waiting:
            self.stop()

    def stop(self) -> None:
        """End the threads, which would end inside PyTorch at the end of the program."""
        self._stopped = True
        self.wake()
        with self._lock:
            self._free()

    def _free(self) -> None:
        if self._stopped and not self._threads and self._wake >= 0:
            os.close(self._wake)
            os.close(self._wake_read)
            self._wake = -1

    def _poll(self) -> None:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        with self._lock:
            comms = list(self._comms)
        for comm in comms:
            # It may be closed
            with contextlib.suppress(ValueError, OSError):
                poll.register(comm.fileno(), select.POLLIN)
        if self._wake_read in [fd for fd, _ in poll.poll()] and not self._stopped:
            os.read(self._wake_read, 4096)
        for comm in comms:
            # Otherwise its descriptor stays readable
            with contextlib.suppress(ValueError, OSError):
                comm.ended()

    def _next(self) -> List[Any]:
        """Wait for operations that have ended; returns their futures"""
        self._poll()
        return self._take()

    def _take(self) -> List[Any]:
        """The futures of operations that have ended"""
        with self._lock:
            ended = [base for begun, base in self._waiting if begun.done()]
            self._waiting = [pair for pair in self._waiting if not any(pair[1] is base for base in ended)]
            return ended

    def _run(self) -> None:
        while not self._stopped:
            with self._lock:
                self._idle += 1
            with self._turn:
                with self._lock:
                    self._idle -= 1
                ended = [] if self._stopped else self._next()
                with self._lock:
                    if ended and not self._idle:
                        self._start()
            for base in ended:
                base.set_result(None)
            ended.clear()
        with self._lock:
            self._threads -= 1
            self._free()


def _finish(begun: Begun) -> _Result:
    def finish(_future: Any) -> None:
        # wait() of the work raises it again
        with contextlib.suppress(Exception):
            begun.wait()
    return finish


_Base: Any = getattr(dist, "Work", object)


class Work(_Base):  # type: ignore[misc]
    """
    A work of torch.distributed.

    outputs: value of its future: a list of tensors.
    explain: converts exceptions into those of torch.distributed.
    keep: does the caller not keep it alive?
    """

    def __init__(self, begun: Begun, outputs: List[Any], completer: Completer,
                 explain: Callable[[BaseException], BaseException], keep: bool) -> None:
        super().__init__()
        self._begun, self._outputs, self._completer, self._explain = begun, outputs, completer, explain
        self._lock = threading.Lock()
        self._future: Any = None
        if keep:
            completer.keep(self)
        if begun.finishes:
            # The program may wait for it in another way, such as by a barrier
            completer.future(begun, _finish(begun))

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Wait for the end; a timeout of 0 is none."""
        try:
            self._begun.wait((timeout.total_seconds() if timeout else 0) or None)
        except Exception as e:
            raise self._explain(e) from e
        finally:
            if self._begun.done():
                self._completer.drop(self)
            self._completer.waited()
        return True

    def synchronize(self) -> None:
        """As wait()."""
        self.wait()

    def is_completed(self) -> bool:
        """Has the operation ended? Does not wait; if True, its results are there."""
        if not self._begun.done():
            return False
        self.exception()
        return True

    def is_success(self) -> bool:
        """Has the operation succeeded?"""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        """The exception of an operation that has failed, else None. Does not wait."""
        if not self._begun.done():
            return None
        try:
            self.wait()
        except Exception as e:  # pylint: disable=broad-except
            return e
        return None

    def result(self) -> List[Any]:
        """The outputs; waits for them."""
        self.wait()
        return self._outputs

    def get_future(self) -> Any:
        """A torch.futures.Future of the outputs."""
        def result(_future: Any) -> List[Any]:
            return self.result()

        with self._lock:
            if self._future is None:
                self._future = self._completer.future(self._begun, result)
            return self._future
