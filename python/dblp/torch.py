# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
A communication hook of torch.nn.parallel.DistributedDataParallel (DDP) that uses libdblp.

    import dblp.torch

    ddp = torch.nn.parallel.DistributedDataParallel(model)
    dblp.torch.register(ddp, budget="2%")

Only gradients use it; all other communication of torch.distributed is unchanged. All ranks get
the same bits, so replicas stay equal, whatever was lost. dblp-run(1) registers the hook for
scripts that do not. Averager averages parameters instead of gradients, without DDP.

This module needs PyTorch 1.13 or later.
"""

# No annotations from __future__: PyTorch evaluates the annotations of hooks

import contextlib
import ctypes
import errno
import functools
import itertools
import logging
import math
import os
import queue
import secrets
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from . import _c
from .comm import Comm, Request, os_error
from .enums import Algo, Dtype, Policy, Rule
from .job import first_of_host, report_norm
from .lanes import Lane, Part
from .op import Op, make_op
from .units import env_number, number, parse_budget

__all__ = ["Averager", "State", "communicator", "hook", "register"]

_log = logging.getLogger("dblp")

_DTYPES = {torch.float32: Dtype.DBLP_FLOAT32, torch.float64: Dtype.DBLP_FLOAT64,
           torch.float16: Dtype.DBLP_FLOAT16, torch.bfloat16: Dtype.DBLP_BFLOAT16}
#: Counters of keys by communicator, from 2^32 on: below are keys of programs
_numbers: "weakref.WeakKeyDictionary[Comm, Any]" = weakref.WeakKeyDictionary()
#: Communicators by process group, with their options; one is closed when its group is freed
_comms: "weakref.WeakKeyDictionary[Any, Tuple[Comm, Dict[str, Any]]]" = weakref.WeakKeyDictionary()
#: DDPs with a hook of register(); copies of a DDP are not in it
_hooked: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _new_key(comm: Comm) -> int:
    return int(next(_numbers.setdefault(comm, itertools.count(1 << 32))))


def _begin(comm: Comm, function: Any, tensor: torch.Tensor, op: _c.Op) -> Request:
    # pylint: disable=protected-access
    return comm._begin(function, tensor.data_ptr(), tensor.numel(), op, tensor)


LaneOf = Callable[[torch.nn.Parameter], int]


def _parts(bucket: dist.GradBucket, lane_of: LaneOf) -> List[Part]:
    """The parts of a bucket by lane; adjacent parameters with the same lane are one part"""
    parts: List[Part] = []
    at = 0
    for p in bucket.parameters():
        lane, end = lane_of(p), at + p.numel()
        if parts and parts[-1][1] == lane:
            at = parts.pop()[0].start
        if end > at:
            parts.append((range(at, end), lane))
        at = end
    return parts


class _Norms:
    """Reports the mean norm of this rank's own gradients to the detector of a job, every `rounds` rounds."""

    def __init__(self, job: int, rounds: int) -> None:
        self._job, self._rounds = job, rounds
        self._squares = self._sum = 0.0
        self._count = 0

    def add(self, bucket: dist.GradBucket, scale: float) -> None:
        """Add a bucket of gradients, which a loss scale has multiplied by `scale`"""
        tensor = bucket.buffer()
        values = tensor.coalesce().values() if tensor.is_sparse else tensor
        self._squares += float(torch.linalg.vector_norm(values, dtype=torch.float64)) ** 2
        if not bucket.is_last():
            return
        norm, self._squares = math.sqrt(self._squares) / scale, 0.0
        # The limit of the kernel, which NaN does not pass either
        if not norm < 1 << 32:
            _log.warning("a gradient with norm %s is omitted from the mean reported to job %d", norm, self._job)
            return
        self._sum += norm
        self._count += 1
        if self._count == self._rounds:
            mean, self._sum, self._count = self._sum / self._count, 0.0, 0
            report_norm(self._job, mean)


class _Layout(NamedTuple):
    """A recurring bucket: its parameters, and the key of its residual"""

    key: int
    dtype: torch.dtype
    names: Tuple[str, ...]
    sizes: Tuple[int, ...]


