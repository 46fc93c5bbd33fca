# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Gradients of torch.nn.parallel.DistributedDataParallel (DDP) by libdblp.

    import dblp.torch

    ddp = torch.nn.parallel.DistributedDataParallel(model)
    dblp.torch.register(ddp, budget="2%")

Only gradients go by it; what else torch.distributed does goes its own way. All ranks get
the same bits, so replicas stay the same, whatever was lost. dblp-run(1) does this for
scripts that do not. Averager is for who averages parameters instead, without DDP.

It needs PyTorch 1.13 or later.
"""

# Without annotations from __future__: PyTorch looks at those of hooks

import contextlib
import ctypes
import errno
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
from .units import number, parse_budget

__all__ = ["Averager", "State", "communicator", "hook", "register"]

_log = logging.getLogger("dblp")

_DTYPES = {torch.float32: Dtype.DBLP_FLOAT32, torch.float64: Dtype.DBLP_FLOAT64,
           torch.float16: Dtype.DBLP_FLOAT16, torch.bfloat16: Dtype.DBLP_BFLOAT16}
#: Keys for what is reduced again and again, by communicator: none that programs choose
_numbers: "weakref.WeakKeyDictionary[Comm, Any]" = weakref.WeakKeyDictionary()
#: Communicators by process group: one is closed when its group is gone
_comms: "weakref.WeakKeyDictionary[Any, Comm]" = weakref.WeakKeyDictionary()
#: DDPs that have a hook of register(): copies of them have none
_hooked: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _new_key(comm: Comm) -> int:
    return int(next(_numbers.setdefault(comm, itertools.count(1 << 32))))


def _begin(comm: Comm, function: Any, tensor: torch.Tensor, op: _c.Op) -> Request:
    # pylint: disable=protected-access
    return comm._begin(function, tensor.data_ptr(), tensor.numel(), op, tensor)


LaneOf = Callable[[torch.nn.Parameter], int]


def _parts(bucket: dist.GradBucket, lane_of: LaneOf) -> List[Part]:
    """Which elements of a bucket go by which lane; neighbours of the same lane are one part"""
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
    """Tells the detector of a job the mean norm of this rank's own gradients, each so many rounds."""

    def __init__(self, job: int, rounds: int) -> None:
        self._job, self._rounds = job, rounds
        self._squares = self._sum = 0.0
        self._count = 0

    def add(self, bucket: dist.GradBucket, scale: float) -> None:
        """A bucket of gradients that a loss scale has multiplied"""
        tensor = bucket.buffer()
        values = tensor.coalesce().values() if tensor.is_sparse else tensor
        self._squares += float(torch.linalg.vector_norm(values, dtype=torch.float64)) ** 2
        if not bucket.is_last():
            return
        norm, self._squares = math.sqrt(self._squares) / scale, 0.0
        # The kernel's limit
        if not norm < 1 << 32:
            _log.warning("a gradient whose norm is %s is not in the mean that job %d is told", norm, self._job)
            return
        self._sum += norm
        self._count += 1
        if self._count == self._rounds:
            mean, self._sum, self._count = self._sum / self._count, 0.0, 0
            report_norm(self._job, mean)


class _Layout(NamedTuple):
    """A bucket that comes again and again: its parameters, and the key of its residual"""

    key: int
    dtype: torch.dtype
    names: Tuple[str, ...]
    sizes: Tuple[int, ...]


