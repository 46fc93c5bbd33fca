# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Communicators: see dblp_comm(3), whose words these are."""

from __future__ import annotations

import atexit
import collections
import ctypes
import errno as errnos
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _c
from .enums import Algo, Dtype, to_enum
from .lanes import Lane, LaneResult, lane_array, lane_results
from .op import Op
from .progress import Tally, tell
from .units import number

KV = Tuple[Callable[[str, bytes], Any], Callable[[str], Optional[bytes]]]

#: Signals interrupt a wait of the main thread only between two calls of the library
_SLICE = 0.25
_LONG = 3600.0
#: Value of failed_rank that the library never stores: the operation has not ended
_NOT_ENDED = -2

_OPEN_REASONS = {
    errnos.EINVAL: "attributes contradict each other, or those of another rank",
    errnos.EPROTONOSUPPORT: "rank 0 speaks another version",
    errnos.EPERM: "a lane has a priority that this process may not have",
    errnos.ESTALE: "there are ranks of a later epoch",
    errnos.EEXIST: "there is this rank already",
    errnos.EAFNOSUPPORT: "there is no AF_DBLP (is the module loaded?)",
    errnos.ENODEV: "there is no such device",
    errnos.ETIMEDOUT: "not all ranks have come",
}
_BEGIN_REASONS = {
    errnos.EINVAL: "attributes contradict each other, the vector is not that of the key, or parts are not "
                   "the vector",
    errnos.ENOENT: "the communicator has no such lane",
    errnos.E2BIG: "the plan has too many steps",
    errnos.EBUSY: "the last operation with this key has not ended",
}


class RankError(OSError):
    """
    A rank has failed; all ranks get the same one.

    rank: which one. errno: why: ECONNRESET: its process has ended; ETIMEDOUT: its host
    is silent, or it has not begun an operation that took too long; EPROTO: it means
    another operation; ECANCELED or what else it gave to Comm.abort().
    why: what else is known, for people.
    ranks: ETIMEDOUT: all ranks that an operation that took too long waited for, but of
    many only the first 12. Without any, `rank` is where it took too long.
    """

    def __init__(self, rank: int, error: int, why: str = "", ranks: Sequence[int] = ()) -> None:
        text = f"rank {rank} has failed: {os.strerror(error)}"
        super().__init__(error, f"{text}: {why}" if why else text)
        self.rank = rank
        self.why = why
        self.ranks = tuple(ranks)

    def __reduce__(self) -> Any:
        return RankError, (self.rank, self.errno, self.why, self.ranks)


class Result(NamedTuple):
    """What became of an operation, on this rank."""

    #: Bytes of contributions that it should have received
    asked: int
    #: Bytes of those that were lost, or came too late
    missing: int
    #: Rule feedback: bytes that this rank sent and that were lost; they come next time
    lost: int
    #: Rule rescale: elements that this rank owns and nobody has contributed to: 0
    none: int
    #: Nanoseconds that it took
    ns: int
    #: Rule rescale: the least number of contributions of an element that it owns
    least: int
    #: Ranks that it went on without
    late_ranks: int
    #: Least and largest budget, in ppm, that messages with contributions to this rank came
    #: with: that of the operation, or what an operator has set; 0 if none came
    budget_least: int
    budget_most: int
    #: Bytes of messages that this rank has sent, with their heads
    sent: int
    #: Bytes that were not sent for the sake of prune
    pruned: int
    #: Of each lane
    lanes: Tuple[LaneResult, ...]


class Stats(NamedTuple):
    """What a communicator refused, and what came late."""

    #: Connections by who is no rank, or kept silent
    strangers: int
    #: Ranks of another version
    versions: int
    #: Connections of an older epoch
    stale: int
    #: Messages that came after their operation had gone on without them
    late: int


def os_error(error: int, reasons: Any, what: str = "") -> OSError:
    """An OSError, or the subclass for its number; `error` is negative."""
    reason = what or reasons.get(-error)
    text = os.strerror(-error)
    return OSError(-error, f"{text}: {reason}" if reason else text)