class _Residuals:
    """
    Residuals of a State, by names of parameters. The library keeps residuals of buckets; this
    object keeps those of parameters that were in no bucket yet. Here residuals are in units of
    the gradients of a rank; in the library 16-bit ones are divided by the number of ranks.
    """

    def __init__(self, parameters: Dict[str, torch.nn.Parameter]) -> None:
        # Parameters live as long as their DDP, so id() identifies them
        self._names = {id(p): name for name, p in parameters.items()}
        self._sizes = {name: p.numel() for name, p in parameters.items()}
        self._numbered = not parameters
        self._layouts: Dict[Any, _Layout] = {}
        self._held: Dict[str, torch.Tensor] = {}
        self._comm: Optional[Comm] = None

    def layout(self, comm: Comm, bucket: dist.GradBucket) -> _Layout:
        """The layout of a bucket; for a new one, move the residuals of its parameters"""
        self._comm = comm
        parameters = bucket.parameters()
        dtype = bucket.buffer().dtype
        place = (dtype, *map(id, parameters))
        known = self._layouts.get(place)
        if known is not None:
            return known
        names = tuple(self._names.setdefault(id(p), str(len(self._names))) for p in parameters)
        for other, old in list(self._layouts.items()):
            if not set(names).isdisjoint(old.names):
                self._held.update(self._read(old))
                comm.forget(self._layouts.pop(other).key)
        new = _Layout(_new_key(comm), dtype, names, tuple(p.numel() for p in parameters))
        self._sizes.update(zip(new.names, new.sizes))
        self._check(self._held)
        self._layouts[place] = new
        self._take(new)
        return new

    def _call(self, function: Any, layout: _Layout, flat: torch.Tensor) -> int:
        assert self._comm is not None
        # pylint: disable=protected-access
        return self._comm._residual(function, layout.key, _DTYPES[flat.dtype], flat.data_ptr(), flat.numel())

    def _share(self, dtype: torch.dtype) -> int:
        assert self._comm is not None
        return self._comm.nranks if _DTYPES[dtype].itemsize == 2 else 1

    def _read(self, layout: _Layout) -> Dict[str, torch.Tensor]:
        flat = torch.empty(sum(layout.sizes), dtype=layout.dtype)
        error = self._call(_c.lib.dblp_residual_get, layout, flat)
        if error == -errno.ENOENT:
            return {}
        if error:
            raise os_error(error, {})
        wide = flat.to(torch.promote_types(layout.dtype, torch.float32)) * self._share(layout.dtype)
        return dict(zip(layout.names, wide.split(layout.sizes)))

    def _check(self, pieces: Dict[str, torch.Tensor]) -> None:
        """Numbers of parameters may be those of buckets that are not there yet"""
        for name, tensor in pieces.items():
            if name not in self._sizes and not self._numbered:
                raise ValueError(f"there is a residual of {name}, and no such parameter")
            size = self._sizes.get(name, tensor.numel())
            if tensor.numel() != size:
                raise ValueError(f"the residual of {name} has {tensor.numel()} elements, not {size}")

    def _write(self, layout: _Layout, pieces: Dict[str, torch.Tensor]) -> None:
        flat = torch.cat([pieces[name].reshape(-1) if name in pieces else torch.zeros(size)
                          for name, size in zip(layout.names, layout.sizes)])
        error = self._call(_c.lib.dblp_residual_set, layout, (flat / self._share(layout.dtype)).to(layout.dtype))
        if error:
            raise os_error(error, {})

    def _take(self, layout: _Layout) -> None:
        """Move residuals of a layout from this object to the library"""
        pieces = {name: self._held.pop(name) for name in layout.names if name in self._held}
        if pieces:
            self._write(layout, pieces)

    def get(self) -> Dict[str, torch.Tensor]:
        found = dict(self._held)
        for layout in self._layouts.values():
            found.update(self._read(layout))
        return {name: tensor.clone() for name, tensor in found.items()}

    def set(self, pieces: Dict[str, torch.Tensor]) -> None:
        self._check(pieces)
        self.reset()
        self._held = dict(pieces)
        for layout in self._layouts.values():
            self._take(layout)

    def scale(self, factor: float) -> None:
        self._held = {name: tensor * factor for name, tensor in self._held.items()}
        for layout in self._layouts.values():
            pieces = self._read(layout)
            if pieces:
                self._write(layout, {name: tensor * factor for name, tensor in pieces.items()})

    def reset(self) -> None:
        # Keys stay, because all ranks must use the same ones
        self._held.clear()
        for layout in self._layouts.values():
            assert self._comm is not None
            self._comm.forget(layout.key)

    def end(self) -> None:
        """Free all residuals; the communicator may be closed already"""
        with contextlib.suppress(OSError, ValueError):
            self.reset()


