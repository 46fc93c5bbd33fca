# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Averages of parameters over groups of ranks, for dblp.torch."""

import ctypes
import itertools
import math
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

import torch

from . import _c
from .comm import Comm, os_error
from .enums import Dtype, Policy
from .groups import communicator
from .op import make_op
from .tensors import DTYPES, begin, flush, new_key


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
            if tensor.dtype not in DTYPES:
                raise TypeError(f"{name} is {tensor.dtype}, not a type of floats that can be summed")
        self.comm = comm if comm is not None else communicator()
        self._how: Dict[str, Any] = dict(budget=budget, policy=policy, phase=phase, carry=carry, wait_ms=wait_ms,
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
        self._reduce((t for t in tensors if t.dtype in DTYPES), dict(budget=0, average=True))
        self._spread([t for t in tensors if t.dtype not in DTYPES])

    def _reduce(self, tensors: Iterable[torch.Tensor], how: Dict[str, Any]) -> None:
        begun = []
        flush(self.comm)
        for dtype, same in _by_dtype(tensors).items():
            flat = _flat(same)
            layout = dtype, flat.numel()
            if layout not in self._keys:
                self._keys[layout] = new_key(self.comm)
            op = make_op(DTYPES[dtype], key=self._keys[layout], **how)
            begun.append((begin(self.comm, _c.lib.dblp_allreduce, flat, op), flat, same))
        for request, flat, same in begun:
            result = request.wait()
            self.asked += result.asked
            self.missing += result.missing
            _back(flat, same)

    def _spread(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy tensors of rank 0 to all ranks: in an allgather() by a tree, the root owns all elements."""
        op = make_op(Dtype.DBLP_INT32, algo="tree")
        flush(self.comm)
        for dtype, same in _by_dtype(tensors).items():
            data = _flat(same).view(torch.uint8)
            rest = torch.zeros(-data.numel() % Dtype.DBLP_INT32.itemsize, dtype=torch.uint8, device="cpu")
            whole = torch.cat([data, rest])
            begin(self.comm, _c.lib.dblp_allgather, whole.view(torch.int32), op).wait()
            _back(whole[:data.numel()].view(dtype), same)