class _Residuals:
    """
    Residuals of a State, by the names of parameters. The library keeps them by bucket; those
    of parameters that were in no bucket yet are held here. They are in units of the gradients
    of a rank, while the library divides gradients of 16 bits before it adds them.
    """

    def __init__(self, names: Dict[int, str]) -> None:
        # Parameters live as long as their DDP, so that they are known by their id()
        self._names = names
        self._layouts: Dict[Any, _Layout] = {}
        self._held: Dict[str, torch.Tensor] = {}
        self._comm: Optional[Comm] = None

    def layout(self, comm: Comm, bucket: dist.GradBucket) -> _Layout:
        """That of a bucket; to a new one, residuals follow their parameters"""
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

    def _write(self, layout: _Layout, pieces: Dict[str, torch.Tensor]) -> None:
        for name, size in zip(layout.names, layout.sizes):
            if name in pieces and pieces[name].numel() != size:
                raise ValueError(f"the residual of {name} has {pieces[name].numel()} elements, not {size}")
        flat = torch.cat([pieces[name].reshape(-1) if name in pieces else torch.zeros(size)
                          for name, size in zip(layout.names, layout.sizes)])
        error = self._call(_c.lib.dblp_residual_set, layout, (flat / self._share(layout.dtype)).to(layout.dtype))
        if error:
            raise os_error(error, {})

    def _take(self, layout: _Layout) -> None:
        """Give the library what is held of a layout"""
        pieces = {name: self._held.pop(name) for name in layout.names if name in self._held}
        if pieces:
            self._write(layout, pieces)

    def get(self) -> Dict[str, torch.Tensor]:
        found = dict(self._held)
        for layout in self._layouts.values():
            found.update(self._read(layout))
        return {name: tensor.clone() for name, tensor in found.items()}

    def set(self, pieces: Dict[str, torch.Tensor]) -> None:
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
        # Keys stay, as ranks have to agree on them
        self._held.clear()
        for layout in self._layouts.values():
            assert self._comm is not None
            self._comm.forget(layout.key)

    def end(self) -> None:
        """Free them; the communicator may be closed already"""
        with contextlib.suppress(OSError, ValueError):
            self.reset()


