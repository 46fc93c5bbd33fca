# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
How a process group of the backend "dblp" begins operations on tensors of any device, in the order of
the program: those of the CPU at once, and those of other devices by a Stager.
"""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import Any, Dict, Hashable, Iterator, List, Optional, Sequence

import torch

from .accelerator import device_of, part_of
from .comm import Comm
from .staging import Device, Stager
from .tensors import aborter
from .work import Begun

__all__ = ["Starter", "device_among", "tensors_in"]

#: Alignment of tensors in pinned buffers: that of the largest type, and of the CPU's vectors
_ALIGN = 64


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of nested lists"""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(one)


def device_among(tensors: Sequence[torch.Tensor]) -> Optional[Device]:
    """
    The device that tensors are on, or None for the CPU. Raises TypeError for a device that cannot
    copy to pinned memory, and for two devices.
    """
    devices = {found.key: found for found in map(device_of, dict.fromkeys(t.device for t in tensors)) if found is not None}
    if len(devices) > 1:
        raise TypeError(f"the tensors of an operation are on several devices: {', '.join(map(str, devices))}")
    return next(iter(devices.values()), None)


def _replaced(value: Any, views: Dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return views.get(id(value), value)
    return [_replaced(one, views) for one in value] if isinstance(value, (list, tuple)) else value


def _begin(calls: Sequence[partial[Begun]]) -> Begun:
    return calls[0]() if len(calls) == 1 else Begun.all([call() for call in calls])


class Starter:
    """
    Begins operations. `order` names operations that begin in the order of start(); each has a Stager
    of its own for tensors of devices. Collective operations have one. Messages have one for each
    other rank and direction, because a message that is not received holds a buffer of its Stager.

    comms: communicators to abort after a failure.
    """

    def __init__(self, comms: "weakref.WeakSet[Comm]") -> None:
        self._abort = aborter(comms)
        self._stagers: Dict[Hashable, Stager] = {}
        self._lock = threading.Lock()

    def start(self, calls: Sequence[partial[Begun]], inputs: Any, outputs: Any, order: Hashable) -> Begun:
        """
        Begin one operation of several calls. Tensors of devices in their arguments are replaced by
        memory of the host: `inputs`, whose values are needed, are copied there, and `outputs` are
        copied back. Both are nested lists.
        """
        ins, outs = list(tensors_in(inputs)), list(tensors_in(outputs))
        device = device_among([*ins, *outs])
        if device is not None:
            return self._stage(device, calls, ins, outs, order)
        found = self._stagers.get(order)
        if found is not None:
            found.flush()
        return _begin(calls)

    def _stager(self, order: Hashable) -> Stager:
        with self._lock:
            if order not in self._stagers:
                self._stagers[order] = Stager(self._abort)
            return self._stagers[order]

    def _stage(self, device: Device, calls: Sequence[partial[Begun]], ins: List[torch.Tensor], outs: List[torch.Tensor],
               order: Hashable) -> Begun:
        places, size = {}, 0
        for t in (*ins, *outs):
            if device_of(t.device) is not None and id(t) not in places:
                places[id(t)] = size, t
                size += -(-t.numel() * t.element_size() // _ALIGN) * _ALIGN

        def begin(host: torch.Tensor) -> Begun:
            views = {key: part_of(host, offset, t) for key, (offset, t) in places.items()}
            return _begin([partial(call.func, *_replaced(call.args, views)) for call in calls])

        def placed(tensors: List[torch.Tensor]) -> List[Any]:
            return list({id(t): places[id(t)] for t in tensors if id(t) in places}.values())

        job = self._stager(order).submit(device, max(size, _ALIGN), begin, placed(ins), placed(outs))
        return Begun([job], jobs=[job])

    def close(self) -> None:
        """Free pinned memory. Operations that have not ended fail."""
        with self._lock:
            stagers = list(self._stagers.values())
        for stager in stagers:
            stager.close()