def _text(name: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} {value!r} has a NUL in it")
    return os.fsencode(value)


class _Closed(ValueError):
    """As that of a file that is closed"""


class _Op:
    """
    An operation that the library has. Whether it has ended is written by the library
    itself (failed_rank of `result`), so no exception can come between its end and that.
    """

    def __init__(self, keep: Any) -> None:
        self.req = ctypes.c_void_p()
        self.result = _c.Result(failed_rank=_NOT_ENDED)
        self.keep = keep
        self.waiter: Optional[object] = None
        self.request: Callable[[], Optional[Request]] = lambda: None

    @property
    def ended(self) -> bool:
        return bool(self.result.failed_rank != _NOT_ENDED)

    def cancel(self) -> None:
        if not self.ended:
            self.result.error = -errnos.ECANCELED
            self.result.failed_rank = -1
        self.keep = None


class Request:
    """
    An operation that has begun. Its vector is exported, and must not be touched, until
    it has ended; if this object is dropped before, the communicator keeps the vector.
    """

    def __init__(self, comm: Comm, op: _Op) -> None:
        self._comm = comm
        self._op = op
        op.request = weakref.ref(self)

    def __del__(self) -> None:
        if not self._op.ended:
            self._comm._dropped.append(self._op)

    def done(self) -> bool:
        """Has it ended? Does not wait; then wait() does not, either."""
        return self._comm._collect(self._op, 0)

    def wait(self, timeout: Optional[float] = None) -> Result:
        """
        Wait for the end, for `timeout` seconds at most; None: for ever. Can be called
        again, by several threads, with the same result.

        Raises TimeoutError if it has not ended (it goes on), RankError if a rank has
        failed, OSError (ECANCELED) if this rank has closed the communicator.
        """
        until = None if timeout is None else time.monotonic() + timeout
        most = _SLICE if threading.current_thread() is threading.main_thread() else _LONG
        while not self._op.ended:
            left = most if until is None else min(most, max(0.0, until - time.monotonic()))
            if self._comm._collect(self._op, left):
                break
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"the operation has not ended after {timeout} s")
        return self._result()

    def _result(self) -> Result:
        r = self._op.result
        if r.error and r.failed_rank >= 0:
            raise self._comm._rank_error(r.failed_rank, -r.error)
        if r.error:
            raise os_error(r.error, {}, "the communicator was closed")
        values = [getattr(r, name) for name in Result._fields[:-1]]
        return Result._make([*values, lane_results(r, self._comm.lanes)])


def _view(buf: Any, writable: bool = True) -> memoryview:
    view = memoryview(buf)
    if writable and view.readonly:
        raise ValueError("the buffer cannot be written to")
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous")
    return view


class _Bytes:
    """Bytes of a buffer, which is copied if it cannot be written to and need not be."""

    def __init__(self, buf: Any, writable: bool = True) -> None:
        view = _view(buf, writable)
        self.count = view.nbytes
        kind = ctypes.c_char * view.nbytes
        self.keep = kind.from_buffer_copy(view) if view.readonly else kind.from_buffer(view)
        self.address = ctypes.addressof(self.keep)


class _Vector:
    """Elements in memory that stays where it is as long as this object lives."""

    def __init__(self, buf: Any, dtype: Union[Dtype, int, str, None]) -> None:
        view = _view(buf)
        self.dtype = _dtype_of(view, dtype)
        if view.nbytes % self.dtype.itemsize:
            raise ValueError(f"{view.nbytes} bytes are no number of {self.dtype.name}")
        self.count = view.nbytes // self.dtype.itemsize
        self.keep = (ctypes.c_char * view.nbytes).from_buffer(view)
        self.address = ctypes.addressof(self.keep)
        if self.count and self.address % self.dtype.itemsize:
            raise ValueError("the buffer is not aligned to its elements")


