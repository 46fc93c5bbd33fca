# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Enumerations of libdblp's headers, with the same names.

Functions also take the last part of a name in small letters: algo="ring" is Algo.DBLP_RING.
"""

from __future__ import annotations

import re
from enum import IntEnum, IntFlag
from typing import Type, TypeVar, Union


class Dtype(IntEnum):
    """Type of an element. Sums of 16-bit floats are rounded to nearest; sums of integers wrap."""

    DBLP_FLOAT32 = 0
    DBLP_FLOAT16 = 1
    DBLP_BFLOAT16 = 2
    DBLP_INT32 = 3
    DBLP_FLOAT64 = 4
    DBLP_INT64 = 5
    DBLP_UINT8 = 6

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(re.sub(r"\D", "", self.name)) // 8


class Rule(IntEnum):
    """How to complete sums that lack contributions, see Op."""

    DBLP_BUBBLE = 0
    DBLP_RESCALE = 1
    DBLP_FEEDBACK = 2


class Algo(IntEnum):
    """Algorithms, see dblp_plan(3)."""

    DBLP_PS = 0
    DBLP_TRANSPOSE = 1
    DBLP_RING = 2
    DBLP_TREE = 3
    DBLP_BCUBE = 4
    DBLP_AVERAGE = 5


class Policy(IntEnum):
    """When a message is closed, see dblp(7)."""

    DBLP_POLICY_FULL = 0
    DBLP_POLICY_EAGER = 1
    DBLP_POLICY_EARLY = 2


class OpFlags(IntFlag):
    """Flags of an operation."""

    DBLP_OP_BUDGET = 1 << 0
    DBLP_OP_POLICY = 1 << 1
    DBLP_OP_PHASE = 1 << 2
    DBLP_OP_AVERAGE = 1 << 3
    DBLP_OP_CARRY = 1 << 4
    DBLP_OP_SPARSE = 1 << 5
    DBLP_OP_KEEP = 1 << 6
    DBLP_OP_ENERGY = 1 << 7
    DBLP_OP_REPAIR = 1 << 8


class LaneFlags(IntFlag):
    """Flags of a lane."""

    DBLP_LANE_BUDGET = 1 << 0
    DBLP_LANE_POLICY = 1 << 1
    DBLP_LANE_NOT_ECT = 1 << 2
    DBLP_LANE_AFTER = 1 << 3


class PlanFlags(IntFlag):
    """Flags of a plan."""

    DBLP_PLAN_REDUCE = 1 << 0
    DBLP_PLAN_SPREAD = 1 << 1
    DBLP_PLAN_SERVER = 1 << 2


_E = TypeVar("_E", bound=IntEnum)


def to_enum(kind: Type[_E], value: Union[_E, int, str]) -> _E:
    """The member of `kind` with this value or name; ValueError if there is none."""
    names = {m.name.rsplit("_", 1)[1].lower(): m for m in kind}
    if isinstance(value, str):
        if value in kind.__members__:
            return kind[value]
        if value in names:
            return names[value]
    elif isinstance(value, int) and not isinstance(value, bool) and value in set(kind):
        return kind(value)
    raise ValueError(f"{kind.__name__.lower()} {value!r} is not one of {', '.join(names)}")
