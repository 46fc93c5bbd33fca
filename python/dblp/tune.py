# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A loss budget that is found: the controller dblp_tune(3), and the numbers that ranks exchange for it."""

from __future__ import annotations

import array
import ctypes
from typing import Any, List, Optional, Tuple, Union

from . import _c
from .comm import Comm
from .enums import Rule, to_enum
from .op import Op
from .units import parse_budget

__all__ = ["Tuner", "parse_auto"]

_AUTO = "auto"
#: DBLP_TUNE_CAP, ppm
CAP = 400000


def parse_auto(budget: Any) -> Optional[int]:
    """
    The cap, in ppm, of "auto" or "auto:40%"; None for other budgets, which parse_budget() takes.

    Raises ValueError for an invalid cap.
    """
    if not isinstance(budget, str) or budget.partition(":")[0] != _AUTO:
        return None
    return CAP if budget == _AUTO else parse_budget(budget[len(_AUTO) + 1:])


def check_budget(budget: Union[str, int]) -> None:
    """Raise ValueError or TypeError unless this is a budget, or one that is found."""
    if parse_auto(budget) is None:
        parse_budget(budget)


class Tuner:
    """
    Finds the budget of each round. A round is a number of operations of rule `rule` with energy
    of Op set; all ranks call the same methods at the same places among their operations.

    cap: ppm: the most that a budget may be.
    """

    def __init__(self, rule: Union[Rule, int, str], cap: int) -> None:
        self._rule, self._cap = to_enum(Rule, rule), cap
        self._tune = _c.Tune()
        self._round: List[Any] = []
        self._bytes = 0
        #: The exchange of the numbers of an earlier round: request, numbers, bytes
        self._exchange: Optional[Tuple[Any, Any, int]] = None
        #: Budget of the present round, ppm
        self.budget = 0

    @property
    def agreement(self) -> float:
        """How much the gradients of ranks agree, 0 ... 1"""
        return float(self._tune.agreement)

    def add(self, request: Any, size: int) -> None:
        """Add an operation that has begun, with a vector of `size` bytes."""
        self._round.append(request)
        self._bytes += size

    def next_round(self, comm: Comm) -> int:
        """
        Wait for the operations of the last round, and return the budget of the next one. The numbers
        of the last round are exchanged during the next one, so they count for the one after it.
        """
        results = [request.wait() for request in self._round]
        if self._exchange:
            self._learn(comm, *self._exchange)
        self._exchange = None
        if results:
            numbers = array.array("d", [sum(getattr(result, name) for result in results) for name in (
                "energy_sent", "energy_lost", "missing", "energy_mean")])
            self._exchange = comm.allreduce(numbers, op=Op(budget=0)), numbers, self._bytes
        self._round, self._bytes = [], 0
        self.budget = int(_c.lib.dblp_tune_budget(ctypes.byref(self._tune), self._cap))
        return self.budget

    def _learn(self, comm: Comm, request: Any, numbers: Any, size: int) -> None:
        # Sums are the same bits on all ranks, and so are the budgets
        request.wait()
        sent, lost, missing, mean = numbers
        energy = _c.Energy(contributions=comm.nranks, rule=self._rule, sent=sent, lost=lost, missing=int(missing),
                           mean=mean / comm.nranks, bytes=comm.nranks * size)
        _c.lib.dblp_tune_round(ctypes.byref(self._tune), ctypes.byref(energy))

    def agree(self, comm: Comm) -> None:
        """Take the controller of rank 0. Ranks may have loaded other ones, or none."""
        state = bytearray(self.get())
        comm.broadcast(state).wait()
        self.set(bytes(state))

    def get(self) -> bytes:
        """The controller, for a checkpoint."""
        return bytes(self._tune)

    def set(self, state: bytes) -> None:
        """Restore a value of get(). Raises ValueError if it has another size."""
        if len(state) != ctypes.sizeof(_c.Tune):
            raise ValueError("the controller of the budget is of another version")
        self._tune = _c.Tune.from_buffer_copy(state)