def _dtype_of(view: memoryview, dtype: Union[Dtype, int, str, None]) -> Dtype:
    order = "<" if sys.byteorder == "little" else ">"
    code = view.format.lstrip("@=" + order)
    known = {("f", 4): Dtype.DBLP_FLOAT32, ("e", 2): Dtype.DBLP_FLOAT16,
             ("i", 4): Dtype.DBLP_INT32, ("l", 4): Dtype.DBLP_INT32,
             ("d", 8): Dtype.DBLP_FLOAT64, ("q", 8): Dtype.DBLP_INT64, ("l", 8): Dtype.DBLP_INT64}
    found = known.get((code, view.itemsize))
    if dtype is None:
        if found is None:
            raise TypeError(f"elements of format {view.format!r} are not float32, float16, float64, int32 or "
                            "int64: give their dtype if they are in bytes or bfloat16")
        return found
    wanted = to_enum(Dtype, dtype)
    if found == wanted or code in ("B", "b", "c"):
        return wanted
    if wanted == Dtype.DBLP_BFLOAT16 and code in ("H", "h"):
        return wanted
    raise TypeError(f"elements of format {view.format!r} are not {wanted.name}")


def _attr(**a: Any) -> Any:
    """struct dblp_comm_attr, and what it points to"""
    attr = _c.CommAttr(size=ctypes.sizeof(_c.CommAttr))
    for name in ("rank", "nranks"):
        value = a[name]
        setattr(attr, name, _c.RANK_ENV if value is None else number(name, value, 0, 65536))
    for name in ("epoch", "job", "join_ms", "timeout_ms", "keepalive_ms", "message_bytes", "operation_ms"):
        setattr(attr, name, number(name, a[name]))
    for name in ("transport", "secret", "ports", "bind"):
        if a[name] is not None:
            setattr(attr, name, _text(name, a[name]))
    devices = a["devices"]
    if devices is not None:
        attr.devices = _text("devices", devices if isinstance(devices, str) else ",".join(devices))
    if a["lanes"]:
        attr.lane = lane_array(a["lanes"])
        attr.lanes = len(a["lanes"])
    if isinstance(a["rendezvous"], str):
        attr.rendezvous = _text("rendezvous", a["rendezvous"])
    return attr


class _Store:
    """Two callables of the program as kv_set() and kv_get()."""

    def __init__(self, kv: KV) -> None:
        self.put, self.get = kv
        self.raised: Optional[BaseException] = None

    def attach(self, attr: Any) -> None:
        attr.rendezvous = b"kv"
        attr.kv_set = _c.KV_SET(self._set)
        attr.kv_get = _c.KV_GET(self._get)

    def _fail(self, e: BaseException) -> int:
        self.raised = e
        return -errnos.EIO

    def _set(self, _kv: Any, key: bytes, value: int, n: int) -> int:
        try:
            self.put(key.decode(), ctypes.string_at(value, n))
            return 0
        except BaseException as e:  # it must not go through C
            return self._fail(e)

    def _get(self, _kv: Any, key: bytes, value: int, n: Any) -> int:
        try:
            data = self.get(key.decode())
            if data is None:
                return -errnos.EAGAIN
            if len(data) > n[0]:
                raise ValueError(f"the store has {len(data)} bytes at {key!r}, not {n[0]} at most")
            ctypes.memmove(value, bytes(data), len(data))
            n[0] = len(data)
            return 0
        except BaseException as e:
            return self._fail(e)


