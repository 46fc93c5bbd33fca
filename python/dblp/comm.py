# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Communicators, with the terms of dblp_comm(3)."""

from __future__ import annotations

import atexit
import collections
import ctypes
import errno as errnos
import math
import os
import select
import sys
import threading
import time
import weakref
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _c
from .enums import Algo, Dtype, to_enum
from .lanes import Lane, LaneResult, lane_array, lane_results
from .op import Op
from .progress import Tally, tell
from .units import env_number, number

KV = Tuple[Callable[[str, bytes], Any], Callable[[str], Optional[bytes]]]

#: Seconds of one call of the library in the main thread: signals are handled only between calls
_SLICE = 0.25
_LONG = 3600.0
#: Value of failed_rank that the library never stores: the operation has not ended
_NOT_ENDED = -2

_OPEN_REASONS = {
    errnos.EINVAL: "attributes contradict each other or those of another rank",
    errnos.EPROTONOSUPPORT: "rank 0 has another protocol version",
    errnos.EPERM: "a lane has a priority that needs CAP_NET_ADMIN",
    errnos.ESTALE: "another rank has a later epoch",
    errnos.EEXIST: "another process has joined as this rank",
    errnos.EAFNOSUPPORT: "the kernel has no AF_DBLP (is the module loaded?)",
    errnos.ENODEV: "no such network device",
    errnos.ETIMEDOUT: "not all ranks have joined",
}
_BEGIN_REASONS = {
    errnos.EINVAL: "attributes contradict each other, the vector differs in type or length from that of "
                   "the key, or parts do not cover it",
    errnos.ENOENT: "the communicator has no such lane",
    errnos.E2BIG: "the plan has too many steps",
    errnos.EBUSY: "the last operation with this key has not ended",
}


class RankError(OSError):
    """
    A rank has failed. All ranks raise this for the same rank.

    rank: number of the failed rank.
    errno: the reason. ECONNRESET: its process has ended. ETIMEDOUT: its host is silent, or an
        operation exceeded its limit. EPROTO: it began another operation than the others.
        ECANCELED, or another value that it passed to Comm.abort().
    why: details as text; may be empty.
    ranks: with ETIMEDOUT of an operation: the ranks that it waited for, at most the first 12.
        If empty, all ranks have begun the operation, and `rank` is where it took too long.
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
    """Result of an operation on this rank."""

    #: Bytes of contributions that this rank should have received; with keep also of sums
    asked: int
    #: Bytes of `asked` that were lost or arrived too late
    missing: int
    #: Rule feedback: bytes that this rank sent and that were lost; the next operation adds them
    lost: int
    #: Rule rescale: elements owned by this rank that have no contribution; they are 0
    none: int
    #: Duration in nanoseconds
    ns: int
    #: Rule rescale: least number of contributions of an element that this rank owns
    least: int
    #: Number of ranks that the operation continued without, see wait_ms of Op
    late_ranks: int
    #: Least and largest budget, in ppm, of received messages with contributions: that of the
    #: operation, or one that an operator has set. Both are 0 if none was received
    budget_least: int
    budget_most: int
    #: Bytes of messages that this rank has sent, including their heads
    sent: int
    #: Bytes that prune left out
    pruned: int
    #: Results of each lane
    lanes: Tuple[LaneResult, ...]
    #: With energy of Op: squared norms of this rank's contribution, of what it lost with rule
    #: feedback, and of the mean of all contributions
    energy_sent: float = 0.0
    energy_lost: float = 0.0
    energy_mean: float = 0.0


class Stats(NamedTuple):
    """Counters of refused connections and late messages."""

    #: Connections of unknown programs or with another secret, and silent ones
    strangers: int
    #: Connections of ranks with another version
    versions: int
    #: Connections of an older epoch
    stale: int
    #: Messages that arrived after their operation had continued without them
    late: int


def os_error(error: int, reasons: Any, what: str = "") -> OSError:
    """An OSError of the negative errno `error`, with the reason `what`, else reasons[-error]."""
    reason = what or reasons.get(-error)
    text = os.strerror(-error)
    return OSError(-error, f"{text}: {reason}" if reason else text)


def _text(name: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} {value!r} contains a NUL")
    return os.fsencode(value)


class _Closed(ValueError):
    """The communicator is closed; a ValueError as for closed files."""


class _Waiter:
    """A thread in dblp_wait(), for up to `seconds`; 0: it only looks whether the operation has ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class _Op:
    """
    An operation that the library carries out. The library itself marks its end, by failed_rank
    of `result`, so no exception can separate the end from the mark.
    """

    def __init__(self, keep: Any) -> None:
        self.req = ctypes.c_void_p()
        self.result = _c.Result(failed_rank=_NOT_ENDED)
        self.keep = keep
        self.waiter: Optional[_Waiter] = None
        self.request: Callable[[], Optional[Request]] = lambda: None

    @property
    def ended(self) -> bool:
        return bool(self.result.failed_rank != _NOT_ENDED)

    @property
    def awaited(self) -> bool:
        """Does a thread wait for the end?"""
        waiter = self.waiter
        return waiter is not None and waiter.seconds > 0 and not self.ended

    def cancel(self) -> None:
        if not self.ended:
            self.result.error = -errnos.ECANCELED
            self.result.failed_rank = -1
        self.keep = None


