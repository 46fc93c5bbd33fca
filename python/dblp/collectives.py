# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Collective operations of torch.distributed on tensors in memory of the CPU, by libdblp.

Only sums and averages of floating point may lose contributions. Other reductions (minimum,
product, ...) and types gather all contributions first, which takes as many times the memory as
there are ranks.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
import torch.distributed as dist

from . import _c
from .comm import Comm, Request
from .enums import Algo, Dtype
from .op import make_op
from .options import Options
from .work import Begun

__all__ = ["Collectives", "Reduction"]

_RO: Any = dist.ReduceOp

_DTYPES = {torch.float32: Dtype.DBLP_FLOAT32, torch.float64: Dtype.DBLP_FLOAT64,
           torch.float16: Dtype.DBLP_FLOAT16, torch.bfloat16: Dtype.DBLP_BFLOAT16,
           torch.int32: Dtype.DBLP_INT32, torch.int64: Dtype.DBLP_INT64, torch.uint8: Dtype.DBLP_UINT8}

_FOLDS: Dict[str, Callable[[Any, Any], Any]] = {
    "SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum,
    "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}


def _real(dtype: torch.dtype) -> torch.dtype:
    """The type of the parts of a complex number"""
    return torch.empty(0, dtype=dtype, device="cpu").real.dtype if dtype.is_complex else dtype


class Reduction:
    """
    How contributions to elements of a type are combined.

    op: a ReduceOp of torch.distributed.
    options: what may be lost.
    limit_ms: time limit of the operation; 0: that of the communicator.

    Raises TypeError if elements of the type cannot be combined so.
    """

    def __init__(self, op: Any, dtype: torch.dtype, options: Options, limit_ms: int = 0) -> None:
        names = [name for name in ("AVG", "PREMUL_SUM", *_FOLDS) if op == getattr(_RO, name, None)]
        if not names:
            raise TypeError(f"dblp cannot reduce by {op}: only by AVG, PREMUL_SUM, {', '.join(_FOLDS)}")
        self._name, = names
        # PyTorch has no public name for the factor
        self._factor = float(op.__getstate__()[1]) if self._name == "PREMUL_SUM" else None
        self._options, self._limit_ms = options, limit_ms
        self._floating = dtype.is_floating_point or dtype.is_complex
        #: Does libdblp sum such elements?
        self.native = self._name in ("SUM", "AVG", "PREMUL_SUM") and _real(dtype) in _DTYPES
        self._check(dtype)

    def _check(self, dtype: torch.dtype) -> None:
        why = f"{dtype} cannot be reduced by {self._name}"
        if self._name in ("AVG", "PREMUL_SUM") and not (self._floating and self.native):
            raise TypeError(f"{why}: it is not a type of floating point that can be summed")
        if dtype == torch.bool and self._name == "SUM":
            raise TypeError(f"{why}: use BOR, or convert it")
        if self.native:
            return
        try:
            one = torch.ones(1, dtype=dtype, device="cpu")
            self.fold([one, one])
        except (RuntimeError, TypeError) as e:
            raise TypeError(f"{why}: {e}") from e

    def op(self, dtype: torch.dtype, **how: Any) -> _c.Op:
        """Attributes of an operation of libdblp on real elements."""
        chosen = self._options.how() if self._floating else {"budget": 0}
        return make_op(_DTYPES[dtype], **{**chosen, "average": self._name == "AVG", "limit_ms": self._limit_ms, **how})

    def scale(self, contribution: torch.Tensor) -> None:
        """Multiply a contribution by the factor of PREMUL_SUM, in place."""
        if self._factor is not None:
            contribution.mul_(self._factor)

    def summand(self, sparse: torch.Tensor) -> torch.Tensor:
        """A contribution of a sparse tensor. Raises TypeError for other reductions than sums and averages."""
        if not self.native:
            raise TypeError(f"sparse tensors of {sparse.dtype} cannot be reduced by {self._name}: only summed and averaged")
        return (sparse if self._factor is None else sparse * self._factor).coalesce()

    def mean(self, total: torch.Tensor, size: int) -> torch.Tensor:
        """The result for a sum of so many contributions."""
        return total / size if self._name == "AVG" else total

    def fold(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """Combine contributions, in the order of their ranks."""
        return functools.reduce(_FOLDS[self._name], parts)


def _flat(t: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor, contiguous: its own memory if that is contiguous."""
    return t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)


def _back(t: torch.Tensor, flat: torch.Tensor) -> Optional[Callable[[], None]]:
    """A function that copies `flat` to `t`, unless both are the same memory"""
    if t.data_ptr() == flat.data_ptr() or not t.numel():
        return None

    def copy() -> None:
        t.detach().copy_(flat.view(t.shape))
    return copy


def _steps(steps: Sequence[Optional[Callable[[], None]]]) -> Optional[Callable[[], None]]:
    """Several functions as one; None if there is none"""
    some = [step for step in steps if step is not None]

    def carry_out() -> None:
        for step in some:
            step()
    return carry_out if some else None


def _summands(flat: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat


def _bytes(t: torch.Tensor) -> int:
    return int(t.numel() * t.element_size())


class Collectives:
    """
    Operations of the ranks of a communicator. Each returns a Begun; tensors may have any strides.

    comm: the communicator.
    pairs: returns another communicator of the same ranks, for operations that consist of
        messages between pairs: their order must not depend on that of the program's own messages.
    """

    def __init__(self, comm: Comm, pairs: Callable[[], Comm]) -> None:
        self._comm, self._pairs = comm, pairs
        self.rank, self.size = comm.rank, comm.nranks

    def _begin(self, function: Any, t: torch.Tensor, op: _c.Op) -> Request:
        # pylint: disable=protected-access
        return self._comm._begin(function, t.data_ptr(), t.numel(), op, t)

    def _move(self, function: Any, t: torch.Tensor, limit_ms: int, **how: Any) -> Request:
        """Begin an operation that moves elements and does not sum them"""
        op = make_op(Dtype.DBLP_UINT8, budget=0, limit_ms=limit_ms, **how)
        # pylint: disable=protected-access
        return self._comm._begin(function, t.data_ptr(), _bytes(t), op, t)

    # Reductions

    def all_reduce(self, t: torch.Tensor, by: Reduction) -> Begun:
        """Combine a tensor of all ranks, in place."""
        if not by.native:
            return self._fold(t, by, t)
        flat = _flat(t)
        by.scale(flat)
        parts = _summands(flat)
        return Begun([self._begin(_c.lib.dblp_allreduce, parts, by.op(parts.dtype))], _back(t, flat))

    def _fold(self, t: torch.Tensor, by: Reduction, out: Optional[torch.Tensor]) -> Begun:
        """Gather contributions, and combine them into `out`; None: not on this rank"""
        every = t.new_empty((self.size, t.numel()))
        every[self.rank].copy_(t.detach().reshape(-1))

        def fold() -> None:
            if out is not None:
                out.detach().copy_(by.fold(list(every)).view(out.shape))

        return Begun([self._move(_c.lib.dblp_allgather, every, 0)], fold)

    def sparse_all_reduce(self, t: torch.Tensor, by: Reduction) -> Begun:
        """
        Sum a sparse tensor of all ranks, in place: each gets the elements of all. Waits until all ranks have said how
        many they have.
        """
        own = by.summand(t.detach())
        counts = torch.empty(self.size, dtype=torch.int64, device="cpu")
        counts[self.rank] = own._nnz()  # pylint: disable=protected-access
        self.all_gather_into(counts, counts[self.rank:self.rank + 1]).wait()
        places = [own.indices().new_empty((own.sparse_dim(), n)) for n in counts.tolist()]
        parts = [own.values().new_empty((n, *own.values().shape[1:])) for n in counts.tolist()]

        def add() -> None:
            every = torch.sparse_coo_tensor(torch.cat(places, 1), torch.cat(parts), own.shape, device="cpu")
            # detach() of a sparse tensor has no part in a copy to it
            with torch.no_grad():
                t.copy_(by.mean(every.coalesce(), self.size))

        return Begun.all([self.all_gather(places, own.indices()), self.all_gather(parts, own.values())]).then(add)

    def reduce(self, t: torch.Tensor, root: int, by: Reduction) -> Begun:
        """Combine a tensor of all ranks at the root; other tensors keep their values."""
        at_root = self.rank == root
        if not by.native:
            return self._fold(t, by, t if at_root else None)
        flat = _flat(t)
        if not at_root and flat.data_ptr() == t.data_ptr():
            flat = flat.clone()
        by.scale(flat)
        parts = _summands(flat)
        op = by.op(parts.dtype, algo=Algo.DBLP_TREE, root=root)
        return Begun([self._begin(_c.lib.dblp_reduce, parts, op)], _back(t, flat) if at_root else None)

    def reduce_scatter(self, out: torch.Tensor, inputs: Sequence[torch.Tensor], by: Reduction) -> Begun:
        """Combine a tensor for each rank; the inputs keep their values."""
        if not by.native:
            return self._fold_parts(out, inputs, by)
        whole = torch.cat([_flat(t) for t in inputs]) if len(inputs) > 1 else _flat(inputs[0]).clone()
        by.scale(whole)
        sizes = [t.numel() for t in inputs]
        if len(set(sizes)) > 1:
            return self._reduce_each(out, list(torch.split(whole, sizes)), by)
        parts = _summands(whole)
        op = by.op(parts.dtype, algo=Algo.DBLP_TRANSPOSE)
        own = whole.view(self.size, -1)[self.rank] if whole.numel() else whole
        return Begun([self._begin(_c.lib.dblp_reduce_scatter, parts, op)], _back(out, own))

    def _reduce_each(self, out: torch.Tensor, flats: List[torch.Tensor], by: Reduction) -> Begun:
        """Parts of different sizes, each summed at its rank"""
        requests = []
        for rank, flat in enumerate(flats):
            parts = _summands(flat)
            op = by.op(parts.dtype, algo=Algo.DBLP_PS, root=rank)
            requests.append(self._begin(_c.lib.dblp_reduce, parts, op))
        return Begun(requests, _back(out, flats[self.rank]))

    def _fold_parts(self, out: torch.Tensor, inputs: Sequence[torch.Tensor], by: Reduction) -> Begun:
        every = [out.new_empty(out.numel()) for _ in range(self.size)]

        def fold() -> None:
            out.detach().copy_(by.fold(every).view(out.shape))

        return self.all_to_all(every, inputs).then(fold)

    # Copies

    def broadcast(self, t: torch.Tensor, root: int, limit_ms: int = 0) -> Begun:
        """Copy the tensor of the root to all ranks."""
        flat = _flat(t)
        request = self._move(_c.lib.dblp_broadcast, flat, limit_ms, algo=Algo.DBLP_TREE, root=root)
        return Begun([request], _back(t, flat) if self.rank != root else None)

    def all_gather(self, outs: Sequence[torch.Tensor], t: torch.Tensor, limit_ms: int = 0) -> Begun:
        """Copy the tensor of each rank to all ranks; sizes may differ, and are known."""
        outs[self.rank].detach().copy_(t.detach().reshape(outs[self.rank].shape))
        if len({_bytes(out) for out in outs}) > 1:
            return Begun.all([self.broadcast(out, rank, limit_ms) for rank, out in enumerate(outs)])
        whole = t.new_empty((self.size, t.numel()))
        whole[self.rank].copy_(t.detach().reshape(-1))
        backs = [_back(out, part) for rank, (out, part) in enumerate(zip(outs, whole)) if rank != self.rank]
        return Begun([self._move(_c.lib.dblp_allgather, whole, limit_ms)], _steps(backs))

    def all_gather_into(self, out: torch.Tensor, t: torch.Tensor, limit_ms: int = 0) -> Begun:
        """As all_gather(), into one tensor."""
        whole = _flat(out)
        own = whole.view(self.size, -1)[self.rank] if whole.numel() else whole
        # Programs may pass a part of the output as input
        if own.data_ptr() != t.data_ptr() or not t.is_contiguous():
            own.copy_(t.detach().reshape(-1))
        return Begun([self._move(_c.lib.dblp_allgather, whole, limit_ms)], _back(out, whole))

    # Messages between pairs of ranks

    def _message(self, send: bool, comm: Comm, t: torch.Tensor, rank: int) -> Request:
        function = _c.lib.dblp_comm_send if send else _c.lib.dblp_comm_recv
        # pylint: disable=protected-access
        return comm._submit(function, (t.data_ptr(), _bytes(t), Dtype.DBLP_UINT8, rank), t)

    def send(self, t: torch.Tensor, to: int) -> Begun:
        """Send a tensor to a rank."""
        return Begun([self._message(True, self._comm, _flat(t), to)])

    def recv(self, t: torch.Tensor, source: int) -> Begun:
        """Receive a tensor with as many bytes as are sent."""
        flat = _flat(t)
        return Begun([self._message(False, self._comm, flat, source)], _back(t, flat))

    def exchange(self, outs: Dict[int, torch.Tensor], ins: Dict[int, torch.Tensor]) -> Begun:
        """Send tensors to ranks and receive tensors from ranks, this one included."""
        comm = self._pairs()
        # The next ranks first, so that all ranks do not send to the same one
        order = [(self.rank + i) % self.size for i in range(self.size)]
        if self.rank in outs and self.rank in ins:
            outs[self.rank].detach().copy_(ins[self.rank].detach().reshape(outs[self.rank].shape))
        others = [rank for rank in order if rank != self.rank]
        flats = {rank: _flat(outs[rank]) for rank in others if rank in outs}
        requests = [self._message(False, comm, flat, rank) for rank, flat in flats.items()]
        requests += [self._message(True, comm, _flat(ins[rank]), rank) for rank in others if rank in ins]
        return Begun(requests, _steps([_back(outs[rank], flat) for rank, flat in flats.items()]))

    def all_to_all(self, outs: Sequence[torch.Tensor], ins: Sequence[torch.Tensor]) -> Begun:
        """Send a tensor to each rank, and receive one from each."""
        return self.exchange(dict(enumerate(outs)), dict(enumerate(ins)))

    def gather(self, outs: Sequence[torch.Tensor], t: torch.Tensor, root: int) -> Begun:
        """Copy the tensors of all ranks to the root; `outs` is empty elsewhere."""
        return self.exchange(dict(enumerate(outs)), {root: t})

    def scatter(self, out: torch.Tensor, ins: Sequence[torch.Tensor], root: int) -> Begun:
        """Copy a tensor of the root to each rank; `ins` is empty elsewhere."""
        return self.exchange({root: out}, dict(enumerate(ins)))

    def barrier(self) -> Begun:
        """Wait for all ranks."""
        # pylint: disable=protected-access
        return Begun([self._comm._submit(_c.lib.dblp_barrier, (), None)])
