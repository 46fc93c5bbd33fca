# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Lanes: connections of their own for elements that matter more or less than others."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Sequence, Tuple, Union

from . import _c
from .enums import LaneFlags, Policy, to_enum
from .units import number, parse_budget

Part = Tuple[range, int]


class Lane(NamedTuple):
    """
    A lane: a connection of its own to each peer. The same on all ranks.

    budget: share of contributions that may be lost, as in Op. None: that of the operation. If
        that of the operation is 0, nothing is lost.
    policy: close policy, as in Op. None: that of the operation.
    priority: SO_PRIORITY of the sockets; above 6 it needs CAP_NET_ADMIN.
    tos: TOS byte of the data, 0 ... 252, a multiple of 4.
    ect: False: data is not ECT(0), so queues that mark drop it instead ("dblp" only).
    large: share of the elements of each message that uses this lane: "20%", "200000ppm" or ppm.
        These are the blocks with the largest elements; the others use lane `rest`. 0: all
        elements use this lane.
    rest: number of a lane without `large`.
    after: in each round of a plan, messages to a rank wait until those to it by lane 0 are closed.
        Not for lane 0. If the network sends lane 0 first, it would drop them meanwhile.
    """

    budget: Union[str, int, None] = None
    policy: Union[Policy, int, str, None] = None
    priority: int = 0
    tos: int = 0
    ect: bool = True
    large: Union[str, int] = 0
    rest: int = 0
    after: bool = False


class LaneResult(NamedTuple):
    """Result of a lane: the fields of Result, for the data of this lane."""

    asked: int
    missing: int
    #: Nanoseconds until this lane had nothing left to do; 0: it had no data
    ns: int


def set_loss(c: Any, how: Any, budget: int, policy: int) -> None:
    """Set budget and policy of a structure, and these flags of it, to those of `how` that are not None."""
    if how.budget is not None:
        c.flags |= budget
        c.budget = parse_budget(how.budget)
    if how.policy is not None:
        c.flags |= policy
        c.policy = to_enum(Policy, how.policy)


def _lane(lane: Lane) -> Any:
    c = _c.Lane(priority=lane.priority, tos=lane.tos, large=parse_budget(lane.large),
                rest=lane.rest)
    set_loss(c, lane, LaneFlags.DBLP_LANE_BUDGET, LaneFlags.DBLP_LANE_POLICY)
    if not lane.ect:
        c.flags |= LaneFlags.DBLP_LANE_NOT_ECT
    if lane.after:
        c.flags |= LaneFlags.DBLP_LANE_AFTER
    return c


def lane_array(lanes: Sequence[Lane]) -> Any:
    """Array of struct dblp_lane. Raises TypeError or ValueError for invalid lanes."""
    for i, lane in enumerate(lanes):
        for name in "priority", "tos", "rest":
            number(f"{name} of lane {i}", getattr(lane, name))
        if lane.after and not i:
            raise ValueError("lane 0 cannot wait for itself")
        if lane.tos > 0xfc or lane.tos % 4:
            raise ValueError(f"tos of lane {i} is {lane.tos}, not a multiple of 4 up to 252")
        if parse_budget(lane.large) and not (lane.rest < len(lanes) and
                                             not parse_budget(lanes[lane.rest].large)):
            raise ValueError(f"rest of lane {i} is {lane.rest}, not a lane without large")
    return (_c.Lane * len(lanes))(*map(_lane, lanes))


def part_array(parts: Iterable[Part]) -> Any:
    """Array of struct dblp_lane_part. Raises ValueError for gaps and overlaps."""
    found = []
    at = 0
    for elements, lane in parts:
        if elements.step != 1 or not elements:
            raise ValueError(f"{elements} is empty or has a step")
        if elements.start > at:
            raise ValueError(f"elements {at} ... {elements.start - 1} are in no part")
        if elements.start < at:
            raise ValueError(f"element {elements.start} is in two parts")
        at = elements.stop
        found.append(_c.LanePart(first=elements.start, end=at, lane=number("lane", lane)))
    return (_c.LanePart * len(found))(*found)


def lane_results(result: Any, n: int) -> Tuple[LaneResult, ...]:
    return tuple(LaneResult(r.asked, r.missing, r.ns) for r in result.lane[:n])
