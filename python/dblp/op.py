# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Attributes of an operation: struct dblp_op of dblp_comm(3) as an object."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Dict, Sequence, Union

from . import _c
from .enums import Algo, Dtype, OpFlags, PlanFlags, Policy, Rule, to_enum
from .lanes import Part, part_array, set_loss
from .units import PPM, number, parse_budget


@dataclasses.dataclass(frozen=True)
class Op:
    """
    Attributes of an operation, the same on all ranks except for limit_ms. An Op is immutable,
    so one object serves any number of operations; dataclasses.replace() makes a changed copy.

    budget: share of all contributions that may be lost: "2%", "8000ppm" or an int (ppm).
        None: that of the phase or of the job; without both, nothing is lost. An operator may
        change the budget of sockets, unless this is 0.
    rule: how to complete sums that lack contributions. "bubble": they count as zero. "rescale":
        the sum is divided by the share of contributions that arrived. "feedback": the sender
        adds them to its next vector with the same key.
    algo: "transpose", "ring", "ps", "tree", "bcube" or "average", see dblp_plan(3). None:
        "tree" for reduce(), which takes only "tree" and "ps", else "transpose".
    average: divide the sum by the number of contributions.
    policy: when messages are closed: "full", "eager" or "early", see dblp(7). None: that of the
        phase.
    phase: number of a phase of the job. None: the present one.
    key: number of a vector that is summed repeatedly, with the same type and number of
        elements, for "feedback" and carry: 0 ... 2^64 - 1.
    carry: save unused budget for later operations with this key.
    wait_ms: milliseconds for each round, after which the operation continues without lossy
        contributions of which no data has arrived; 0: no limit.
    limit_ms: milliseconds that the operation may take, after which the communicator fails
        (RankError, ETIMEDOUT); 0: operation_ms of Comm().
    sparse: do not send blocks of zeroes, in either direction; for vectors that are mostly zero.
    block: with sparse: elements of a block, a power of two up to 2^20; 0: the size that takes
        the fewest bytes.
    prune: with sparse and "feedback": share of the squared norm of each message ("1%",
        "10000ppm" or ppm) that is not sent: blocks of the least norm. The next vector gets them.
    keep: sums may be lost too, on their way from their owner. The vector keeps its old value for
        a lost sum, so ranks may differ. For parameters, with "ps", "transpose", "average" and
        allgather().
    repair: with keep: what was lost is not lost again in the next operation with the same key, so
        that no value is older than one operation. For allgather() and broadcast() with "ps" or
        "transpose".
    energy: measure squared norms, energy_sent, energy_lost and energy_mean of the Result; for
        allreduce() only.
    root: with "ps" and "tree": rank that gets the sum first.
    server: with "ps" and "tree": the root contributes nothing.
    fanin: with "tree": children of a rank; 0: 2.
    radix: with "bcube" and "average": radices of the digits of rank numbers; their product is
        the number of ranks.
    turn: with "average": number of earlier averages.
    parts: lanes of elements: pairs of a range and the number of a lane, in order and without
        gaps; empty: lane 0 for all.

    Raises ValueError or TypeError for invalid values.
    """

    budget: Union[str, int, None] = None
    rule: Union[Rule, int, str] = Rule.DBLP_BUBBLE
    algo: Union[Algo, int, str, None] = None
    average: bool = False
    policy: Union[Policy, int, str, None] = None
    phase: Union[int, None] = None
    key: int = 0
    carry: bool = False
    wait_ms: int = 0
    limit_ms: int = 0
    sparse: bool = False
    block: int = 0
    prune: Union[str, int] = 0
    keep: bool = False
    repair: bool = False
    energy: bool = False
    root: int = 0
    server: bool = False
    fanin: int = 0
    radix: Sequence[int] = ()
    turn: int = 0
    parts: Sequence[Part] = ()

    def __post_init__(self) -> None:
        for name in "radix", "parts":
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in "average", "carry", "sparse", "keep", "repair", "energy", "server":
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, not {getattr(self, name)!r}")
        self._check(self.to_c(Dtype.DBLP_INT32))

    def _check(self, op: _c.Op) -> None:
        """Raise ValueError for fields that contradict each other on any communicator."""
        if self.carry and self.budget is None:
            raise ValueError("carry needs a budget")
        for name in "prune", "block":
            if getattr(op, name) and not self.sparse:
                raise ValueError(f"{name} needs sparse")
        if op.prune and op.rule != Rule.DBLP_FEEDBACK:
            raise ValueError("prune needs the rule 'feedback'")
        if op.prune >= PPM:
            raise ValueError("prune must be less than 100%")
        if op.block & (op.block - 1) or op.block > _c.BLOCK_MAX:
            raise ValueError(f"block {op.block} is not a power of two up to {_c.BLOCK_MAX}")

    def to_c(self, dtype: Dtype, algo: Algo = Algo.DBLP_TRANSPOSE) -> _c.Op:
        """struct dblp_op for elements of `dtype`; `algo` is the default algorithm."""
        op = _c.Op(size=ctypes.sizeof(_c.Op), dtype=dtype, key=number("key", self.key, 0, (1 << 64) - 1),
                   rule=to_enum(Rule, self.rule), prune=parse_budget(self.prune),
                   algo=algo if self.algo is None else to_enum(Algo, self.algo),
                   plan_flags=PlanFlags.DBLP_PLAN_SERVER if self.server else 0)
        self._set_flags(op)
        for name in "block", "wait_ms", "limit_ms", "root", "fanin", "turn":
            setattr(op, name, number(name, getattr(self, name)))
        if len(self.radix) > _c.LEVELS_MAX:
            raise ValueError(f"radix has {len(self.radix)} entries, more than {_c.LEVELS_MAX}")
        op.levels = len(self.radix)
        for i, value in enumerate(self.radix):
            op.radix[i] = number("radix", value)
        if self.parts:
            op.part = part_array(self.parts)
            op.parts = len(self.parts)
        return op

    def chosen(self) -> Dict[str, Any]:
        """Fields that differ from their defaults, by name."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if value != getattr(Op, name)}

    def _set_flags(self, op: Any) -> None:
        set_loss(op, self, OpFlags.DBLP_OP_BUDGET, OpFlags.DBLP_OP_POLICY)
        if self.phase is not None:
            op.flags |= OpFlags.DBLP_OP_PHASE
            op.phase = number("phase", self.phase, 0, _c.PHASES - 1)
        for given, flag in ((self.average, OpFlags.DBLP_OP_AVERAGE), (self.carry, OpFlags.DBLP_OP_CARRY),
                            (self.sparse, OpFlags.DBLP_OP_SPARSE), (self.keep, OpFlags.DBLP_OP_KEEP),
                            (self.repair, OpFlags.DBLP_OP_REPAIR),
                            (self.energy, OpFlags.DBLP_OP_ENERGY)):
            op.flags |= flag if given else 0


def make_op(dtype: Dtype, **how: Any) -> _c.Op:
    """struct dblp_op for elements of `dtype`; keywords are fields of Op."""
    return Op(**how).to_c(dtype)