class State:
    """
    What hook() needs: a communicator, and how buckets are summed. Give it to
    register_comm_hook() of one DDP; two need two, which may share a communicator if
    their backward passes never overlap.

    comm: opened by all ranks of the DDP's process group, with the same numbers. None: that of
        communicator(group), opened when the first bucket of the first backward pass is ready.
    budget: share of all contributions that may be lost: "2%", "8000ppm" or ppm; None:
        that of the phase or of the job; without both, nothing is lost.
    rule: "feedback" (what was lost comes in the next round), "bubble" or "rescale".
    algo: "transpose", "ring", "ps", "tree" or "bcube"; not "average", which is none of
        all ranks.
    norms: each so many rounds, such as an epoch, the detector of the communicator's job is
        told the mean norm of gradients, by the first rank of each host, of its own ones;
        0: nothing.
    lane_of: a function of a parameter that says by which lane of the communicator its
        gradient goes, always the same one; None: by the first lane.
    group: process group of the DDP; None: all ranks. Sparse gradients go by it, as without a
        hook, and one warning says so.
    module: the names of its parameters are those of state_dict(); None: numbers, in the order
        of the buckets.
    scaler: an object that scales the loss, such as torch.cuda.amp.GradScaler. When its
        get_scale() changes, residuals are multiplied by the ratio; norms are divided by it.
    options: keywords of communicator().
    how: other fields of dblp.Op but key, average and parts: policy, phase, carry,
        sparse, prune, wait_ms, ...
    op: all of budget, rule, algo and how as one object, as it is: its rule is "bubble"
        unless it has another one.

    Residuals of rule feedback follow their parameters when DDP makes new buckets, and are
    freed with the State. A pickle has no communicator and no `scaler`: an unpickled State
    opens the communicator of the default process group.

    Raises ValueError and TypeError for what cannot be.
    """

    def __init__(self, comm: Optional[Comm] = None, budget: Union[str, int, None] = None,
                 rule: Union[Rule, int, str] = "feedback",
                 algo: Union[Algo, int, str] = "transpose", norms: int = 0,
                 lane_of: Optional[LaneOf] = None, *, group: Any = None,
                 module: Optional[torch.nn.Module] = None, scaler: Any = None,
                 options: Optional[Dict[str, Any]] = None, op: Optional[Op] = None, **how: Any) -> None:
        if op is not None:
            if how or budget is not None:
                raise TypeError("op has all of budget, rule, algo and how")
            how = op.chosen()
            budget, rule, algo = how.pop("budget", None), how.pop("rule", "bubble"), how.pop("algo", "transpose")
        for name in "key", "average", "parts":
            if name in how:
                raise TypeError(f"{name} is not for who calls this to choose")
        if algo in ("average", "DBLP_AVERAGE", Algo.DBLP_AVERAGE):
            raise ValueError("algo 'average' does not sum over all ranks")
        self.how = dict(how, budget=budget, rule=rule, algo=algo, average=True)
        make_op(Dtype.DBLP_FLOAT32, **self.how)
        if number("norms", norms) and not (comm.job if comm else int(os.environ.get("DBLP_JOB") or 0)):
            raise ValueError("norms are for the detector of a job, and the communicator is in none")
        #: What has made a backward pass fail; PyTorch says only part of it
        self.error: Optional[BaseException] = None
        #: Buckets that were summed
        self.buckets = 0
        #: Bytes of contributions that this rank should have received, and those missing
        self.asked = self.missing = 0
        #: What scales the loss, or None
        self.scaler = scaler
        self._scale = 1.0
        self._comm, self._group, self._options = comm, group, options or {}
        self._norms_rounds = norms
        self._norms: Optional[_Norms] = None
        self._lane_of = lane_of
        names = {id(p): name for name, p in module.named_parameters()} if module is not None else {}
        self._residuals = _Residuals(names)
        self._ready = self._warned = False
        #: Operations of the backward pass that goes on
        self._pass: List[Any] = []
        self._waiting: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        thread = threading.Thread(target=_complete, args=(self._waiting,), name="dblp-ddp", daemon=True)
        thread.start()
        weakref.finalize(self, _stop, thread, self._waiting)
        weakref.finalize(self, self._residuals.end).atexit = False

    @property
    def comm(self) -> Comm:
        """The communicator. The first use of one that is not open yet waits for all ranks."""
        if self._comm is None:
            self._comm = communicator(self._group, **self._options)
        return self._comm

    # Residuals

    def scale(self, factor: float) -> None:
        """
        Multiply residuals, after the loss is scaled by another number than before, on all ranks:
        scaler.update(); state.scale(new / old). Not needed with `scaler`.
        """
        if not 0 < factor < math.inf:
            raise ValueError(f"a residual cannot be scaled by {factor}")
        self._residuals.scale(factor)

    def reset(self) -> None:
        """Forget residuals, such as for other data or parameters."""
        self._residuals.reset()

    def state_dict(self) -> Dict[str, Any]:
        """
        Residuals of this rank, by parameter, for a checkpoint. Each rank has its own. Without
        them, the contributions that were lost last are lost for good.
        """
        return {"residuals": self._residuals.get(), "scale": self._scale}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """
        Load what state_dict() has returned. Buckets, type of gradients and number of ranks may
        be others.
        """
        self._residuals.set(state["residuals"])
        self._scale = state["scale"]

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
        """Operations of all ranks before the first bucket"""
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
            _log.warning("gradients that are %s of %s go by PyTorch's own path", tensor.layout, tensor.dtype)
        self._warned = True
        return dist.all_reduce(tensor.div_(dist.get_world_size(self._group)), group=self._group, async_op=True)

    def _end_pass(self) -> None:
        """
        Wait for all buckets in Python, where signals reach the main thread: PyTorch's own wait
        for the futures is not interrupted.
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

    def _failed(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
            _log.error("%s", error)


def _complete(waiting: "queue.SimpleQueue[Any]") -> None:
    """Thread: complete futures in the order of their buckets, until None comes."""
    while True:
        item = waiting.get()
        if item is None:
            return
        request, future = item
        try:
            request.wait()
        except Exception:  # pylint: disable=broad-except
            # The continuation gets it as well
            pass
        future.set_result(None)
        del item, request, future


def _stop(thread: threading.Thread, waiting: "queue.SimpleQueue[Any]") -> None:
    """
    End the thread, also at the end of the program: Python would end it inside of PyTorch,
    which then aborts. A thread that waits for ranks is not waited for.
    """
    waiting.put(None)
    if thread is not threading.current_thread():
        thread.join(1)


def hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """
    A communication hook: the bucket becomes the average over all ranks. With
    torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper()
    around it, gradients travel as float16.

    Fails in backward(), on all ranks, with a RuntimeError that has the reason in its text
    or with the exception itself; State.error has it.
    """
    # pylint: disable=protected-access
    tensor = bucket.buffer()
    try:
        request = state._begin(bucket)
    except BaseException as e:
        state._failed(e)
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
        except Exception as e:
            state._failed(e)
            raise
    return averaged


def _kv(store: Any) -> Any:
    """
    torch's store as that of a communicator. Its get() waits, for half an hour; after a
    wait() that has ended early, TCPStore of 1.13 mistakes one answer for another. A counter
    says whether there is something to get.
    """
    def put(key: str, value: bytes) -> None:
        store.set(key, value)
        store.add(key + "/there", 1)

    def get(key: str) -> Optional[bytes]:
        return bytes(store.get(key)) if store.add(key + "/there", 0) else None

    return put, get


def _store(group: Any) -> Any:
    """The store by which ranks of a group find each other, this time"""
    every: Any = dist.distributed_c10d
    name = [secrets.token_hex(8)]
    # Ranks may have opened different numbers of communicators before: rank 0 says what it is
    dist.broadcast_object_list(name, dist.get_global_rank(group, 0), group)
    # PyTorch has no public name for it
    return dist.PrefixStore(f"dblp/{name[0]}", every._get_default_store())  # pylint: disable=protected-access


def _timeout_ms(group: Any) -> int:
    """The time limit of a process group, which newer versions of PyTorch have elsewhere"""
    every: Any = dist.distributed_c10d
    options = getattr(group, "options", None)
    limit = getattr(options, "_timeout", None) or every._get_default_store().timeout  # pylint: disable=protected-access
    return min(int(limit.total_seconds() * 1000), 0xffffffff)


#: Does the environment say where rank 0 is? That of dblp-run(1) does, for the first communicator
_from_launcher = ["DBLP_RUN_SOCKET" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ]


def communicator(group: Any = None, lanes: Optional[Sequence[Lane]] = None, **options: Any) -> Comm:
    """
    The communicator of a process group (None: all ranks), which is opened by the first
    call, with these lanes; all ranks of the group have to call it. It is closed when the
    group is gone: after destroy_process_group(), when nothing refers to it.

    options: other keywords of Comm: timeout_ms, ports, ... Unless they or the environment say
        otherwise, join_ms and operation_ms are the time limit of the process group, and
        `epoch` is the number of torchrun's restarts.

    Under dblp-run rank 0 is found where that says, else by the group's own store: then
    by the first address of the machine of rank 0, unless DBLP_DEVICES of the environment
    names a device. The transport is that of DBLP_TRANSPORT of the environment, else "dblp".

    Raises what dblp.Comm does.
    """
    group = group if group is not None else dist.group.WORLD
    known = _comms.get(group)
    if known is not None:
        if lanes is not None and known.lanes != len(lanes):
            raise ValueError(f"the communicator of this group has {known.lanes} lanes already, not {len(lanes)}")
        return known
    rendezvous: Any = None
    if not (group is dist.group.WORLD and _from_launcher[0]):
        rendezvous = _kv(_store(group))
    _from_launcher[0] = False
    options.setdefault("epoch", int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0))
    for limit in "join_ms", "operation_ms":
        if f"DBLP_{limit.upper()}" not in os.environ:
            options.setdefault(limit, _timeout_ms(group))
    comm = Comm(dist.get_rank(group), dist.get_world_size(group), rendezvous,
                devices=os.environ.get("DBLP_DEVICES"), lanes=lanes, **options)
    _comms[group] = comm
    return comm


def register(ddp: Any, budget: Union[str, int, None] = None,
             rule: Union[Rule, int, str, None] = None, algo: Union[Algo, int, str, None] = None, *,
             comm: Optional[Comm] = None, norms: Optional[int] = None,
             lanes: Optional[Sequence[Lane]] = None, lane_of: Optional[LaneOf] = None,
             scaler: Any = None, options: Optional[Dict[str, Any]] = None, op: Optional[Op] = None,
             **how: Any) -> State:
    """
    Let gradients of a DistributedDataParallel go by libdblp. On all ranks alike, before
    the first backward pass; copies of it, also unpickled ones, do the same.

    budget, rule, algo, norms, how: see State; None: what DBLP_BUDGET, DBLP_RULE, DBLP_ALGO,
        DBLP_NORMS and DBLP_POLICY of the environment say, as dblp-run(1) sets them, else
        State's defaults.
    op: see State; nothing of it comes from the environment.
    scaler: see State.
    comm: None: that of communicator(), of the DDP's process group, with these lanes and
        options, which is opened in the first backward pass:

        front = {id(p) for p in model.layers[0].parameters()}
        dblp.torch.register(ddp, "20%", lanes=[
            dblp.Lane(large="30%", rest=2, budget=0, tos=0),
            dblp.Lane(tos=40, priority=4, budget=0),
            dblp.Lane(ect=False, policy="early"),
        ], lane_of=lambda p: 1 if id(p) in front else 0, options=dict(join_ms=600000))

    Returns the state, which counts what was missing. Raises RuntimeError if there is a
    hook already, ValueError and TypeError for what cannot be.
    """
    if comm is not None and (lanes is not None or options):
        raise ValueError("a communicator that is open has its lanes and options")
    if op is None:
        how = _from_environment(how, budget, rule, algo)
    elif how or (budget, rule, algo) != (None, None, None):
        raise TypeError("op has all of budget, rule, algo and how")
    how.update(op=op, norms=norms if norms is not None else int(os.environ.get("DBLP_NORMS") or 0),
               comm=comm, lane_of=lane_of, scaler=scaler, options=dict(options or {}, lanes=lanes))
    state = _register(ddp, how)
    ddp.register_forward_pre_hook(_Again(how))
    return state


def _from_environment(how: Dict[str, Any], budget: Any, rule: Any, algo: Any) -> Dict[str, Any]:
    """Keywords of State, as dblp-run(1) sets those that are not given"""
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
    A forward pre-hook of a DDP, which its copies have as well, unlike the communication hook:
    it registers that hook in a copy. how: keywords of State; None: a pickle did not contain them.
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
        _log.warning("an unpickled DistributedDataParallel goes by PyTorch's own path: its communicator, lane_of "
                     "or scaler was not pickled, call dblp.torch.register()")

    def __deepcopy__(self, _memo: Any) -> "_Again":
        return self

    def __reduce__(self) -> Any:
        lost = self._how is None or any(self._how[name] is not None for name in ("comm", "lane_of", "scaler"))
        return _Again, (None if lost else self._how,)


def _by_dtype(tensors: Iterable[torch.Tensor]) -> Dict[torch.dtype, List[torch.Tensor]]:
    found: Dict[torch.dtype, List[torch.Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.dtype, []).append(tensor)
    return found


def _flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def _back(flat: torch.Tensor, tensors: Iterable[torch.Tensor]) -> None:
    """What _flat() has copied is copied back."""
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
        raise ValueError(f"groups of {groups} ranks: the product is not {nranks}, which is how many ranks there are")
    return [r for r in groups if r > 1] or [1]


class Averager:
    """
    Averages parameters instead of gradients, each time over groups of ranks only
    (divide-and-shuffle, DS-Sync): fewer ranks send to one, and nobody waits for more than
    its group. Replicas are apart meanwhile; after as many averages as there are sizes of
    groups, what they were at the first one is averaged over all.

        averager = dblp.torch.Averager(model, groups=(2, 2), budget="2%")
        for x, y in data:
            opt.zero_grad()
            loss(model(x), y).backward()
            opt.step()
            averager.average()
        averager.finish()

    model: the same on all ranks but for its values, which become those of rank 0; in
        memory of the CPU, parameters of floats of 64, 32 or 16 bits. No
        DistributedDataParallel: its gradients are averaged already.
    groups: sizes of the groups, whose product is the number of ranks: first that of ranks
        with successive numbers, then that of those which are so many apart, and so on. None:
        two sizes, about the same.
    comm: None: that of communicator(), of all ranks.
    budget: share of contributions that may be lost, as State has it: a parameter becomes the
        mean of what has come.
    policy, phase, carry, wait_ms: as dblp.Op has them.

    Optimisers keep what they know, each its own: momenta are not averaged.

    Raises ValueError and TypeError for what cannot be, on all ranks alike; what Comm and
    Request.wait() raise.
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
        #: How often was averaged
        self.turns = 0
        #: Bytes of contributions that this rank should have received, and those missing
        self.asked = self.missing = 0
        self._spread([*model.parameters(), *model.buffers()])

    def average(self) -> None:
        """Average parameters that have gradients over this turn's group."""
        how = dict(self._how, turn=self.turns % len(self._how["radix"]))
        self._reduce((p for p in self._model.parameters() if p.requires_grad), how)
        self.turns += 1

    def finish(self) -> None:
        """
        Make replicas the same, to the bit, at the end or for a checkpoint: all that is of
        these types is averaged over all ranks, and nothing is lost; other buffers become
        those of rank 0.
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
        """What rank 0 has, to all: of a tree its root owns all elements."""
        op = make_op(Dtype.DBLP_INT32, algo="tree")
        for dtype, same in _by_dtype(tensors).items():
            data = _flat(same).view(torch.uint8)
            rest = torch.zeros(-data.numel() % Dtype.DBLP_INT32.itemsize, dtype=torch.uint8)
            whole = torch.cat([data, rest])
            _begin(self.comm, _c.lib.dblp_allgather, whole.view(torch.int32), op).wait()
            _back(whole[:data.numel()].view(dtype), same)