def _why_not_open(error: int, a: Any) -> str:
    """What is wrong with the attributes, if that can be seen here"""
    if error == -errnos.EAFNOSUPPORT and (a["transport"] != "dblp" or os.path.exists("/sys/module/dblp")):
        return "this kernel has no IPv6, which an address needs"
    if error != -errnos.EINVAL:
        return ""
    env = os.environ
    for name, variables in (("rank", ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")),
                            ("nranks", ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS"))):
        if a[name] is None and not any(v in env for v in variables):
            return f"{name} is not given, and the environment has none of {', '.join(variables)}"
    if a["rank"] is not None and a["nranks"] is not None and a["rank"] >= a["nranks"]:
        return f"there is no rank {a['rank']} of {a['nranks']}"
    if a["rendezvous"] in (None, "env") and "MASTER_ADDR" not in env:
        return "no rendezvous is given, and the environment has no MASTER_ADDR"
    if not (a["transport"] in ("dblp", "tcp") or a["transport"].startswith("tcp:")):
        return f"transport {a['transport']!r} is neither 'dblp', 'tcp' nor 'tcp:CC'"
    if a["message_bytes"] % 8:
        return f"message_bytes {a['message_bytes']} is no multiple of 8"
    return ""


def _call(function: Callable[[], None]) -> None:
    """
    Call what may take long. In the main thread signals would have to wait for it, so
    there another one does it; if this one is interrupted, that goes on alone.
    """
    if threading.current_thread() is not threading.main_thread():
        function()
        return
    thread = threading.Thread(target=function, name="dblp-open", daemon=True)
    thread.start()
    thread.join()


class _Opening:
    """A communicator that is being opened, perhaps by a thread that nobody waits for."""

    def __init__(self, attr: Any) -> None:
        self.attr = attr
        self.handle = ctypes.c_void_p()
        self.error = 0
        self.why = ""
        self._lock = threading.Lock()
        self._over = self._unwanted = False

    def run(self) -> None:
        self.error = _c.lib.dblp_comm_open(ctypes.byref(self.handle), ctypes.byref(self.attr))
        if self.error:
            # It is this thread's
            self.why = _c.lib.dblp_comm_why(None).decode(errors="replace")
        self._end(over=True)

    def abandon(self) -> None:
        self._end(unwanted=True)

    def _end(self, over: bool = False, unwanted: bool = False) -> None:
        with self._lock:
            self._over |= over
            self._unwanted |= unwanted
            close = self._over and self._unwanted and not self.error
        if close:
            _c.lib.dblp_comm_close(self.handle)


class Comm:
    """
    A fixed number of processes that carry out operations together.

    rank, nranks: which one this is of how many; None: what RANK and WORLD_SIZE of the
        environment say, or what Open MPI, PMI and Slurm set instead.
    rendezvous: where rank 0 is to be found: "tcp://HOST:PORT", "file:PATH"; "env" or
        None: MASTER_ADDR, and DBLP_PORT or the port behind MASTER_PORT; or two callables
        set(key: str, value: bytes) and get(key: str) -> bytes, or None if there is
        nothing yet: get is then called again.
    transport: "dblp", "tcp", or "tcp:CC" with that congestion control; None: what
        DBLP_TRANSPORT of the environment says, else "dblp". Nothing falls back to
        something else.
    devices: names of network devices for the levels of an algorithm.
    job: number of the job that sockets of "dblp" are in, 0: none; None: what DBLP_JOB of
        the environment says, else none.
    epoch: which attempt of the job this is: older ones are refused.
    join_ms, timeout_ms, keepalive_ms: milliseconds: to wait for all ranks (0: DBLP_JOIN_MS
        of the environment, else 60000), a host may be silent (0: DBLP_TIMEOUT_MS, else
        5000), between two questions to it (0: 1000).
    message_bytes: the most bytes of a message, a multiple of 8; 0: 1 MiB.
    lanes: connections of their own for elements that matter more or less, see Lane; by the
        first one goes what operations do not give to others. None: one.
    secret: 32 hexadecimal digits that all ranks know, and nobody else: only who knows them
        can join. None: what the file DBLP_SECRET_FILE of the environment has, else none.
    ports: "40000-40100": ports to listen at for data; None: DBLP_PORTS of the environment,
        else any.
    bind: rank 0: address to listen at; None: DBLP_BIND of the environment, else all.
    operation_ms: milliseconds that an operation may take, after which the communicator
        fails and names the ranks that have not begun it (RankError, ETIMEDOUT); 0:
        DBLP_OPERATION_MS of the environment, else for ever.

    Waits until all ranks have come. Raises OSError or a subclass of it with the reason
    (TimeoutError: not all have come), what a callable raises, ValueError and TypeError
    for arguments that cannot be.

    Operations begin in the same order, with the same attributes, on all ranks; threads
    may use a communicator at the same time. As a context manager it is closed at the
    end, and aborted before if there was an exception, so that other ranks do not wait.
    One that is dropped, or left at the end of the program, is closed. A child made by
    fork() has none of them.
    """

    def __init__(self, rank: Optional[int] = None, nranks: Optional[int] = None,
                 rendezvous: Union[str, KV, None] = None, transport: Optional[str] = None,
                 devices: Union[str, Sequence[str], None] = None, job: Optional[int] = None, *,
                 epoch: int = 0, join_ms: int = 0, timeout_ms: int = 0,
                 keepalive_ms: int = 0, message_bytes: int = 0,
                 lanes: Optional[Sequence[Lane]] = None, secret: Optional[str] = None,
                 ports: Optional[str] = None, bind: Optional[str] = None, operation_ms: int = 0) -> None:
        if transport is None:
            transport = os.environ.get("DBLP_TRANSPORT") or "dblp"
        if job is None:
            job = int(os.environ.get("DBLP_JOB") or 0)
        given = dict(rank=rank, nranks=nranks, rendezvous=rendezvous, transport=transport,
                     devices=devices, job=job, epoch=epoch, join_ms=join_ms, timeout_ms=timeout_ms,
                     keepalive_ms=keepalive_ms, message_bytes=message_bytes, lanes=lanes, secret=secret,
                     ports=ports, bind=bind, operation_ms=operation_ms)
        #: Number of the job that its sockets are in, 0: none
        self.job = job
        #: Number of its lanes
        self.lanes = len(lanes or ()) or 1
        self._handle: Optional[ctypes.c_void_p] = None
        self._cond = threading.Condition()
        self._closing = threading.Lock()
        self._closed = False
        self._users: Set[object] = set()
        self._ops: Set[_Op] = set()
        #: Operations whose requests were dropped before they ended
        self._dropped: Deque[_Op] = collections.deque()
        self._open(_attr(**given), given)

    def _open(self, attr: Any, given: Any) -> None:
        store = None
        if given["rendezvous"] is not None and not isinstance(given["rendezvous"], str):
            store = _Store(given["rendezvous"])
            store.attach(attr)
        opening = _Opening(attr)
        try:
            _call(opening.run)
        except BaseException:
            opening.abandon()
            raise
        if store and store.raised:
            raise store.raised
        if opening.error:
            raise os_error(opening.error, _OPEN_REASONS, opening.why or _why_not_open(opening.error, given))
        self._handle = opening.handle
        _all.add(self)
        tell("opened", self.describe())

    # An exception of a signal can come between any two lines: so who is there is a member
    # of a set, and who waits for an operation is written down there, not counted or locked

    def _with_handle(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the library; the handle is not freed meanwhile."""
        user = object()
        try:
            with self._cond:
                if self._handle is None or self._closed:
                    raise _Closed("the communicator is closed")
                handle = self._handle
                self._users.add(user)
            return function(handle, *args)
        finally:
            with self._cond:
                self._users.discard(user)
                self._cond.notify_all()

    def _collect(self, op: _Op, seconds: float) -> bool:
        """Has it ended? Waits for it if nobody does, else for who does."""
        me = object()
        try:
            with self._cond:
                self._cond.wait_for(lambda: op.ended or op.waiter is None, seconds)
                if op.ended or op.waiter is not None:
                    return op.ended
                op.waiter = me
            self._with_handle(lambda _handle: _c.lib.dblp_wait(
                op.req, int(seconds * 1000 + 0.999), ctypes.byref(op.result),
                ctypes.sizeof(op.result)))
        except _Closed:
            # Whoever closes it ends all operations
            with self._cond:
                self._cond.wait_for(lambda: op.ended, seconds)
        finally:
            with self._cond:
                if op.waiter is me:
                    op.waiter = None
                if op.ended:
                    op.keep = None
                    if op in self._ops and not op.result.error:
                        _tally.add(op.result)
                    self._ops.discard(op)
                self._cond.notify_all()
        return op.ended

    def _reap(self) -> None:
        """Forget dropped operations that have ended: two for each one that begins, so that they end."""
        for _ in range(min(2, len(self._dropped))):
            op = self._dropped.popleft()
            if op in self._ops and not self._collect(op, 0):
                self._dropped.append(op)

    # Operations

    def _begin(self, function: Callable[..., int], address: int, count: int, how: _c.Op,
               keep: Any) -> Request:
        """Of `count` elements at `address`; `keep` keeps them there."""
        return self._submit(function, (address, count, ctypes.byref(how)), keep)

    def _submit(self, function: Callable[..., int], args: Tuple[Any, ...], keep: Any) -> Request:
        self._reap()
        op = _Op(keep)
        request = Request(self, op)
        self._ops.add(op)
        try:
            error = self._with_handle(function, *args, ctypes.byref(op.req))
        finally:
            if not op.req:
                self._ops.discard(op)
        if error:
            raise self.error or os_error(error, _BEGIN_REASONS)
        return request

    def _begin_buffer(self, function: Callable[..., int], buf: Any, dtype: Any, op: Op) -> Request:
        vector = _Vector(buf, dtype)
        return self._begin(function, vector.address, vector.count, op.to_c(vector.dtype), vector)

    def allreduce(self, buf: Any, dtype: Union[Dtype, int, str, None] = None, op: Op = Op()) -> Request:
        """
        Begin to sum a vector over all ranks; wait() of what it returns ends that.

        buf: anything with a writable, contiguous buffer of any shape, such as a numpy
            array or an array.array: this rank's contribution, then the sum, in place.
            The same number of elements on all ranks.
        dtype: of its elements; None: what the buffer says (float16, float32, float64,
            int32 or int64). "bfloat16" of a buffer of 16-bit integers, and any type of
            one of bytes.
        op: how, the same on all ranks.

        Raises TypeError and ValueError for what cannot be, RankError if a rank has
        failed, another OSError with the reason; then nothing has begun.
        """
        return self._begin_buffer(_c.lib.dblp_allreduce, buf, dtype, op)

    def reduce_scatter(self, buf: Any, dtype: Union[Dtype, int, str, None] = None,
                       op: Op = Op()) -> Request:
        """
        As allreduce(), but only the elements that owned() names become the sum, the
        rest whatever it may be.
        """
        return self._begin_buffer(_c.lib.dblp_reduce_scatter, buf, dtype, op)

    def allgather(self, buf: Any, dtype: Union[Dtype, int, str, None] = None,
                  op: Op = Op()) -> Request:
        """
        Give all ranks all parts of a vector: the elements that owned() names are this
        rank's, the rest is filled. Nothing is lost. Arguments as for allreduce().
        """
        return self._begin_buffer(_c.lib.dblp_allgather, buf, dtype, op)

    def reduce(self, buf: Any, dtype: Union[Dtype, int, str, None] = None, op: Op = Op()) -> Request:
        """
        As allreduce(), but only the rank `root` of op gets the sum; the vectors of others
        become whatever it may be.
        """
        vector = _Vector(buf, dtype)
        return self._begin(_c.lib.dblp_reduce, vector.address, vector.count,
                           op.to_c(vector.dtype, Algo.DBLP_TREE), vector)

    def broadcast(self, buf: Any, root: int = 0) -> Request:
        """
        Give all ranks the bytes that the rank `root` has; nothing is lost.

        buf: anything with a writable, contiguous buffer, with as many bytes on all ranks.

        Raises what allreduce() does.
        """
        vector = _Bytes(buf)
        return self._begin(_c.lib.dblp_broadcast, vector.address, vector.count,
                           Op(root=root, algo="tree").to_c(Dtype.DBLP_UINT8), vector)

    def barrier(self, timeout: Optional[float] = None) -> None:
        """
        Wait until all ranks have called this, for `timeout` seconds at most; None: for
        ever. Raises what Request.wait() does.
        """
        self._submit(_c.lib.dblp_barrier, (), None).wait(timeout)

    def send(self, buf: Any, to: int) -> Request:
        """
        Begin to send bytes to the rank `to`, which has to receive as many; nothing is
        lost. They are received in the order of sending. Other operations may begin before
        or after that on either rank.

        buf: anything with a contiguous buffer. One that can be written to must not be
            changed until the end.

        Raises what allreduce() does.
        """
        return self._pair(_c.lib.dblp_comm_send, _Bytes(buf, False), number("to", to))

    def recv(self, buf: Any, source: int) -> Request:
        """
        Begin to receive the bytes that the rank `source` sends, as many as the writable,
        contiguous buffer has: see send(). The communicator fails (RankError, EPROTO) if
        they are more or less.
        """
        return self._pair(_c.lib.dblp_comm_recv, _Bytes(buf), number("source", source))

    def _pair(self, function: Callable[..., int], data: _Bytes, rank: int) -> Request:
        if rank == self.rank or rank >= self.nranks:
            raise ValueError(f"there is no other rank {rank} of {self.nranks}")
        return self._submit(function, (data.address, data.count, Dtype.DBLP_UINT8, rank), data)

    def owned(self, count: int, op: Op = Op()) -> List[range]:
        """
        Which elements of a vector of `count` this rank owns: none, one range, or with
        "bcube" one for each level; with parts of each lane as many, cut where its parts
        are not side by side. Of a reduce_scatter() or allgather() with the same op.
        """
        number("count", count, 0, 1 << 48)
        how = op.to_c(Dtype.DBLP_INT32)
        n = self._owned(count, how, (_c.Span * 0)())
        part = (_c.Span * n)()
        self._owned(count, how, part)
        return [range(p.first, p.end) for p in part]

    def _owned(self, count: int, op: _c.Op, part: Any) -> int:
        n = int(self._with_handle(_c.lib.dblp_comm_owned, count, ctypes.byref(op), part, len(part)))
        if n < 0:
            raise os_error(n, _BEGIN_REASONS)
        return n

    # What is kept for a key

    def _residual(self, function: Any, key: int, dtype: Dtype, address: int, count: int) -> int:
        return int(self._with_handle(function, number("key", key, 0, (1 << 64) - 1), dtype, address, count))

    def residual(self, key: int, buf: Any, dtype: Union[Dtype, int, str, None] = None) -> bool:
        """
        Copy the residual of a key into `buf`, as long as its vector: contributions of this
        rank that were lost or pruned, which the next operation with this key adds to its
        vector. For a checkpoint. False: nothing is kept for the key.

        When a loss scale changes, multiply the residual by the ratio, and set it.
        """
        v = _Vector(buf, dtype)
        error = self._residual(_c.lib.dblp_residual_get, key, v.dtype, v.address, v.count)
        if error and error != -errnos.ENOENT:
            raise os_error(error, _BEGIN_REASONS)
        return not error

    def set_residual(self, key: int, buf: Any, dtype: Union[Dtype, int, str, None] = None) -> None:
        """Set the residual of a key, which may be new; what is not finite becomes 0."""
        v = _Vector(buf, dtype)
        error = self._residual(_c.lib.dblp_residual_set, key, v.dtype, v.address, v.count)
        if error:
            raise os_error(error, _BEGIN_REASONS)

    def forget(self, key: int) -> None:
        """Free what is kept for a key: residual and saved budget."""
        error = self._with_handle(_c.lib.dblp_key_forget, number("key", key, 0, (1 << 64) - 1))
        if error:
            raise os_error(error, _BEGIN_REASONS)

    def ended(self) -> List[Request]:
        """
        Requests that have ended since they were last asked. For who polls fileno(),
        which is then not readable until the next one ends.
        """
        found = []
        for op in list(self._ops):
            request = op.request()
            if self._collect(op, 0) and request is not None:
                found.append(request)
        return found

    # What it is

    @property
    def rank(self) -> int:
        """Which rank this is: 0 ... nranks - 1."""
        return int(self._with_handle(_c.lib.dblp_comm_rank))

    @property
    def nranks(self) -> int:
        """How many ranks there are."""
        return int(self._with_handle(_c.lib.dblp_comm_nranks))

    def describe(self) -> str:
        """One line that says what is in use."""
        return bytes(self._with_handle(_c.lib.dblp_comm_describe)).decode(errors="replace")

    def stats(self) -> Stats:
        """Counters of what was refused, and of what came late."""
        stats = _c.CommStats()
        self._with_handle(_c.lib.dblp_comm_stats, ctypes.byref(stats), ctypes.sizeof(stats))
        return Stats(stats.strangers, stats.versions, stats.stale, stats.late)

    @property
    def error(self) -> Optional[RankError]:
        """Which rank has failed, and why; None: it works."""
        rank = ctypes.c_int32(-1)
        error = self._with_handle(_c.lib.dblp_comm_error, ctypes.byref(rank))
        return self._rank_error(rank.value, -error) if error else None

    def _rank_error(self, rank: int, error: int) -> RankError:
        absent = (ctypes.c_uint32 * _c.ABSENT_RANKS)()
        try:
            n = self._with_handle(_c.lib.dblp_comm_absent, absent, len(absent))
            why = self._with_handle(_c.lib.dblp_comm_why).decode(errors="replace")
        except _Closed:
            return RankError(rank, error)
        return RankError(rank, error, why, absent[:n])

    def fileno(self) -> int:
        """
        A file descriptor for select() and asyncio: readable while there are requests that
        have ended and that neither wait(), done() nor ended() was called for since.
        """
        return int(self._with_handle(_c.lib.dblp_comm_fd))

    # Its end

    def abort(self, error: int = errnos.ECANCELED) -> None:
        """Let it fail on all ranks, with this rank and the positive errno `error`."""
        self._with_handle(_c.lib.dblp_comm_abort, number("error", error, 1, 4095))

    def close(self) -> None:
        """
        Leave. Operations that have not ended are given up (ECANCELED): others fail if
        they need this rank. It is aborted if threads are waiting for some. May be called
        again.
        """
        with self._closing:
            if self._handle is None:
                return
            _leaving.add(self)
            self._closed = True
            with self._cond:
                if self._users:
                    _c.lib.dblp_comm_abort(self._handle, errnos.ECANCELED)
                self._cond.wait_for(lambda: not self._users)
            handle, self._handle = self._handle, None
            _c.lib.dblp_comm_close(handle)
            self._forget()
            _tally.tell()
            _leaving.discard(self)

    def _forget(self) -> None:
        with self._cond:
            for op in list(self._ops):
                op.cancel()
            self._ops.clear()
            self._cond.notify_all()

    def _after_fork(self) -> None:
        """In a child: the library has closed all of it there."""
        self._handle = None
        self._cond = threading.Condition()
        self._closing = threading.Lock()
        self._forget()

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, kind: Any, _value: Any, _traceback: Any) -> None:
        if kind is not None and self._handle is not None and not self._closed:
            self.abort()
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "<dblp.Comm, closed>"
        return f"<dblp.Comm: {self.describe()}>"


_tally = Tally()
_all: weakref.WeakSet[Comm] = weakref.WeakSet()
#: Strong references: whoever is interrupted while it closes must not be freed
_leaving: Set[Comm] = set()


def _close_all() -> None:
    for comm in list(_all):
        comm.close()


def _after_fork() -> None:
    for comm in list(_all):
        comm._after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
