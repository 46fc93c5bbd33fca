# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Operations of a communicator on tensors of PyTorch, and keys of vectors."""

import contextlib
import itertools
import weakref
from typing import Any, Callable

import torch

from . import _c
from .comm import Comm, Request
from .enums import Dtype
from .staging import Stager

DTYPES = {torch.float32: Dtype.DBLP_FLOAT32, torch.float64: Dtype.DBLP_FLOAT64,
          torch.float16: Dtype.DBLP_FLOAT16, torch.bfloat16: Dtype.DBLP_BFLOAT16}
#: Counters of keys by communicator, from 2^32 on: below are keys of programs
_numbers: "weakref.WeakKeyDictionary[Comm, Any]" = weakref.WeakKeyDictionary()
_stagers: "weakref.WeakKeyDictionary[Comm, Stager]" = weakref.WeakKeyDictionary()


def new_key(comm: Comm) -> int:
    """A key that no other vector of the communicator has."""
    return int(next(_numbers.setdefault(comm, itertools.count(1 << 32))))


def begin(comm: Comm, function: Any, tensor: torch.Tensor, op: _c.Op) -> Request:
    """Begin an operation on a tensor in memory of the CPU, which the communicator keeps until its end."""
    # pylint: disable=protected-access
    return comm._begin(function, tensor.data_ptr(), tensor.numel(), op, tensor)


def aborter(comms: "weakref.WeakSet[Comm]") -> Callable[[], None]:
    """A function that aborts communicators, some of which may be closed. It does not keep them."""
    def abort() -> None:
        for comm in list(comms):
            with contextlib.suppress(OSError, ValueError):
                comm.abort()
    return abort


def stager(comm: Comm) -> Stager:
    """The Stager of a communicator, which is closed when the communicator is freed."""
    found = _stagers.get(comm)
    if found is None:
        found = _stagers[comm] = Stager(aborter(weakref.WeakSet([comm])))
    return found


def close(comm: Comm) -> None:
    """Close a communicator, and free its pinned memory."""
    found = _stagers.pop(comm, None)
    if found is not None:
        found.close()
    comm.close()


def flush(comm: Comm, ended: bool = False) -> None:
    """
    Wait until all staged operations have begun, before one that is not staged: all ranks begin in one order. With `ended`,
    wait until they have ended.
    """
    found = _stagers.get(comm)
    if found is not None:
        found.flush(ended=ended)