class State:
    """
    State of hook(): a communicator, and the attributes of the sums. Pass it to
    register_comm_hook() of one DDP. Two DDPs need two States, which may share a communicator if
    their backward passes never overlap.

    comm: communicator of all ranks of the DDP's process group, with the same rank numbers. None:
        that of communicator(group), opened when the first bucket of the first backward pass is
        ready.
    budget: share of all contributions that may be lost: "2%", "8000ppm" or an int (ppm). None:
        that of the phase or of the job; without both, nothing is lost.
    rule: "feedback" (lost elements are added in the next round), "bubble" or "rescale".
    algo: "transpose", "ring", "ps", "tree" or "bcube"; not "average", which does not sum over
        all ranks.
    norms: number of rounds, such as those of an epoch, after which the first rank of each host
        reports the mean norm of its own gradients to the detector of the communicator's job; 0:
        no reports.
    lane_of: function that returns the number of the lane for a parameter, always the same. None:
        lane 0.
    group: process group of the DDP; None: all ranks. Sparse gradients use it, as without a hook,
        with one warning.
    module: module whose names of parameters state_dict() uses. None: numbers, in the order of
        the buckets.
    scaler: object that scales the loss, such as torch.cuda.amp.GradScaler. When its get_scale()
        changes, residuals are multiplied by the ratio. Norms are divided by the scale.
    options: keywords of communicator().
    how: other fields of dblp.Op except key, average and parts: policy, phase, carry, sparse,
        prune, wait_ms, ...
    op: a dblp.Op instead of budget, rule, algo and how. Its defaults apply, such as rule "bubble".

    Residuals of rule feedback follow their parameters when DDP makes new buckets, and are freed
    with the State. A pickle contains neither communicator nor `scaler`: an unpickled State opens
    the communicator of the default process group.

    Raises ValueError or TypeError for invalid arguments.
    """

    def __init__(self, comm: Optional[Comm] = None, budget: Union[str, int, None] = None,
                 rule: Union[Rule, int, str] = "feedback",
                 algo: Union[Algo, int, str] = "transpose", norms: int = 0,
                 lane_of: Optional[LaneOf] = None, *, group: Any = None,
                 module: Optional[torch.nn.Module] = None, scaler: Any = None,
                 options: Optional[Dict[str, Any]] = None, op: Optional[Op] = None, **how: Any) -> None:
        if op is not None:
            if how or budget is not None:
                raise TypeError("op excludes budget and other fields of Op")
            how = op.chosen()
            # Gradients are averaged always
            how.pop("average", None)
            budget, rule, algo = how.pop("budget", None), how.pop("rule", "bubble"), how.pop("algo", "transpose")
        for name in "key", "average", "parts":
            if name in how:
                raise TypeError(f"{name} is set by the hook")
        if algo in ("average", "DBLP_AVERAGE", Algo.DBLP_AVERAGE):
            raise ValueError("algo 'average' does not sum over all ranks")
        self.how = dict(how, budget=budget, rule=rule, algo=algo, average=True)
        make_op(Dtype.DBLP_FLOAT32, **self.how)
        options = options or {}
        if comm is None:
            _known(group, options)
        if number("norms", norms) and not (comm.job if comm else _job(options)):
            raise ValueError("norms needs a communicator with a job, whose detector gets them")
        #: The exception that made a backward pass fail, of which PyTorch reports only the text
        self.error: Optional[BaseException] = None
        #: Number of buckets that were summed
        self.buckets = 0
        #: Bytes of contributions that this rank should have received, and those missing
        self.asked = self.missing = 0
        #: Object that scales the loss, or None
        self.scaler = scaler
        self._scale = 1.0
        self._comm, self._group, self._options = comm, group, options
        self._norms_rounds = norms
        self._norms: Optional[_Norms] = None
        self._lane_of = lane_of
        self._residuals = _Residuals(dict(module.named_parameters()) if module is not None else {})
        self._ready = self._warned = False
        #: Operations of the present backward pass
        self._pass: List[Any] = []
        self._waiting: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        thread = threading.Thread(target=_complete, args=(self._waiting,), name="dblp-ddp", daemon=True)
        thread.start()
        weakref.finalize(self, _stop, thread, self._waiting)
        weakref.finalize(self, self._residuals.end).atexit = False

    @property
    def comm(self) -> Comm:
        """The communicator. If it is not open yet, this opens it, and waits for all ranks."""
        if self._comm is None:
            self._comm = communicator(self._group, **self._options)
        return self._comm

    # Residuals

    def scale(self, factor: float) -> None:
        """
        Multiply residuals by `factor`, the ratio of new to old loss scale, on all ranks:
        scaler.update(); state.scale(new / old). Not needed with `scaler`.
        """
        if not 0 < factor < math.inf:
            raise ValueError(f"a residual cannot be scaled by {factor}")
        self._residuals.scale(factor)

    def reset(self) -> None:
        """Discard residuals, such as before training with other data or parameters."""
        self._residuals.reset()

    def state_dict(self) -> Dict[str, Any]:
        """
        Residuals of this rank, by parameter, for a checkpoint. Each rank has its own. A restart
        without them loses the contributions that were lost last.
        """
        return {"residuals": self._residuals.get(), "scale": self._scale}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """
        Load a value of state_dict(). Buckets, type of gradients and number of ranks may have
        changed. Raises KeyError and ValueError if names or sizes are not those of the
        parameters; then nothing has changed.
        """
        residuals, scale = state["residuals"], float(state["scale"])
        if not 0 < scale < math.inf:
            raise ValueError(f"a loss scale is not {scale}")
        self._residuals.set(residuals)
        self._scale = scale

    def __getstate__(self) -> Dict[str, Any]:
        return {"how": {name: value for name, value in self.how.items() if name != "average"},
                "norms": self._norms_rounds, "lane_of": self._lane_of, "options": self._options,
                "state": self.state_dict()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(norms=state["norms"], lane_of=state["lane_of"],  # type: ignore[misc]
                      options=state["options"], **state["how"])
        self.load_state_dict(state["state"])

    # Buckets

    def _prepare(self) -> None:
        """Carry out operations of all ranks before the first bucket"""
        if self._norms_rounds and first_of_host(self.comm):
            self._norms = _Norms(self.comm.job, self._norms_rounds)
        self._ready = True

    def _rescale(self) -> None:
        """Convert residuals to the present loss scale"""
        now = float(self.scaler.get_scale())
        if now != self._scale:
            self.scale(now / self._scale)
            self._scale = now

    def _begin(self, bucket: dist.GradBucket) -> Any:
        """Begin to sum a bucket; returns an object with wait()"""
        tensor = bucket.buffer()
        if tensor.device.type != "cpu":
            raise TypeError(f"gradients are on {tensor.device}: only those in memory of the CPU can be summed")
        if not self._ready:
            self._prepare()
        if self.scaler is not None:
            self._rescale()
        if self._norms:
            self._norms.add(bucket, self._scale)
        if tensor.layout != torch.strided or tensor.dtype not in _DTYPES:
            return self._begin_other(tensor)
        layout = self._residuals.layout(self.comm, bucket)
        parts = _parts(bucket, self._lane_of) if self._lane_of else ()
        op = make_op(_DTYPES[tensor.dtype], key=layout.key, parts=parts, **self.how)
        return _begin(self.comm, _c.lib.dblp_allreduce, tensor, op)

    def _begin_other(self, tensor: torch.Tensor) -> Any:
        """PyTorch's own path"""
        if not self._warned:
            _log.warning("gradients that are %s of %s use PyTorch's own path", tensor.layout, tensor.dtype)
        self._warned = True
        return dist.all_reduce(tensor.div_(dist.get_world_size(self._group)), group=self._group, async_op=True)

    def _end_pass(self) -> None:
        """
        Wait for all buckets in Python, where signals interrupt the main thread. They do not
        interrupt PyTorch's own wait for the futures.
        """
        requests, self._pass = self._pass, []
        for request in requests:
            request.wait()

    def _ended(self, request: Any) -> None:
        result = request.wait()
        if not isinstance(request, Request):
            return
        self.buckets += 1
        self.asked += result.asked
        self.missing += result.missing

    def _abort(self) -> None:
        """A bucket has not begun on this rank, where others would wait for it"""
        if self._comm is not None:
            # It may be closed
            with contextlib.suppress(OSError, ValueError):
                self._comm.abort()

    def _failed(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
            _log.error("%s", str(error) or repr(error))


def _complete(waiting: "queue.SimpleQueue[Any]") -> None:
    """Thread: complete futures in the order of their buckets, until it gets None."""
    while True:
        item = waiting.get()
        if item is None:
            return
        request, future = item
        try:
            request.wait()
        except Exception:  # pylint: disable=broad-except
            # The continuation of the future raises it again
            pass
        future.set_result(None)
        del item, request, future


def _stop(thread: threading.Thread, waiting: "queue.SimpleQueue[Any]") -> None:
    """
    End the thread, also at the end of the program: otherwise Python would end it inside PyTorch,
    which then aborts. Does not wait for a thread that waits for ranks.
    """
    waiting.put(None)
    if thread is not threading.current_thread():
        thread.join(1)


def hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """
    A communication hook of DDP: the bucket becomes the average over all ranks. Inside
    torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper() gradients
    are sent as float16.

    If an operation fails, backward() of all ranks raises the exception itself, or a RuntimeError
    with its text. State.error is the exception.
    """
    # pylint: disable=protected-access
    tensor = bucket.buffer()
    try:
        request = state._begin(bucket)
    except BaseException as e:
        state._failed(e)
        state._abort()
        raise

    def average(_future: Any) -> torch.Tensor:
        try:
            state._ended(request)
        except BaseException as e:
            state._failed(e)
            raise
        return tensor

    future: torch.futures.Future[Any] = torch.futures.Future()
    averaged = future.then(average)
    state._waiting.put((request, future))
    state._pass.append(request)
    if bucket.is_last():
        try:
            state._end_pass()
        except BaseException as e:
            state._failed(e)
            raise
    return averaged


def _kv(store: Any) -> Any:
    """
    A store of PyTorch as callables for a communicator. get() of the store waits up to half an
    hour for a value, and after a wait() that timed out, TCPStore of PyTorch 1.13 confuses replies.
    So a counter tells whether there is a value.
    """
    def put(key: str, value: bytes) -> None:
        store.set(key, value)
        store.add(key + "/there", 1)

    def get(key: str) -> Optional[bytes]:
        return bytes(store.get(key)) if store.add(key + "/there", 0) else None

    return put, get


def _store(group: Any) -> Any:
    """The store by which ranks of a group find each other, with a prefix for each communicator"""
    every: Any = dist.distributed_c10d
    name = [secrets.token_hex(8)]
    # Rank 0 chooses the prefix: ranks may have opened different numbers of communicators
    dist.broadcast_object_list(name, dist.get_global_rank(group, 0), group)
    # PyTorch has no public name for the default store
    return dist.PrefixStore(f"dblp/{name[0]}", every._get_default_store())  # pylint: disable=protected-access


def _timeout_ms(group: Any) -> int:
    """The time limit of a process group in ms; newer versions of PyTorch have it in other attributes"""
    every: Any = dist.distributed_c10d
    options = getattr(group, "options", None)
    limit = getattr(options, "_timeout", None) or every._get_default_store().timeout  # pylint: disable=protected-access
    return min(int(limit.total_seconds() * 1000), 0xffffffff)


def _job(options: Dict[str, Any]) -> Any:
    """Number of the job of a communicator that is opened with these options"""
    job = options.get("job")
    return job if job is not None else env_number("DBLP_JOB")


def _known(group: Any, options: Dict[str, Any]) -> Optional[Comm]:
    """Return the open communicator of a group, or None. Raise ValueError if it has other options."""
    group = group if group is not None else dist.group.WORLD
    comm, used = _comms.get(group, (None, {})) if group is not None else (None, {})
    for name, value in options.items() if comm is not None else ():
        # Lists and tuples compare equal, and so do None, 0 and an absent option
        was, wanted = (tuple(v) if isinstance(v, list) else v or None for v in (used.get(name), value))
        if value is not None and was != wanted:
            raise ValueError(f"the communicator of this group is open already, with {name} {was}, not {wanted}")
    return comm


#: Has the environment the address of rank 0? dblp-run(1) sets it for the first communicator
_from_launcher = ["DBLP_RUN_SOCKET" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ]


def communicator(group: Any = None, lanes: Optional[Sequence[Lane]] = None, **options: Any) -> Comm:
    """
    The communicator of a process group. The first call opens it, and all ranks of the group
    must call this. It is closed when the group is freed: after destroy_process_group(), when
    nothing refers to the group.

    group: process group; None: all ranks.
    lanes: see dblp.Lane; None: one lane, or those of the open communicator.
    options: other keywords of dblp.Comm: timeout_ms, ports, ... Defaults are the time limit of
        the process group for join_ms and operation_ms, unless DBLP_JOIN_MS and DBLP_OPERATION_MS
        of the environment are set, and the number of torchrun's restarts for `epoch`.

    Under dblp-run its variables have the address of rank 0. Otherwise ranks find each other by
    the default store of PyTorch, at the first address of the machine of rank 0, unless
    DBLP_DEVICES of the environment names a device. The transport is that of DBLP_TRANSPORT of
    the environment, else "dblp".

    Raises the exceptions of dblp.Comm, and ValueError if the open communicator has other lanes
    or options.
    """
    group = group if group is not None else dist.group.WORLD
    known = _known(group, dict(options, lanes=lanes))
    if known is not None:
        return known
    options["job"] = _job(options)
    if options.get("epoch") is None:
        options["epoch"] = env_number("TORCHELASTIC_RESTART_COUNT")
    for limit in "join_ms", "operation_ms":
        if f"DBLP_{limit.upper()}" not in os.environ:
            options.setdefault(limit, _timeout_ms(group))
    rendezvous: Any = None
    if not (group is dist.group.WORLD and _from_launcher[0]):
        rendezvous = _kv(_store(group))
    _from_launcher[0] = False
    comm = Comm(dist.get_rank(group), dist.get_world_size(group), rendezvous,
                devices=os.environ.get("DBLP_DEVICES"), lanes=lanes, **options)
    _comms[group] = comm, dict(options, lanes=lanes or [Lane()])
    return comm


def register(ddp: Any, budget: Union[str, int, None] = None,
             rule: Union[Rule, int, str, None] = None, algo: Union[Algo, int, str, None] = None, *,
             comm: Optional[Comm] = None, norms: Optional[int] = None,
             lanes: Optional[Sequence[Lane]] = None, lane_of: Optional[LaneOf] = None,
             scaler: Any = None, options: Optional[Dict[str, Any]] = None, op: Optional[Op] = None,
             **how: Any) -> State:
    """
    Register hook() with a DistributedDataParallel, and with its copies, also unpickled ones. All
    ranks call this, with the same arguments, before the first backward pass.

    budget, rule, algo, norms, how: see State. None: DBLP_BUDGET, DBLP_RULE, DBLP_ALGO, DBLP_NORMS
        and DBLP_POLICY of the environment, as dblp-run(1) sets them, else the defaults of State.
    op: see State; then DBLP_BUDGET, DBLP_RULE, DBLP_ALGO and DBLP_POLICY are ignored.
    scaler: see State.
    comm: communicator. None: that of communicator(), for the DDP's process group, with `lanes`
        and `options`, opened in the first backward pass:

        front = {id(p) for p in model.layers[0].parameters()}
        dblp.torch.register(ddp, "20%", lanes=[
            dblp.Lane(large="30%", rest=2, budget=0, tos=0),
            dblp.Lane(tos=40, priority=4, budget=0),
            dblp.Lane(ect=False, policy="early"),
        ], lane_of=lambda p: 1 if id(p) in front else 0, options=dict(join_ms=600000))

    Returns the State, which counts missing bytes. Raises RuntimeError if the DDP has a hook
    already, ValueError or TypeError for invalid arguments.
    """
    if comm is not None and (lanes is not None or options):
        raise ValueError("lanes and options are for a communicator that is not open: comm excludes them")
    if op is None:
        how = _from_environment(how, budget, rule, algo)
    elif how or (budget, rule, algo) != (None, None, None):
        raise TypeError("op excludes budget, rule, algo and other fields of Op")
    how.update(op=op, norms=norms if norms is not None else env_number("DBLP_NORMS"),
               comm=comm, lane_of=lane_of, scaler=scaler, options=dict(options or {}, lanes=lanes))
    state = _register(ddp, how)
    ddp._dblp_again = _Again(how)  # pylint: disable=protected-access
    ddp.register_forward_pre_hook(ddp._dblp_again)  # pylint: disable=protected-access
    return state


def _from_environment(how: Dict[str, Any], budget: Any, rule: Any, algo: Any) -> Dict[str, Any]:
    """Keywords of State; those that are None are taken from the variables of dblp-run(1)"""
    env = os.environ
    budget = env.get("DBLP_BUDGET") if budget is None else budget
    if budget is not None:
        parse_budget(budget)
    return {"policy": env.get("DBLP_POLICY"), **how, "budget": budget,
            "rule": rule if rule is not None else env.get("DBLP_RULE", "feedback"),
            "algo": algo if algo is not None else env.get("DBLP_ALGO", "transpose")}


def _register(ddp: Any, how: Dict[str, Any]) -> State:
    state = State(group=ddp.process_group, module=ddp.module, **how)
    ddp.register_comm_hook(state, hook)
    _hooked.add(ddp)
    return state


class _Again:
    """
    A forward pre-hook and an attribute of a DDP that registers the communication hook in copies of
    the DDP. Copies have both, but not the communication hook.

    how: keywords of State; None: this object was unpickled, and the pickle did not contain them.
    """

    def __init__(self, how: Optional[Dict[str, Any]]) -> None:
        self._how = how

    def __call__(self, ddp: Any, _inputs: Any) -> None:
        if ddp in _hooked:
            return
        if self._how is not None:
            _register(ddp, self._how)
            return
        _hooked.add(ddp)
        _log.warning("an unpickled DistributedDataParallel uses PyTorch's own path, because its communicator, "
                     "lane_of or scaler was not pickled: call dblp.torch.register()")

    def join(self, ddp: Any, divide: bool) -> None:
        """Before join(divide_by_initial_world_size=divide)"""
        if self._how is not None and not divide:
            raise ValueError("join(divide_by_initial_world_size=False) does not work with dblp: it divides sums by the "
                             "number of all ranks")
        self(ddp, None)

    def __deepcopy__(self, _memo: Any) -> "_Again":
        return self

    def __reduce__(self) -> Any:
        lost = self._how is None or any(self._how[name] is not None for name in ("comm", "lane_of", "scaler"))
        return _Again, (None if lost else self._how,)


def _joining(method: Any) -> Any:
    """join_hook() of DDP, which join() calls also on ranks that never reach a forward pass"""
    @functools.wraps(method)
    def join_hook(ddp: Any, **kwargs: Any) -> Any:
        again = getattr(ddp, "_dblp_again", None)
        if again is not None:
            again.join(ddp, kwargs.get("divide_by_initial_world_size", True))
        return method(ddp, **kwargs)
    return join_hook


_DDP: Any = torch.nn.parallel.DistributedDataParallel
_DDP.join_hook = _joining(_DDP.join_hook)


def _by_dtype(tensors: Iterable[torch.Tensor]) -> Dict[torch.dtype, List[torch.Tensor]]:
    found: Dict[torch.dtype, List[torch.Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.dtype, []).append(tensor)
    return found


def _flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def _back(flat: torch.Tensor, tensors: Iterable[torch.Tensor]) -> None:
    """Copy the elements of `flat`, which _flat() has made, back to the tensors."""
    at = 0
    for tensor in tensors:
        tensor.detach().copy_(flat[at:at + tensor.numel()].view_as(tensor))
        at += tensor.numel()


def _radix(nranks: int, groups: Optional[Sequence[int]]) -> List[int]:
    if groups is None:
        radix = (ctypes.c_uint32 * _c.LEVELS_MAX)()
        error = _c.lib.dblp_plan_radix(nranks, 2, radix)
        if error:
            raise os_error(error, {})
        return [r for r in radix if r > 1] or [1]
    groups = list(groups)
    if math.prod(groups) != nranks or min(groups, default=1) < 1:
        raise ValueError(f"the product of groups {groups} is not {nranks}, the number of ranks")
    return [r for r in groups if r > 1] or [1]


class Averager:
    """
    Averages parameters instead of gradients, each time only over groups of ranks
    (divide-and-shuffle, DS-Sync). Fewer ranks send to one, and each rank waits only for its
    group. Replicas differ meanwhile. After as many turns as `groups` has entries, the
    parameters of the first turn are averaged over all ranks.

        averager = dblp.torch.Averager(model, groups=(2, 2), budget="2%")
        for x, y in data:
            opt.zero_grad()
            loss(model(x), y).backward()
            opt.step()
            averager.average()
        averager.finish()

    model: the same on all ranks except for its values, which become those of rank 0. It is in
        memory of the CPU; parameters are float64, float32, float16 or bfloat16. It is not a
        DistributedDataParallel, which averages gradients already.
    groups: sizes of the groups, whose product is the number of ranks. The first size is for ranks
        with successive numbers, the second for ranks that are the first size apart, and so on.
        None: two sizes, about equal.
    comm: communicator; None: that of communicator(), for all ranks.
    budget: share of contributions that may be lost, see State. A parameter becomes the mean of
        the contributions that arrived.
    policy, phase, carry, wait_ms: see dblp.Op.

    The state of optimisers, such as momenta, is not averaged.

    Raises ValueError or TypeError for invalid arguments, on all ranks alike, and the exceptions
    of Comm() and Request.wait().
    """

    def __init__(self, model: torch.nn.Module, groups: Optional[Sequence[int]] = None, *,
                 comm: Optional[Comm] = None, budget: Union[str, int, None] = None,
                 policy: Union[Policy, int, str, None] = None, phase: Optional[int] = None,
                 carry: bool = False, wait_ms: int = 0) -> None:
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            raise TypeError("the model is a DistributedDataParallel, which averages gradients: give its module")
        for name, tensor in itertools.chain(model.named_parameters(), model.named_buffers()):
            if tensor.device.type != "cpu" or tensor.layout != torch.strided:
                raise TypeError(f"{name} is {tensor.layout} on {tensor.device}: only dense ones in memory of "
                                "the CPU can be averaged")
        for name, tensor in model.named_parameters():
            if tensor.dtype not in _DTYPES:
                raise TypeError(f"{name} is {tensor.dtype}, not a type of floats that can be summed")
        self.comm = comm if comm is not None else communicator()
        self._how = dict(budget=budget, policy=policy, phase=phase, carry=carry, wait_ms=wait_ms,
                         algo="average", rule="rescale", average=True,
                         radix=_radix(self.comm.nranks, groups))
        make_op(Dtype.DBLP_FLOAT32, **self._how)
        self._model = model
        self._keys: Dict[Any, int] = {}
        #: Number of averages so far
        self.turns = 0
        #: Bytes of contributions that this rank should have received, and those missing
        self.asked = self.missing = 0
        self._spread([*model.parameters(), *model.buffers()])

    def average(self) -> None:
        """Average parameters with requires_grad over the group of this turn."""
        how = dict(self._how, turn=self.turns % len(self._how["radix"]))
        self._reduce((p for p in self._model.parameters() if p.requires_grad), how)
        self.turns += 1

    def finish(self) -> None:
        """
        Make replicas equal, to the bit, at the end or for a checkpoint. Parameters and buffers of
        float types are averaged over all ranks, and nothing is lost. Other buffers become those
        of rank 0.
        """
        tensors = [*self._model.parameters(), *self._model.buffers()]
        self._reduce((t for t in tensors if t.dtype in _DTYPES), dict(budget=0, average=True))
        self._spread([t for t in tensors if t.dtype not in _DTYPES])

    def _reduce(self, tensors: Iterable[torch.Tensor], how: Dict[str, Any]) -> None:
        begun = []
        for dtype, same in _by_dtype(tensors).items():
            flat = _flat(same)
            layout = dtype, flat.numel()
            if layout not in self._keys:
                self._keys[layout] = _new_key(self.comm)
            op = make_op(_DTYPES[dtype], key=self._keys[layout], **how)
            begun.append((_begin(self.comm, _c.lib.dblp_allreduce, flat, op), flat, same))
        for request, flat, same in begun:
            result = request.wait()
            self.asked += result.asked
            self.missing += result.missing
            _back(flat, same)

    def _spread(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy tensors of rank 0 to all ranks: in an allgather() by a tree, the root owns all elements."""
        op = make_op(Dtype.DBLP_INT32, algo="tree")
        for dtype, same in _by_dtype(tensors).items():
            data = _flat(same).view(torch.uint8)
            rest = torch.zeros(-data.numel() % Dtype.DBLP_INT32.itemsize, dtype=torch.uint8)
            whole = torch.cat([data, rest])
            _begin(self.comm, _c.lib.dblp_allgather, whole.view(torch.int32), op).wait()
            _back(whole[:data.numel()].view(dtype), same)
