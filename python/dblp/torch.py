# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
A communication hook of torch.nn.parallel.DistributedDataParallel (DDP) that uses libdblp.

    import dblp.torch

    ddp = torch.nn.parallel.DistributedDataParallel(model)
    dblp.torch.register(ddp, budget="2%")

Only gradients use it; all other communication of torch.distributed is unchanged. All ranks get
the same bits, so replicas stay equal, whatever was lost. dblp-run(1) registers the hook for
scripts that do not. Averager averages parameters instead of gradients, without DDP.

Gradients may be on a GPU or another device that PyTorch can copy to pinned host memory. Then
backward() does not wait for the device.

This module needs PyTorch 1.13 or later.
"""

# No annotations from __future__: PyTorch evaluates the annotations of hooks

import contextlib
import functools
import logging
import math
import os
import queue
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import dblp_autoload
import torch
import torch.distributed as dist

from . import _c, fsdp
from .accelerator import device_of
from .averager import Averager
from .comm import Comm, Request
from .enums import Algo, Dtype, Rule
from .groups import communicator, job_of, opened
from .job import first_of_host, report_norm
from .lanes import Lane, Part
from .op import Op, make_op
from .options import Options, lossy
from .residuals import Layout, Residuals
from .staging import Job
from .tensors import DTYPES, begin, flush, stager
from .tune import Tuner, check_budget, parse_auto
from .units import env_number, number

__all__ = ["Averager", "Options", "State", "communicator", "hook", "lossy", "register"]

dblp_autoload.register()

_log = logging.getLogger("dblp")

#: DDPs with a hook of register(); copies of a DDP are not in it
_hooked: "weakref.WeakSet[Any]" = weakref.WeakSet()
#: DDPs whose hook has a State, also those with a hook that the script has registered
_with_state: "weakref.WeakSet[Any]" = weakref.WeakSet()

LaneOf = Callable[[torch.nn.Parameter], int]


def _parts(parameters: Sequence[torch.nn.Parameter], lane_of: LaneOf) -> List[Part]:
    """The parts of a bucket by lane; adjacent parameters with the same lane are one part"""
    parts: List[Part] = []
    at = 0
    for p in parameters:
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
        self._squares = torch.zeros((), device="cpu")
        self._sum = 0.0
        self._count = 0

    def add(self, tensor: torch.Tensor) -> None:
        """Add a bucket of a gradient. On a device this does not wait for it."""
        values = tensor.coalesce().values() if tensor.is_sparse else tensor
        # Not all devices have float64
        dtype = torch.float64 if tensor.device.type == "cpu" else torch.float32
        square = torch.linalg.vector_norm(values, dtype=dtype).square()
        self._squares = square + self._squares.to(square.device, non_blocking=True)

    def take(self) -> torch.Tensor:
        """The sum of squares of a gradient, whose buckets were added"""
        squares, self._squares = self._squares, torch.zeros((), device="cpu")
        return squares

    def report(self, squares: float, scale: float) -> None:
        """Count a gradient, which a loss scale has multiplied by `scale`, and report the mean if it is due"""
        norm = math.sqrt(squares) / scale
        # The limit of the kernel, which NaN does not pass either
        if not norm < 1 << 32:
            _log.warning("a gradient with norm %s is omitted from the mean reported to job %d", norm, self._job)
            return
        self._sum += norm
        self._count += 1
        if self._count == self._rounds:
            mean, self._sum, self._count = self._sum / self._count, 0.0, 0
            report_norm(self._job, mean)


class State:
    """
    State of hook(): a communicator, and the attributes of the sums. Pass it to
    register_comm_hook() of one DDP. Two DDPs need two States, which may share a communicator if
    their backward passes never overlap.

    comm: communicator of all ranks of the DDP's process group, with the same rank numbers. None:
        that of communicator(group), opened when the first bucket of the first backward pass is
        ready.
    budget: share of all contributions that may be lost: "2%", "8000ppm" or an int (ppm). None:
        that of the phase or of the job; without both, nothing is lost. "auto" or "auto:40%": found
        for each round, and at most the cap after the colon, or 40 %; not with a job. Then the
        default of policy is "early".
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
        for parameter in module.parameters() if module is not None else ():
            device_of(parameter.device)
        if algo in ("average", "DBLP_AVERAGE", Algo.DBLP_AVERAGE):
            raise ValueError("algo 'average' does not sum over all ranks")
        options = options or {}
        self.how = dict(how, budget=budget, rule=rule, algo=algo, average=True)
        cap = parse_auto(budget)
        self._tuner = None if cap is None else Tuner(rule, cap)
        if self._tuner:
            if comm.job if comm else job_of(options):
                raise ValueError("budget 'auto' and a job exclude each other: the job's budget would not count")
            self.how.update(budget=0, energy=True, policy=how.get("policy") or "early")
        make_op(Dtype.DBLP_FLOAT32, **self.how)
        if comm is None:
            opened(group, options)
        if number("norms", norms) and not (comm.job if comm else job_of(options)):
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
        self._residuals = Residuals(dict(module.named_parameters()) if module is not None else {})
        self._ready = self._warned = False
        self._budget = budget
        #: Index of the last bucket, and whether the next one that is summed is the first of its round
        self._index = math.inf
        self._first = True
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
        self._flush()
        self._scale_residuals(factor)

    def _scale_residuals(self, factor: float) -> None:
        if not 0 < factor < math.inf:
            raise ValueError(f"a residual cannot be scaled by {factor}")
        self._residuals.scale(factor)

    def reset(self) -> None:
        """Discard residuals, such as before training with other data or parameters."""
        self._flush()
        self._residuals.reset()

    def state_dict(self) -> Dict[str, Any]:
        """
        Residuals of this rank, by parameter, for a checkpoint. Each rank has its own. A restart
        without them loses the contributions that were lost last.
        """
        self._flush()
        tuner = {"tuner": self._tuner.get()} if self._tuner else {}
        return {"residuals": self._residuals.get(), "scale": self._scale, **tuner}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """
        Load a value of state_dict(). Buckets, type of gradients and number of ranks may have
        changed. A budget that is found continues from the state of rank 0; after the first backward
        pass all ranks must call this at the same place, before it any rank may omit it. Raises
        KeyError and ValueError if names or sizes are not those of the parameters; then nothing has
        changed.
        """
        residuals, scale = state["residuals"], float(state["scale"])
        if not 0 < scale < math.inf:
            raise ValueError(f"a loss scale is not {scale}")
        self._flush()
        self._residuals.set(residuals)
        self._scale = scale
        if self._tuner:
            self._tuner.set(state.get("tuner", self._tuner.get()))
            self._ready = False

    def _flush(self) -> None:
        """
        Wait until no operation uses this State. backward() does not wait for those on tensors of a device, and the library
        has no residual of an operation that has not ended.
        """
        if self._comm is not None:
            flush(self._comm, ended=True)

    def __getstate__(self) -> Dict[str, Any]:
        how = {name: value for name, value in self.how.items() if name not in ("average", "energy")}
        if self._tuner:
            how["budget"] = self._budget
        return {"how": how,
                "norms": self._norms_rounds, "lane_of": self._lane_of, "options": self._options,
                "state": self.state_dict()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(norms=state["norms"], lane_of=state["lane_of"],  # type: ignore[misc]
                      options=state["options"], **state["how"])
        self.load_state_dict(state["state"])

    # Buckets

    def _prepare(self) -> None:
        """Carry out operations of all ranks before the first bucket, and the first one after load_state_dict()"""
        flush(self.comm)
        if self._tuner:
            self._tuner.agree(self.comm)
        if self._norms_rounds and first_of_host(self.comm):
            self._norms = _Norms(self.comm.job, self._norms_rounds)
        self._ready = True

    def _rescale(self, now: float) -> None:
        """Convert residuals to the loss scale `now`"""
        if now != self._scale:
            self._scale_residuals(now / self._scale)
            self._scale = now

    def _begin(self, bucket: dist.GradBucket) -> Any:
        """Begin to sum a bucket; returns an object with wait()"""
        tensor = bucket.buffer()
        device = device_of(tensor.device)
        if not self._ready:
            self._prepare()
        self._first |= bucket.index() <= self._index
        self._index = bucket.index()
        if self._norms:
            self._norms.add(tensor)
        squares = self._norms.take() if self._norms and bucket.is_last() else None
        if tensor.layout != torch.strided or tensor.dtype not in DTYPES:
            self._note(None, squares)
            return self._begin_other(tensor)
        if device is not None:
            return self._stage(device, bucket, squares)
        self._note(self.scaler.get_scale() if self.scaler is not None else None, squares)
        flush(self.comm)
        return self._sum(tensor, bucket.parameters(), self._take_first())

    def _take_first(self) -> bool:
        """Is the bucket that is to be summed the first such one of its round?"""
        first, self._first = self._first, False
        return first

    def _sum(self, tensor: torch.Tensor, parameters: Sequence[torch.nn.Parameter], first: bool) -> Request:
        """Begin to sum a bucket in memory of the CPU, in the order of buckets"""
        if self._tuner and first:
            self.how["budget"] = self._tuner.next_round(self.comm)
        request = begin(self.comm, _c.lib.dblp_allreduce, tensor, self._op(parameters, tensor.dtype))
        if self._tuner:
            self._tuner.add(request, tensor.numel() * tensor.element_size())
        return request

    def _note(self, scale: Any, squares: Any) -> None:
        """Before a bucket begins: the loss scale and the norm of the gradient, if they are known now"""
        if scale is not None:
            self._rescale(float(scale))
        if squares is not None and self._norms:
            self._norms.report(float(squares), self._scale)

    def _op(self, parameters: Sequence[torch.nn.Parameter], dtype: torch.dtype) -> _c.Op:
        layout: Layout = self._residuals.layout(self.comm, parameters, dtype)
        if layout.how != self.how:
            parts = _parts(parameters, self._lane_of) if self._lane_of else ()
            layout.op = make_op(DTYPES[dtype], key=layout.key, parts=parts, **self.how)
            layout.how = dict(self.how)
        op: _c.Op = layout.op
        return op

    def _stage(self, device: Any, bucket: dist.GradBucket, squares: Optional[torch.Tensor]) -> Job:
        """Begin to sum a bucket of a device, when it and the scalars that it needs are in memory of the CPU"""
        tensor, parameters, first = bucket.buffer(), bucket.parameters(), self._take_first()
        scale = self._device_scale(tensor.device) if self.scaler is not None else None
        size = tensor.numel() * tensor.element_size()
        at = [-(-size // 8) * 8 + 8 * i for i in range(2)]
        scalars = [(offset, scalar) for offset, scalar in zip(at, (scale, squares)) if isinstance(scalar, torch.Tensor)]

        def read(host: torch.Tensor, offset: int, scalar: Any) -> Any:
            if not isinstance(scalar, torch.Tensor):
                return scalar
            return host[offset:offset + scalar.element_size()].view(scalar.dtype).item()

        def begin_staged(host: torch.Tensor) -> Request:
            self._note(read(host, at[0], scale), read(host, at[1], squares))
            return self._sum(host[:size].view(tensor.dtype), parameters, first)

        return stager(self.comm).submit(device, at[1] + 8, begin_staged, [(0, tensor), *scalars], [(0, tensor)])

    def _device_scale(self, device: torch.device) -> Any:
        """The loss scale, as a tensor of `device` if it is there: its number would have to wait for the device"""
        # GradScaler has no public equivalent
        scale = getattr(self.scaler, "_get_scale_async", lambda: None)()
        if isinstance(scale, torch.Tensor) and scale.device == device:
            return scale
        return self.scaler.get_scale()

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
        if not isinstance(request, (Job, Request)):
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
        request, future, value = item
        try:
            request.wait()
        except Exception:  # pylint: disable=broad-except
            # The continuation of the future raises it again
            value = None
        future.set_result(value)
        del item, request, future, value


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

    if isinstance(request, Job):
        return request.future.then(average)
    device = device_of(tensor.device)
    future: torch.futures.Future[Any] = device.future() if device is not None else torch.futures.Future()
    averaged = future.then(average)
    state._waiting.put((request, future, tensor))
    if device is not None:
        return averaged
    state._pass.append(request)
    if bucket.is_last():
        try:
            state._end_pass()
        except BaseException as e:
            state._failed(e)
            raise
    return averaged


def register(ddp: Any, budget: Union[str, int, None] = None,
             rule: Union[Rule, int, str, None] = None, algo: Union[Algo, int, str, None] = None, *,
             comm: Optional[Comm] = None, norms: Optional[int] = None,
             lanes: Optional[Sequence[Lane]] = None, lane_of: Optional[LaneOf] = None,
             scaler: Any = None, options: Optional[Dict[str, Any]] = None, op: Optional[Op] = None,
             **how: Any) -> Any:
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

    Instead of a DDP it may be a module of fully_shard() (FSDP2). Then budget, rule ("rescale" or
    "bubble") and how (policy, wait_ms) are those of Options, for all reduce_scatter() of its process
    group, and the Options are returned. If the group has another backend than dblp, PyTorch must
    have set_custom_reduce_scatter().
    """
    if fsdp.is_fsdp(ddp):
        given = dict(algo=algo, comm=comm, norms=norms, lanes=lanes, lane_of=lane_of, scaler=scaler, options=options, op=op)
        return fsdp.register(ddp, budget, rule, **how, **{name: value for name, value in given.items() if value is not None})
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
        check_budget(budget)
    return {"policy": env.get("DBLP_POLICY"), **how, "budget": budget,
            "rule": rule if rule is not None else env.get("DBLP_RULE", "feedback"),
            "algo": algo if algo is not None else env.get("DBLP_ALGO", "transpose")}


def _register(ddp: Any, how: Dict[str, Any]) -> State:
    state = State(group=ddp.process_group, module=ddp.module, **how)
    ddp.register_comm_hook(state, hook)
    # PyTorch 2 would copy and pickle the State with the DDP; _Again makes one for each copy
    kept = getattr(ddp, "_comm_hooks", [])
    kept[:] = [pair for pair in kept if pair[1] is not state]
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
            again(ddp, None)
        if ddp in _with_state and not kwargs.get("divide_by_initial_world_size", True):
            raise ValueError("join(divide_by_initial_world_size=False) does not work with dblp: it divides sums by the "
                             "number of all ranks")
        return method(ddp, **kwargs)
    return join_hook


def _registering(method: Any) -> Any:
    """register_comm_hook() of DDP, which a script may call itself"""
    @functools.wraps(method)
    def register_comm_hook(ddp: Any, state: Any, hook: Any) -> Any:  # pylint: disable=redefined-outer-name
        done = method(ddp, state, hook)
        if isinstance(state, State):
            _with_state.add(ddp)
        return done
    return register_comm_hook


_DDP: Any = torch.nn.parallel.DistributedDataParallel
_DDP.join_hook = _joining(_DDP.join_hook)
_DDP.register_comm_hook = _registering(_DDP.register_comm_hook)