class Request:
    """
    An operation that has begun. Until it has ended, its buffer is exported and must not be
    used. If this object is dropped earlier, the communicator keeps the buffer.
    """

    def __init__(self, comm: Comm, op: _Op) -> None:
        self._comm = comm
        self._op = op
        op.request = weakref.ref(self)

    def __del__(self) -> None:
        if not self._op.ended:
            self._comm._dropped.append(self._op)

    def done(self) -> bool:
        """Has the operation ended? Does not wait. If True, wait() returns or raises at once."""
        return self._comm._collect(self._op, 0)

    def wait(self, timeout: Optional[float] = None) -> Result:
        """
        Wait for the end of the operation and return its Result.

        timeout: seconds; None: no limit.

        May be called again, and by several threads, with the same result. Raises TimeoutError
        after `timeout` (the operation continues), RankError if a rank has failed, OSError
        (ECANCELED) if this rank has closed the communicator.
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
        values = {name: getattr(r, name) for name in Result._fields if name != "lanes"}
        return Result(lanes=lane_results(r, self._comm.lanes), **values)


def _view(buf: Any, writable: bool = True) -> memoryview:
    view = memoryview(buf)
    if writable and view.readonly:
        raise ValueError("the buffer cannot be written to")
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous")
    return view


class _Bytes:
    """Bytes of a buffer. A read-only buffer is copied, or refused if `writable`."""

    def __init__(self, buf: Any, writable: bool = True) -> None:
        view = _view(buf, writable)
        self.count = view.nbytes
        kind = ctypes.c_char * view.nbytes
        self.keep = kind.from_buffer_copy(view) if view.readonly else kind.from_buffer(view)
        self.address = ctypes.addressof(self.keep)


class _Vector:
    """Elements of a buffer, which is exported as long as this object lives."""

    def __init__(self, buf: Any, dtype: Union[Dtype, int, str, None]) -> None:
        view = _view(buf)
        self.dtype = _dtype_of(view, dtype)
        if view.nbytes % self.dtype.itemsize:
            raise ValueError(f"buffer of {view.nbytes} bytes is not a multiple of {self.dtype.itemsize} "
                             f"({self.dtype.name})")
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
            raise TypeError(f"format {view.format!r} of the buffer is not float16, float32, float64, int32 or "
                            "int64: pass dtype for bytes or bfloat16")
        return found
    wanted = to_enum(Dtype, dtype)
    if found == wanted or code in ("B", "b", "c"):
        return wanted
    if wanted == Dtype.DBLP_BFLOAT16 and code in ("H", "h"):
        return wanted
    raise TypeError(f"format {view.format!r} of the buffer does not match {wanted.name}")


def _attr(**a: Any) -> Any:
    """struct dblp_comm_attr of the keywords of Comm()."""
    attr = _c.CommAttr(size=ctypes.sizeof(_c.CommAttr))
    for name in ("rank", "nranks"):
        value = a[name]
        setattr(attr, name, _c.RANK_ENV if value is None else number(name, value, 0, 65536))
    for name in ("epoch", "job", "join_ms", "timeout_ms", "keepalive_ms", "message_bytes", "operation_ms"):
        setattr(attr, name, number(name, a[name]))
    if not isinstance(a["authenticate"], bool):
        raise TypeError(f"authenticate must be a bool, not {a['authenticate']!r}")
    attr.authenticate = a["authenticate"]
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
    """Two callables of the program as kv_set() and kv_get() of struct dblp_comm_attr."""

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
        except BaseException as e:  # must not pass through C
            return self._fail(e)

    def _get(self, _kv: Any, key: bytes, value: int, n: Any) -> int:
        try:
            data = self.get(key.decode())
            if data is None:
                return -errnos.EAGAIN
            if len(data) > n[0]:
                raise ValueError(f"the store has {len(data)} bytes for {key!r}, more than {n[0]}")
            ctypes.memmove(value, bytes(data), len(data))
            n[0] = len(data)
            return 0
        except BaseException as e:
            return self._fail(e)


def _why_not_open(error: int, a: Any) -> str:
    """The reason why dblp_comm_open() failed, if the attributes show it; else an empty string."""
    if error == -errnos.EAFNOSUPPORT and (a["transport"] != "dblp" or os.path.exists("/sys/module/dblp")):
        return "the kernel has no IPv6, which an address needs"
    if error != -errnos.EINVAL:
        return ""
    env = os.environ
    for name, variables in (("rank", ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")),
                            ("nranks", ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS"))):
        if a[name] is None and not any(v in env for v in variables):
            return f"{name} is not given, and the environment has none of {', '.join(variables)}"
    if a["rank"] is not None and a["nranks"] is not None and a["rank"] >= a["nranks"]:
        return f"rank {a['rank']} is out of range: nranks is {a['nranks']}"
    if a["rendezvous"] in (None, "env") and "MASTER_ADDR" not in env:
        return "no rendezvous is given, and the environment has no MASTER_ADDR"
    if not (a["transport"] in ("dblp", "tcp") or a["transport"].startswith("tcp:")):
        return f"transport {a['transport']!r} is neither 'dblp', 'tcp' nor 'tcp:CC'"
    if a["message_bytes"] % 8:
        return f"message_bytes {a['message_bytes']} is not a multiple of 8"
    return ""


def _call(function: Callable[[], None]) -> None:
    """
    Call a function that may take long. The main thread calls it in another thread, because
    signals are handled only between two calls. If a signal handler raises, the call continues.
    """
    if threading.current_thread() is not threading.main_thread():
        function()
        return
    thread = threading.Thread(target=function, name="dblp-open", daemon=True)
    thread.start()
    thread.join()


class _Opening:
    """A communicator that is being opened; after abandon() it is closed as soon as it is open."""

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
            # The library keeps the reason per thread
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
    A communicator: a fixed number of processes that carry out operations together.

    rank, nranks: number of this rank, 0 ... nranks - 1, and number of ranks. None: RANK and
        WORLD_SIZE of the environment, or the variables of Open MPI, PMI or Slurm.
    rendezvous: how to find rank 0: "tcp://HOST:PORT" or "file:PATH". "env" or None: MASTER_ADDR
        of the environment, and DBLP_PORT or the port after MASTER_PORT. Or a pair of callables,
        set(key: str, value: bytes) and get(key: str) -> bytes; get returns None if there is no
        value yet, and is then called again.
    transport: "dblp", "tcp", or "tcp:CC" with congestion control CC. None: DBLP_TRANSPORT of the
        environment, else "dblp". There is no fallback to another transport.
    devices: names of network devices, a list or a comma-separated str: level l of an algorithm
        uses the l-th one, modulo their number. None: chosen by routes.
    job: number of the job of "dblp" sockets; 0: none. None: DBLP_JOB of the environment, else none.
    epoch: number of this attempt of the job. Ranks with a lower one are refused; a rank with a
        higher one ends this attempt. 0 with "env": TORCHELASTIC_RESTART_COUNT of the
        environment, if set.
    join_ms: milliseconds to wait until all ranks have joined; 0: DBLP_JOIN_MS of the
        environment, else 60000.
    timeout_ms: milliseconds that a host may be silent until its ranks have failed; 0:
        DBLP_TIMEOUT_MS of the environment, else 5000.
    keepalive_ms: milliseconds between two keepalives to a host; 0: 1000.
    message_bytes: maximum bytes of a message, a multiple of 8; 0: 1 MiB.
    lanes: see Lane; elements that an operation assigns to no lane use the first one. None: one
        lane with default values.
    secret: 32 hexadecimal digits that all ranks share: a process without them cannot join. None:
        the first line of the file that DBLP_SECRET_FILE of the environment names, else no secret.
    ports: range of ports to listen at for data, such as "40000-40100". None: DBLP_PORTS of the
        environment, else any free port.
    bind: address that rank 0 listens at. None: DBLP_BIND of the environment, else all addresses.
    operation_ms: milliseconds that an operation may take; 0: DBLP_OPERATION_MS of the
        environment, else no limit. After that the communicator fails, with a RankError
        (ETIMEDOUT) that names the ranks that have not begun the operation.
    authenticate: a key derived from the secret authenticates each packet of data, which only
        transport "dblp" can do: an on-path attacker cannot alter data, and each end hashes each
        byte. False: as DBLP_AUTHENTICATE of the environment says (0 or 1), else only the first
        message of a connection proves that its rank knows the secret.

    Waits until all ranks have joined. Raises OSError or a subclass with the reason
    (TimeoutError: not all ranks have joined), any exception of the callables, and ValueError or
    TypeError for invalid arguments.

    All ranks begin the same operations, in the same order, with the same attributes. Several
    threads may use a communicator at the same time. A `with` statement closes it at the end; an
    exception aborts it first, so that other ranks do not wait. A communicator is also closed
    when it is dropped and at the end of the program. After fork() the child has no communicators.
    """

    def __init__(self, rank: Optional[int] = None, nranks: Optional[int] = None,
                 rendezvous: Union[str, KV, None] = None, transport: Optional[str] = None,
                 devices: Union[str, Sequence[str], None] = None, job: Optional[int] = None, *,
                 epoch: int = 0, join_ms: int = 0, timeout_ms: int = 0,
                 keepalive_ms: int = 0, message_bytes: int = 0,
                 lanes: Optional[Sequence[Lane]] = None, secret: Optional[str] = None,
                 ports: Optional[str] = None, bind: Optional[str] = None, operation_ms: int = 0,
                 authenticate: bool = False) -> None:
        if transport is None:
            transport = os.environ.get("DBLP_TRANSPORT") or "dblp"
        if job is None:
            job = env_number("DBLP_JOB")
        given = dict(rank=rank, nranks=nranks, rendezvous=rendezvous, transport=transport,
                     devices=devices, job=job, epoch=epoch, join_ms=join_ms, timeout_ms=timeout_ms,
                     keepalive_ms=keepalive_ms, message_bytes=message_bytes, lanes=lanes, secret=secret,
                     ports=ports, bind=bind, operation_ms=operation_ms, authenticate=authenticate)
        #: Number of the job of its sockets; 0: none
        self.job = job
        #: Number of its lanes
        self.lanes = len(lanes or ()) or 1
        self._handle: Optional[ctypes.c_void_p] = None
        self._cond = threading.Condition()
        self._closing = threading.Lock()
        self._closed = False
        self._users: Set[object] = set()
        #: Operations in progress, in the order in which they began
        self._ops: Dict[_Op, None] = {}
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

    # A signal handler may raise between any two lines. So calls in progress are members of a
    # set, and an operation has its waiter as a field: a counter or lock could stay behind.

    def _with_handle(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the library; close() frees the handle only after the call. Raises _Closed."""
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
        """Has the operation ended? Waits up to `seconds`; only one thread at a time waits in the library."""
        me = _Waiter(seconds)
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
            # close() ends all operations
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
                    self._ops.pop(op, None)
                self._cond.notify_all()
        return op.ended

    def _reap(self) -> None:
        """Free up to two dropped operations that have ended. Each new operation does, so few are left."""
        for _ in range(min(2, len(self._dropped))):
            op = self._dropped.popleft()
            if op in self._ops and not self._collect(op, 0):
                self._dropped.append(op)

    # Operations

    def _begin(self, function: Callable[..., int], address: int, count: int, how: _c.Op,
               keep: Any) -> Request:
        """Begin an operation on `count` elements at `address`, which stay valid as long as `keep` lives."""
        return self._submit(function, (address, count, ctypes.byref(how)), keep)

    def _submit(self, function: Callable[..., int], args: Tuple[Any, ...], keep: Any) -> Request:
        self._reap()
        op = _Op(keep)
        request = Request(self, op)
        self._ops[op] = None
        try:
            error = self._with_handle(function, *args, ctypes.byref(op.req))
        finally:
            if not op.req:
                self._ops.pop(op, None)
        if error:
            raise self.error or os_error(error, _BEGIN_REASONS)
        return request

    def _to_c(self, op: Op, dtype: Dtype, algo: Algo = Algo.DBLP_TRANSPOSE) -> _c.Op:
        """struct dblp_op, if `op` can be an operation of so many ranks."""
        if not isinstance(op, Op):
            raise TypeError(f"op must be a dblp.Op, not {op!r}")
        nranks = self.nranks
        if op.root >= nranks:
            raise ValueError(f"root is {op.root}, and there are ranks 0 ... {nranks - 1}")
        if op.radix and math.prod(op.radix) != nranks:
            raise ValueError(f"the product of radix is {math.prod(op.radix)}, not {nranks}, the number of ranks")
        return op.to_c(dtype, algo)

    def _begin_buffer(self, function: Callable[..., int], buf: Any, dtype: Any, op: Op) -> Request:
        vector = _Vector(buf, dtype)
        return self._begin(function, vector.address, vector.count, self._to_c(op, vector.dtype), vector)

    def allreduce(self, buf: Any, dtype: Union[Dtype, int, str, None] = None, op: Op = Op()) -> Request:
        """
        Begin to sum a vector over all ranks. Returns a Request; its wait() returns the Result.

        buf: a writable, contiguous buffer of any shape, such as a numpy array or an array.array:
            the contribution of this rank, then the sum, in place. All ranks pass the same
            number of elements.
        dtype: type of the elements, see Dtype. None: the format of the buffer (float16,
            float32, float64, int32 or int64). A buffer of 16-bit integers may be "bfloat16", a
            buffer of bytes any type.
        op: attributes of the operation, the same on all ranks.

        Raises TypeError or ValueError for invalid arguments, RankError if a rank has failed, or
        another OSError with the reason. Then the operation has not begun.
        """
        return self._begin_buffer(_c.lib.dblp_allreduce, buf, dtype, op)

    def reduce_scatter(self, buf: Any, dtype: Union[Dtype, int, str, None] = None,
                       op: Op = Op()) -> Request:
        """
        As allreduce(), but only the elements in owned() become the sum; the others have
        undefined values.
        """
        return self._begin_buffer(_c.lib.dblp_reduce_scatter, buf, dtype, op)

    def allgather(self, buf: Any, dtype: Union[Dtype, int, str, None] = None,
                  op: Op = Op()) -> Request:
        """
        Give all ranks all parts of a vector: each rank contributes the elements in owned(), and
        the others are filled. Without keep of `op` nothing is lost. Arguments as for allreduce().
        """
        return self._begin_buffer(_c.lib.dblp_allgather, buf, dtype, op)

    def reduce(self, buf: Any, dtype: Union[Dtype, int, str, None] = None, op: Op = Op()) -> Request:
        """
        As allreduce(), but only the rank `root` of `op` gets the sum; the vectors of other ranks
        have undefined values afterwards.
        """
        vector = _Vector(buf, dtype)
        return self._begin(_c.lib.dblp_reduce, vector.address, vector.count,
                           self._to_c(op, vector.dtype, Algo.DBLP_TREE), vector)

    def broadcast(self, buf: Any, root: int = 0) -> Request:
        """
        Copy the bytes of the rank `root` to all ranks; nothing is lost. Returns a Request.

        buf: a writable, contiguous buffer with the same number of bytes on all ranks.

        Raises the exceptions of allreduce().
        """
        vector = _Bytes(buf)
        return self._begin(_c.lib.dblp_broadcast, vector.address, vector.count,
                           self._to_c(Op(root=root, algo="tree"), Dtype.DBLP_UINT8), vector)

    def barrier(self, timeout: Optional[float] = None) -> None:
        """
        Wait until all ranks have called this.

        timeout: seconds; None: no limit. Raises the exceptions of Request.wait().
        """
        self._submit(_c.lib.dblp_barrier, (), None).wait(timeout)

    def send(self, buf: Any, to: int) -> Request:
        """
        Begin to send bytes to the rank `to`, which must receive the same number; nothing is
        lost. Returns a Request. Buffers are received in the order of sending. The order among
        other operations need not be the same on both ranks.

        buf: a contiguous buffer. It is copied if it is read-only; otherwise it must not change
            until the end.

        Raises the exceptions of allreduce().
        """
        return self._pair(_c.lib.dblp_comm_send, _Bytes(buf, False), number("to", to))

    def recv(self, buf: Any, source: int) -> Request:
        """
        Begin to receive bytes that the rank `source` sends, see send(). Returns a Request.

        buf: a writable, contiguous buffer with the number of bytes that are sent. The
            communicator fails (RankError, EPROTO) if the sender sends more or fewer.
        """
        return self._pair(_c.lib.dblp_comm_recv, _Bytes(buf), number("source", source))

    def _pair(self, function: Callable[..., int], data: _Bytes, rank: int) -> Request:
        if rank == self.rank or rank >= self.nranks:
            raise ValueError(f"rank {rank} is not another one of {self.nranks} ranks")
        return self._submit(function, (data.address, data.count, Dtype.DBLP_UINT8, rank), data)

    def owned(self, count: int, op: Op = Op()) -> List[range]:
        """
        The elements that this rank owns in a reduce_scatter() or allgather() with the same `op`:
        a list of ranges.

        count: elements of the vector.

        The list has at most one range, with "bcube" one for each level. With parts it has as
        many for each lane, and more where parts of a lane are not adjacent.
        """
        number("count", count, 0, 1 << 48)
        how = self._to_c(op, Dtype.DBLP_INT32)
        n = self._owned(count, how, (_c.Span * 0)())
        part = (_c.Span * n)()
        self._owned(count, how, part)
        return [range(p.first, p.end) for p in part]

    def _owned(self, count: int, op: _c.Op, part: Any) -> int:
        n = int(self._with_handle(_c.lib.dblp_comm_owned, count, ctypes.byref(op), part, len(part)))
        if n < 0:
            raise os_error(n, _BEGIN_REASONS)
        return n

    # State of a key

    def _residual(self, function: Any, key: int, dtype: Dtype, address: int, count: int) -> int:
        return int(self._with_handle(function, number("key", key, 0, (1 << 64) - 1), dtype, address, count))

    def residual(self, key: int, buf: Any, dtype: Union[Dtype, int, str, None] = None) -> bool:
        """
        Copy the residual of a key into `buf`, for a checkpoint: contributions of this rank that
        were lost or pruned, and that the next operation with this key adds to its vector.

        buf: a writable, contiguous buffer with the type and number of elements of the vector.

        Returns False if the key has no residual. When a loss scale changes, multiply the
        residual by the ratio of new to old, and set it. Raises OSError (EBUSY) if the last
        operation with the key has not ended, or the error of a failed communicator: its
        residuals are incomplete.
        """
        v = _Vector(buf, dtype)
        error = self._residual(_c.lib.dblp_residual_get, key, v.dtype, v.address, v.count)
        if error and error != -errnos.ENOENT:
            raise os_error(error, _BEGIN_REASONS)
        return not error

    def set_residual(self, key: int, buf: Any, dtype: Union[Dtype, int, str, None] = None) -> None:
        """Set the residual of a key, which may be new. Infinities and NaNs become 0. See residual()."""
        v = _Vector(buf, dtype)
        error = self._residual(_c.lib.dblp_residual_set, key, v.dtype, v.address, v.count)
        if error:
            raise os_error(error, _BEGIN_REASONS)

    def forget(self, key: int) -> None:
        """Free the state of a key: residual, saved budget, and lists of lost elements."""
        error = self._with_handle(_c.lib.dblp_key_forget, number("key", key, 0, (1 << 64) - 1))
        if error:
            raise os_error(error, _BEGIN_REASONS)

    def ended(self) -> List[Request]:
        """
        Requests that have ended, and whose end no wait(), done() or ended() has reported yet.
        For programs that poll fileno(), which is then not readable until the next request ends.
        """
        found: List[Request] = []
        poll = select.poll()
        try:
            poll.register(self.fileno(), select.POLLIN)
        except _Closed:
            return found
        # Operations mostly end in their order, so the first ones are those that have ended
        for op in list(self._ops) if poll.poll(0) else []:
            request = op.request()
            # Another thread may be about to begin it
            if not op.req or not self._collect(op, 0):
                continue
            if request is not None:
                found.append(request)
            if not poll.poll(0):
                break
        return found

    # Properties

    @property
    def rank(self) -> int:
        """Number of this rank: 0 ... nranks - 1."""
        return int(self._with_handle(_c.lib.dblp_comm_rank))

    @property
    def nranks(self) -> int:
        """Number of ranks."""
        return int(self._with_handle(_c.lib.dblp_comm_nranks))

    def describe(self) -> str:
        """One line of text: rank, epoch, transport and addresses in use."""
        return bytes(self._with_handle(_c.lib.dblp_comm_describe)).decode(errors="replace")

    def stats(self) -> Stats:
        """Counters of refused connections and late messages."""
        stats = _c.CommStats()
        self._with_handle(_c.lib.dblp_comm_stats, ctypes.byref(stats), ctypes.sizeof(stats))
        return Stats(stats.strangers, stats.versions, stats.stale, stats.late)

    @property
    def error(self) -> Optional[RankError]:
        """The failure of the communicator; None if it has not failed."""
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
        A file descriptor for select() and asyncio. It is readable while a request has ended
        for which wait(), done() or ended() was not called since.
        """
        return int(self._with_handle(_c.lib.dblp_comm_fd))

    # End

    def abort(self, error: int = errnos.ECANCELED) -> None:
        """Make all ranks fail, with a RankError of this rank and `error`, a positive errno."""
        self._with_handle(_c.lib.dblp_comm_abort, number("error", error, 1, 4095))

    def close(self) -> None:
        """
        Leave the communicator. Unfinished operations end with ECANCELED, and other ranks fail
        if they need this rank. If a thread is waiting for an operation, the communicator is
        aborted. May be called again.
        """
        with self._closing:
            if self._handle is None:
                return
            _leaving.add(self)
            self._closed = True
            with self._cond:
                # Other calls, such as fileno(), return by themselves
                if any(op.awaited for op in list(self._ops)):
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
        """In the child of a fork(): the library has closed the communicator there."""
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
#: Strong references: a communicator must not be freed if a signal interrupts its close()
_leaving: Set[Comm] = set()


def _close_all() -> None:
    for comm in list(_all):
        comm.close()


def _after_fork() -> None:
    for comm in list(_all):
        comm._after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
