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

import ctypes
import itertools
import logging
import math
import os
import queue
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from . import _c
from .comm import Comm, Request, os_error
from .enums import Algo, Dtype, Policy, Rule
from .job import first_of_host, report_norm
from .lanes import Lane, Part
from .op import make_op
from .units import number, parse_budget

__all__ = ["Averager", "State", "communicator", "hook", "register"]

_log = logging.getLogger("dblp")

_DTYPES = {torch.float32: Dtype.DBLP_FLOAT32, torch.float16: Dtype.DBLP_FLOAT16,
           torch.bfloat16: Dtype.DBLP_BFLOAT16}
#: Keys for what is reduced again and again, by communicator: none that programs choose
_numbers: "weakref.WeakKeyDictionary[Comm, Any]" = weakref.WeakKeyDictionary()
#: Communicators by process group, which is kept with its own
_comms: Dict[int, Tuple[Any, Comm]] = {}
#: How many were opened, by the group's name
_opened: Dict[str, Any] = {}


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

    def add(self, bucket: dist.GradBucket, tensor: torch.Tensor) -> None:
        self._squares += float(torch.linalg.vector_norm(tensor, dtype=torch.float32)) ** 2
        if not bucket.is_last():
            return
        norm, self._squares = math.sqrt(self._squares), 0.0
        if not math.isfinite(norm):
            _log.warning("a gradient whose norm is %s is not in the mean that job %d is told", norm, self._job)
            return
        self._sum += norm
        self._count += 1
        if self._count == self._rounds:
            mean, self._sum, self._count = self._sum / self._count, 0.0, 0
            report_norm(self._job, mean)


class State:
    """
    What hook() needs: a communicator, and how buckets are summed. Give it to
    register_comm_hook() of one DDP; two need two, which may share a communicator if
    their backward passes never overlap.

    comm: opened by all ranks of the DDP's process group, with the same numbers.
    budget: share of all contributions that may be lost: "2%", "8000ppm" or ppm; None:
        that of the phase or of the job; without both, nothing is lost.
    rule: "feedback" (what was lost comes in the next round), "bubble" or "rescale".
    algo: "transpose", "ring", "ps", "tree" or "bcube"; not "average", which is none of
        all ranks.
    norms: each so many rounds, such as an epoch, the detector of the communicator's job is
        told the mean norm of gradients, by the first rank of each host, of its own ones;
        0: nothing. Then all ranks have to make this at the same place among operations.
    lane_of: a function of a parameter that says by which lane of the communicator its
        gradient goes, always the same one; None: by the first lane.
    how: other fields of dblp.Op but key, average and parts: policy, phase, carry,
        sparse, prune, wait_ms, ...

    The first time that a bucket of certain parameters comes nothing may be lost: DDP forms
    new ones after the first round, and what has been lost of the old ones would be lost
    for good. (carry, sparse and prune begin with the second time.)

    Raises ValueError and TypeError for what cannot be.
    """

    def __init__(self, comm: Comm, budget: Union[str, int, None] = None,
                 rule: Union[Rule, int, str] = "feedback",
                 algo: Union[Algo, int, str] = "transpose", norms: int = 0,
                 lane_of: Optional[LaneOf] = None, **how: Any) -> None:
        for name in "key", "average", "parts":
            if name in how:
                raise TypeError(f"{name} is not for who calls this to choose")
        if algo in ("average", "DBLP_AVERAGE", Algo.DBLP_AVERAGE):
            raise ValueError("algo 'average' does not sum over all ranks")
        self.comm = comm
        self.how = dict(how, budget=budget, rule=rule, algo=algo, average=True)
        make_op(Dtype.DBLP_FLOAT32, **self.how)
        if number("norms", norms) and not comm.job:
            raise ValueError("norms are for the detector of a job, and the communicator is in none")
        #: What has made a backward pass fail; PyTorch says only part of it
        self.error: Optional[BaseException] = None
        #: Buckets that were summed
        self.buckets = 0
        #: Bytes of contributions that this rank should have received, and those missing
        self.asked = self.missing = 0
        self._norms = _Norms(comm.job, norms) if norms and first_of_host(comm) else None
        self._lane_of = lane_of
        self._keys: Dict[Any, int] = {}
        self._waiting: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        threading.Thread(target=_complete, args=(self._waiting,), name="dblp-ddp",
                         daemon=True).start()
        weakref.finalize(self, self._waiting.put, None)

    def _op(self, bucket: dist.GradBucket, dtype: Dtype) -> _c.Op:
        # By where its parameters are: others may have the same sizes
        layout = (dtype, *(p.data_ptr() for p in bucket.parameters()))
        key = self._keys.get(layout)
        parts = _parts(bucket, self._lane_of) if self._lane_of else ()
        if key is None:
            self._keys[layout] = _new_key(self.comm)
            return make_op(dtype, algo=self.how["algo"], average=True, budget=0, parts=parts,
                           **{n: self.how[n] for n in ("server", "root", "fanin", "radix")
                              if n in self.how})
        return make_op(dtype, key=key, parts=parts, **self.how)

    def _begin(self, bucket: dist.GradBucket) -> Tuple[Request, torch.Tensor]:
        tensor = bucket.buffer()
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise TypeError(f"gradients are {tensor.layout} on {tensor.device}: only dense ones in memory of "
                            "the CPU can be summed")
        if tensor.dtype not in _DTYPES:
            raise TypeError(f"gradients are {tensor.dtype}, not float32, float16 or bfloat16")
        op = self._op(bucket, _DTYPES[tensor.dtype])
        if self._norms:
            self._norms.add(bucket, tensor)
        return _begin(self.comm, _c.lib.dblp_allreduce, tensor, op), tensor

    def _ended(self, request: Request) -> None:
        result = request.wait()
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


def hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """
    A communication hook: the bucket becomes the average over all ranks. With
    torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper()
    around it, gradients travel as float16.

    Fails in backward(), on all ranks, with a RuntimeError that has the reason in its text
    or with the exception itself; State.error has it.
    """
    try:
        request, tensor = state._begin(bucket)  # pylint: disable=protected-access
    except BaseException as e:
        state._failed(e)  # pylint: disable=protected-access
        raise

    def average(_future: Any) -> torch.Tensor:
        try:
            state._ended(request)  # pylint: disable=protected-access
        except BaseException as e:
            state._failed(e)  # pylint: disable=protected-access
            raise
        return tensor

    future: torch.futures.Future[Any] = torch.futures.Future()
    averaged = future.then(average)
    state._waiting.put((request, future))  # pylint: disable=protected-access
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


def communicator(group: Any = None, lanes: Optional[Sequence[Lane]] = None) -> Comm:
    """
    The communicator of a process group (None: all ranks), which is opened by the first
    call, with these lanes; all ranks of the group have to call it.

    Under dblp-run rank 0 is found where that says, else by the group's own store: then
    by the first address of the machine of rank 0, unless DBLP_DEVICES of the environment
    names a device. The transport is that of DBLP_TRANSPORT of the environment, else "dblp".

    Raises what dblp.Comm does.
    """
    group = group if group is not None else dist.group.WORLD
    known = _comms.get(id(group))
    if known is not None:
        if lanes is not None and known[1].lanes != len(lanes):
            raise ValueError(f"the communicator of this group has {known[1].lanes} lanes already, not {len(lanes)}")
        return known[1]
    every = group is dist.group.WORLD
    rendezvous: Any = None
    if not (every and "DBLP_RUN_SOCKET" in os.environ):
        # The store is that of all groups; their names are the same on all their ranks
        c10d: Any = dist.distributed_c10d
        name = c10d._pg_names[group]  # pylint: disable=protected-access
        attempt = next(_opened.setdefault(name, itertools.count()))
        store = c10d._pg_map[group][1]  # pylint: disable=protected-access
        rendezvous = _kv(dist.PrefixStore(f"dblp/{name}/{attempt}", store))
    comm = Comm(dist.get_rank(group), dist.get_world_size(group), rendezvous,
                devices=os.environ.get("DBLP_DEVICES"), lanes=lanes)
    _comms[id(group)] = group, comm
    return comm


def register(ddp: Any, budget: Union[str, int, None] = None,
             rule: Union[Rule, int, str, None] = None, algo: Union[Algo, int, str, None] = None, *,
             comm: Optional[Comm] = None, norms: Optional[int] = None,
             lanes: Optional[Sequence[Lane]] = None, lane_of: Optional[LaneOf] = None,
             **how: Any) -> State:
    """
    Let gradients of a DistributedDataParallel go by libdblp. On all ranks alike, before
    the first backward pass.

    budget, rule, algo, norms, how: see State; None: what DBLP_BUDGET, DBLP_RULE, DBLP_ALGO,
        DBLP_NORMS and DBLP_POLICY of the environment say, as dblp-run(1) sets them, else
        State's defaults.
    comm: None: that of communicator(), of the DDP's process group, with these lanes:

        front = {id(p) for p in model.layers[0].parameters()}
        dblp.torch.register(ddp, "20%", lanes=[
            dblp.Lane(large="30%", rest=2, budget=0, tos=0),
            dblp.Lane(tos=40, priority=4, budget=0),
            dblp.Lane(ect=False, policy="early"),
        ], lane_of=lambda p: 1 if id(p) in front else 0)

    Returns the state, which counts what was missing. Raises RuntimeError if there is a
    hook already, what dblp.Comm raises, ValueError and TypeError for what cannot be.
    """
    env = os.environ
    how.setdefault("policy", env.get("DBLP_POLICY"))
    budget = env.get("DBLP_BUDGET") if budget is None else budget
    if budget is not None:
        parse_budget(budget)
    if comm is not None and lanes is not None:
        raise ValueError("a communicator that is open has its lanes")
    state = State(comm if comm is not None else communicator(ddp.process_group, lanes), budget,
                  rule if rule is not None else env.get("DBLP_RULE", "feedback"),
                  algo if algo is not None else env.get("DBLP_ALGO", "transpose"),
                  norms if norms is not None else int(env.get("DBLP_NORMS") or 0), lane_of, **how)
    ddp.register_comm_hook(state, hook)
    return state


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
        memory of the CPU, parameters of float32, float16 or bfloat16. No
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
                raise TypeError(f"{name} is {tensor.dtype}, not float32, float16 or bfloat16")
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
