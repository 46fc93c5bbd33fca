# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
The backend "dblp" of torch.distributed, for PyTorch 2.6 and later:

    dist.init_process_group("dblp")

Importing dblp.torch registers it, and so does PyTorch itself where the package is installed. By
default nothing is lost: see dblp.torch.Options and dblp.torch.lossy(). Tensors of devices are
copied to pinned memory of the host and back on side streams: see dblp.staging. wait() of a work
waits for the network, and lets the current stream wait for the copies.

The process group is a class of Python, because PyTorch has no stable interface for libraries. So
it carries the data of all devices of a group: "cpu:dblp,cuda:gloo" is not possible.
"""

from __future__ import annotations

import datetime
import os
import sys
import weakref
from functools import partial
from typing import Any, Callable, Dict, Hashable, List, Optional, Sequence

import torch
import torch.distributed

from .collectives import Collectives, Reduction
from .comm import Comm, RankError
from .ending import at_end, end
from .meeting import Meeting, next_store
from .options import Options, current
from .starting import Starter, device_among
from .tensors import aborter
from .units import env_number
from .work import Begun, Completer, Work

__all__ = ["ProcessGroup", "create"]

#: PyTorch 1.13, by which types are checked, lacks some names
dist: Any = torch.distributed

_Base: Any = dist.ProcessGroup


def _torch_version() -> str:
    return str(torch.__version__).split("+", maxsplit=1)[0]


def _called_by_python() -> bool:
    """Has Python code of torch.distributed called a method of a group, and not C++ code?"""
    frame: Any = sys._getframe(1)  # pylint: disable=protected-access
    while frame is not None and frame.f_globals is globals():
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "torch.distributed.distributed_c10d"


def _milliseconds(timeout: Any) -> int:
    """A timeout of torch.distributed in ms; 0: none"""
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else 0
    return min(max(int(seconds * 1000), 0), 0xffffffff)


def _explainer(ranks: Sequence[int]) -> Callable[[BaseException], BaseException]:
    """Returns a function that converts exceptions into those of torch.distributed"""
    def explain(e: BaseException) -> BaseException:
        text = str(e)
        if isinstance(e, RankError) and 0 <= e.rank < len(ranks) != ranks[e.rank] + 1 and ranks[e.rank] != e.rank:
            text += f" (rank {ranks[e.rank]} of all)"
        wrapped: BaseException = dist.DistBackendError(text)
        return wrapped if isinstance(e, (OSError, ValueError)) else e
    return explain


def _dense(*tensors: torch.Tensor) -> None:
    for t in tensors:
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"dblp needs tensors, not {t!r}")
        if t.layout != torch.strided or t.is_quantized:
            raise TypeError(f"dblp needs dense tensors, not {t.layout} of {t.dtype}")
    device_among(tensors)


def _is_sparse(t: Any) -> bool:
    """Is it a tensor of gradients of an embedding, in memory of the CPU?"""
    return isinstance(t, torch.Tensor) and t.layout == torch.sparse_coo and t.device.type == "cpu"


def _same(what: str, tensors: Sequence[torch.Tensor], t: torch.Tensor) -> None:
    """The tensors have the type of t"""
    for other in tensors:
        if other.dtype != t.dtype:
            raise TypeError(f"{what} is {other.dtype}, not {t.dtype}")


def _splits(t: torch.Tensor, sizes: Sequence[int], n: int, what: str) -> List[torch.Tensor]:
    """Parts of a tensor for each rank, along its first dimension"""
    rows = t.size(0) if t.dim() else 1
    if not sizes:
        if rows % n:
            raise ValueError(f"{what} has {rows} rows, not a multiple of {n}, the number of ranks")
        sizes = [rows // n] * n
    if len(sizes) != n or sum(sizes) != rows:
        raise ValueError(f"{what} has {rows} rows, and the splits are {list(sizes)} for {n} ranks")
    return list(torch.split(t, list(sizes))) if t.dim() else [t]


class _Pairs:
    """The second communicator of a group, opened by the first call, which all ranks make."""

    def __init__(self, first: Comm, store: Any, how: Dict[str, Any], comms: "weakref.WeakSet[Comm]",
                 completer: Completer) -> None:
        self._rank, self._size, self._store, self._how = first.rank, first.nranks, store, how
        self._comms, self._completer = comms, completer
        self._comm: Optional[Comm] = None

    def __call__(self) -> Comm:
        if self._comm is None:
            meeting = Meeting(dist.PrefixStore("pairs", self._store), self._rank, self._size,
                              self._how["operation_ms"] / 1000)
            self._comm = meeting.open(**self._how)
            self._comms.add(self._comm)
            self._completer.watch(self._comm)
        return self._comm


class ProcessGroup(_Base):  # type: ignore[misc]
    """
    A process group, with the methods that torch.distributed calls.

    store: used by no other group.
    ranks: numbers of its ranks in the default group.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta,
                 ranks: Sequence[int], options: Options) -> None:
        super().__init__(rank, size)
        self._names = {"name": "", "desc": ""}
        self.options = options
        #: Time limit of operations, also of communicators of the hook
        self.limit = timeout
        #: Options for reduce_scatter(); None: those of all operations
        self.scatter_options: Optional[Options] = None
        self._explain = _explainer(ranks)
        meeting = Meeting(store, rank, size, timeout.total_seconds())
        transport = os.environ.get("DBLP_TRANSPORT") or "dblp"
        meeting.agree({"ranks": list(ranks), "PyTorch": _torch_version(),
                       "transport": transport, "options": options.how()})
        limit = _milliseconds(timeout)
        how: Dict[str, Any] = {"join_ms": limit, "operation_ms": limit, "devices": os.environ.get("DBLP_DEVICES"),
                               "epoch": env_number("TORCHELASTIC_RESTART_COUNT"), **options.comm}
        self.comm = meeting.open(**how)
        #: Both communicators, for the abort after a failure
        self._comms: weakref.WeakSet[Comm] = weakref.WeakSet([self.comm])
        self._starter = Starter(self._comms)
        self._completer = Completer()
        self._completer.watch(self.comm)
        weakref.finalize(self, self._completer.stop)
        self._pairs = _Pairs(self.comm, store, how, self._comms, self._completer)
        self._collectives = Collectives(self.comm, self._pairs)
        self._batch: Optional[List[Begun]] = None
        self._alone = False

    # What torch.distributed asks of the backend of a device

    #: Has it split() and eager_connect_single_device()?
    supports_splitting = False
    #: Has it startCoalescing() of C++?
    supports_coalescing = False

    def _get_backend(self, _device: Any) -> ProcessGroup:
        return self

    def supports_tensor_alloc(self, _device: Any) -> bool:
        """Has it memory of its own for tensors?"""
        return False

    # Names

    def getBackendName(self) -> str:  # pylint: disable=invalid-name
        """Name of the backend."""
        return "dblp"

    def setGroupName(self, name: str) -> None:  # pylint: disable=invalid-name
        """As torch.distributed calls it."""
        self._names["name"] = name

    def getGroupName(self) -> str:  # pylint: disable=invalid-name
        """Name of the group."""
        return self._names["name"]

    def setGroupDesc(self, desc: str) -> None:  # pylint: disable=invalid-name
        """As torch.distributed calls it."""
        self._names["desc"] = desc

    def getGroupDesc(self) -> str:  # pylint: disable=invalid-name
        """Description of the group."""
        return self._names["desc"]

    # Works

    def _work(self, calls: Sequence[partial[Begun]], value: List[Any], inputs: Any = (), outputs: Any = (),
              order: Hashable = None, pairs: bool = False) -> Any:
        """
        Begin one operation; returns its Work, whose future has `value`.

        inputs, outputs, order: see Starter.
        pairs: does it use the second communicator?
        """
        self._check_alone()
        try:
            if pairs:
                self._pairs()
            begun = self._starter.start(calls, inputs, outputs, order)
        except OSError as e:
            raise self._explain(e) from e
        if self._batch is not None:
            self._batch.append(begun)
        return self._as_work(begun, value)

    def _check_alone(self) -> None:
        """Raise ValueError if the group was to have other backends; torch.distributed tells only after its creation"""
        if self._alone:
            return
        try:
            backends = dist.get_backend_config(self)
        except TypeError:
            # The program has created the group without torch.distributed
            backends = ""
        if any(pair.partition(":")[2] != "dblp" for pair in backends.split(",") if pair):
            raise ValueError(f"backends {backends}: a group of dblp carries the data of all devices, so it cannot have another "
                             "backend. Create two groups, or name dblp only")
        self._alone = True

    def _as_work(self, begun: Begun, value: List[Any]) -> Work:
        return Work(begun, value, self._completer, self._explain, not _called_by_python())

    def _by(self, opts: Any, op: Any, dtype: torch.dtype, options: Optional[Options] = None) -> Reduction:
        return Reduction(op, dtype, current(options or self.options), _milliseconds(getattr(opts, "timeout", None)))

    def _start_coalescing(self, _device: Any) -> None:
        self._batch = []

    def _end_coalescing(self, _device: Any) -> Any:
        begun, self._batch = self._batch or [], None
        return self._as_work(Begun.all(begun), [])

    # Reductions

    def allreduce(self, tensors: List[torch.Tensor], opts: Any = None) -> Any:
        """all_reduce()"""
        op = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
        by = [self._by(opts, op, t.dtype) for t in tensors]
        if len(tensors) == 1 and _is_sparse(tensors[0]):
            return self._work([partial(self._collectives.sparse_all_reduce, tensors[0], by[0])], tensors)
        _dense(*tensors)
        return self._work([partial(self._collectives.all_reduce, t, b) for t, b in zip(tensors, by)], tensors,
                          tensors, tensors)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Any:
        """all_reduce_coalesced()"""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: List[torch.Tensor], opts: Any) -> Any:
        """reduce()"""
        t, = tensors
        _dense(t)
        by = self._by(opts, opts.reduceOp, t.dtype)
        return self._work([partial(self._collectives.reduce, t, opts.rootRank, by)], tensors,
                          tensors, tensors if self.rank() == opts.rootRank else ())

    def reduce_scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any = None) -> Any:
        """reduce_scatter()"""
        return self._reduce_scatters(outputs, inputs, opts)

    def _reduce_scatter_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        return self._reduce_scatters([output], [[source]], opts)

    def reduce_scatter_tensor_coalesced(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor],
                                        opts: Any = None) -> Any:
        """reduce_scatter_tensor() of several tensors"""
        return self._reduce_scatters(outputs, [[t] for t in inputs], opts)

    def _reduce_scatters(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any) -> Any:
        op = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
        begin, pairs = [], False
        for out, parts in zip(outputs, inputs):
            _dense(out, *parts)
            _same("an input", parts, out)
            self._check_parts(out, parts)
            by = self._by(opts, op, out.dtype, self.scatter_options)
            begin.append(partial(self._scatter_sum, out, parts, by))
            pairs |= not by.native
        return self._work(begin, outputs, inputs, outputs, pairs=pairs)

    def _check_parts(self, out: torch.Tensor, parts: List[torch.Tensor]) -> None:
        if len(parts) == 1 and (self.size() > 1 or parts[0].numel() != out.numel()):
            have, want = parts[0].numel(), out.numel() * self.size()
        elif len(parts) != self.size():
            raise ValueError(f"{len(parts)} inputs were given for {self.size()} ranks")
        else:
            have, want = parts[self.rank()].numel(), out.numel()
        if have != want:
            raise ValueError(f"the input has {have} elements, not {want} for an output of {out.numel()}")

    def _scatter_sum(self, out: torch.Tensor, parts: List[torch.Tensor], by: Reduction) -> Begun:
        if not by.native and len(parts) == 1:
            parts = list(torch.split(parts[0].reshape(-1), max(out.numel(), 1))) if out.numel() else [out] * self.size()
        return self._collectives.reduce_scatter(out, parts, by)

    # Copies

    def broadcast(self, tensors: List[torch.Tensor], opts: Any) -> Any:
        """broadcast()"""
        _dense(*tensors)
        limit, at_root = _milliseconds(opts.timeout), self.rank() == opts.rootRank
        return self._work([partial(self._collectives.broadcast, t, opts.rootRank, limit) for t in tensors], tensors,
                          tensors if at_root else (), () if at_root else tensors)

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any = None) -> Any:
        """all_gather()"""
        limit = _milliseconds(getattr(opts, "timeout", None))
        for outs, t in zip(outputs, inputs):
            _dense(t, *outs)
            _same("an output", outs, t)
            if len(outs) != self.size() or outs[self.rank()].numel() != t.numel():
                raise ValueError(f"the outputs have {[o.numel() for o in outs]} elements, and the input {t.numel()}")
        return self._work([partial(self._collectives.all_gather, outs, t, limit)
                           for outs, t in zip(outputs, inputs)], outputs, inputs, outputs)

    def allgather_coalesced(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor],
                            opts: Any = None) -> Any:
        """all_gather_coalesced(): a list of outputs for each rank"""
        return self.allgather([list(outs) for outs in zip(*outputs)], inputs, opts)

    def _allgather_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        return self.allgather_into_tensor_coalesced([output], [source], opts)

    def allgather_into_tensor_coalesced(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor],
                                        opts: Any = None) -> Any:
        """all_gather_into_tensor() of several tensors"""
        limit = _milliseconds(getattr(opts, "timeout", None))
        for out, t in zip(outputs, inputs):
            _dense(out, t)
            _same("the output", [out], t)
            if out.numel() != t.numel() * self.size():
                raise ValueError(f"the output has {out.numel()} elements, not {t.numel()} * {self.size()} ranks")
        return self._work([partial(self._collectives.all_gather_into, out, t, limit)
                           for out, t in zip(outputs, inputs)], outputs, inputs, outputs)

    # Messages

    def gather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any) -> Any:
        """gather()"""
        outs, t = outputs[0] if outputs else [], inputs[0]
        _dense(t, *outs)
        _same("an output", outs, t)
        if len(outs) != (self.size() if self.rank() == opts.rootRank else 0):
            raise ValueError(f"the root needs {self.size()} outputs, and other ranks none")
        return self._work([partial(self._collectives.gather, outs, t, opts.rootRank)], outputs, t, outs, pairs=True)

    def scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any) -> Any:
        """scatter()"""
        t, ins = outputs[0], inputs[0] if inputs else []
        _dense(t, *ins)
        _same("an input", ins, t)
        if len(ins) != (self.size() if self.rank() == opts.rootRank else 0):
            raise ValueError(f"the root needs {self.size()} inputs, and other ranks none")
        return self._work([partial(self._collectives.scatter, t, ins, opts.rootRank)], outputs, ins, t, pairs=True)

    def alltoall_base(self, output: torch.Tensor, source: torch.Tensor, output_splits: List[int],
                      input_splits: List[int], opts: Any = None) -> Any:
        """all_to_all_single()"""
        _dense(output, source)
        _same("the output", [output], source)
        outs = _splits(output, output_splits, self.size(), "the output")
        ins = _splits(source, input_splits, self.size(), "the input")
        return self._all_to_all(outs, ins, [output])

    def alltoall(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None) -> Any:
        """all_to_all()"""
        _dense(*outputs, *inputs)
        if len(outputs) != self.size() or len(inputs) != self.size():
            raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs were given for {self.size()} ranks")
        return self._all_to_all(outputs, inputs, outputs)

    def _all_to_all(self, outs: List[torch.Tensor], ins: List[torch.Tensor], outputs: List[Any]) -> Any:
        if outs[self.rank()].numel() != ins[self.rank()].numel():
            raise ValueError(f"this rank sends {ins[self.rank()].numel()} elements to itself, and expects "
                             f"{outs[self.rank()].numel()}")
        return self._work([partial(self._collectives.all_to_all, outs, ins)], outputs, ins, outs, pairs=True)

    def _pair(self, tensors: List[torch.Tensor], rank: int, tag: int) -> torch.Tensor:
        t, = tensors
        _dense(t)
        if tag:
            raise ValueError("dblp has no tags: messages between two ranks are received in the order of sending")
        if not 0 <= rank < self.size() or rank == self.rank():
            raise ValueError(f"rank {rank} is not another one of {self.size()} ranks")
        return t

    def send(self, tensors: List[torch.Tensor], to: int, tag: int = 0) -> Any:
        """send()"""
        t = self._pair(tensors, to, tag)
        return self._work([partial(self._collectives.send, t, to)], tensors, t, order=("to", to))

    def recv(self, tensors: List[torch.Tensor], source: int, tag: int = 0) -> Any:
        """recv()"""
        t = self._pair(tensors, source, tag)
        return self._work([partial(self._collectives.recv, t, source)], tensors, outputs=t, order=("from", source))

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int = 0) -> Any:
        """recv() without a source"""
        raise ValueError("dblp needs the rank that sends: recv() without `src` is not possible")

    def barrier(self, opts: Any = None) -> Any:
        """barrier()"""
        return self._work([partial(self._collectives.barrier)], [])

    # Names of newer versions of PyTorch

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    all_to_all_single = alltoall_base
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    start_coalescing = _start_coalescing
    end_coalescing = _end_coalescing

    # End

    def abort(self) -> None:
        """Let all operations fail, on all ranks."""
        aborter(self._comms)()

    def shutdown(self) -> None:
        """Leave the group."""
        end(self)

    def _leave(self) -> None:
        self._starter.close()
        for comm in list(self._comms):
            comm.close()
        self._completer.finish()


def _leave(group: Any) -> None:
    if isinstance(group, ProcessGroup):
        group._leave()  # pylint: disable=protected-access


at_end(_leave)


def create(how: Any, options: Any) -> ProcessGroup:
    """A process group, as torch.distributed wants it of a backend."""
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options of the backend dblp are dblp.torch.Options, not {options!r}")
    # Later groups with the same name find the keys of earlier ones
    store = next_store(how.store, how.group_rank)
    ranks = list(how.global_ranks_in_group) or list(range(how.group_size))
    return ProcessGroup(store, how.group_rank, how.group_size, how.timeout, ranks, options or Options())
