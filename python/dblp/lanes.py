# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Lanes: elements that matter more than others go by connections of their own."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Sequence, Tuple, Union

from . import _c
from .enums import LaneFlags, Policy, to_enum
from .units import parse_budget

Part = Tuple[range, int]


class Lane(NamedTuple):
    """
    Connections of their own, one to each peer. Other ranks give the same.

    budget: share of contributions that may be lost, as Op has it, or None: that
        of operations; where that is 0 nothing is lost. policy: the same.
    priority: SO_PRIORITY of its sockets. tos: TOS byte of its data, a multiple of 4.
    ect: False: queues that mark congestion drop its data instead ("dblp" only).
    large: only this share of the elements of each message goes by this lane, those that are
        largest, by blocks: "20%", "200000ppm" or ppm. The others go by lane `rest`.
    """

    budget: Union[str, int, None] = None
    policy: Union[Policy, int, str, None] = None
    priority: int = 0
    tos: int = 0
    ect: bool = True
    large: Union[str, int] = 0
    rest: int = 0


class LaneResult(NamedTuple):
    """What became of a lane: as Result has it, of what should have come by it."""

    asked: int
    missing: int
    #: Nanoseconds until nothing of it was left to be done; 0: it had nothing
    ns: int


def _lane(lane: Lane) -> Any:
    c = _c.Lane(priority=lane.priority, tos=lane.tos, large=parse_budget(lane.large),
                rest=lane.rest)
    if lane.budget is not None:
        c.flags |= LaneFlags.DBLP_LANE_BUDGET
        c.budget = parse_budget(lane.budget)
    if lane.policy is not None:
        c.flags |= LaneFlags.DBLP_LANE_POLICY
        c.policy = to_enum(Policy, lane.policy)
    if not lane.ect:
        c.flags |= LaneFlags.DBLP_LANE_NOT_ECT
    return c


def lane_array(lanes: Sequence[Lane]) -> Any:
    """struct dblp_lane of each"""
    for i, lane in enumerate(lanes):
        for name in "priority", "tos", "rest":
            value = getattr(lane, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} of lane {i} is an int, not {value!r}")
            if not 0 <= value <= 0xffffffff:
                raise ValueError(f"{name} of lane {i} is {value}")
        if lane.tos > 0xfc or lane.tos % 4:
            raise ValueError(f"tos of lane {i} is {lane.tos}, no multiple of 4 up to 252")
        if parse_budget(lane.large) and not (lane.rest < len(lanes) and
                                             not parse_budget(lanes[lane.rest].large)):
            raise ValueError(f"the rest of lane {i} has no lane of its own, which takes all of it")
    return (_c.Lane * len(lanes))(*map(_lane, lanes))


def part_array(parts: Iterable[Part]) -> Any:
    """struct dblp_lane_part of each"""
    found = []
    at = 0
    for elements, lane in parts:
        if elements.step != 1 or not elements:
            raise ValueError(f"{elements} are no elements side by side")
        if elements.start > at:
            raise ValueError(f"elements {at} ... {elements.start - 1} are in no part")
        if elements.start < at:
            raise ValueError(f"element {elements.start} is in two parts")
        if lane < 0:
            raise ValueError(f"there is no lane {lane}")
        at = elements.stop
        found.append(_c.LanePart(first=elements.start, end=at, lane=lane))
    return (_c.LanePart * len(found))(*found)


def lane_results(result: Any, n: int) -> Tuple[LaneResult, ...]:
    return tuple(LaneResult(r.asked, r.missing, r.ns) for r in result.lane[:n])
