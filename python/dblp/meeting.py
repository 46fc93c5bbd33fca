# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
How the ranks of a process group open a communicator by a store of torch.distributed.

Before that they compare what must be equal, so that all of them raise the same error at once,
instead of waiting for each other.
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
import time
from typing import Any, Callable, Dict, Optional

import torch.distributed

from .comm import KV, Comm

__all__ = ["Meeting", "MeetingError", "next_store", "store_kv"]

#: PyTorch 1.13, by which types are checked, lacks some names
dist: Any = torch.distributed

#: Seconds between two looks into the store
_PAUSE = 0.005
_PAUSE_MOST = 0.25


def store_kv(store: Any) -> KV:
    """
    A store of torch.distributed as callables for a communicator. get() of the store waits up to
    half an hour for a value, and after a wait() that timed out, TCPStore of PyTorch 1.13 confuses
    replies. So a counter tells whether there is a value.
    """
    def put(key: str, value: bytes) -> None:
        store.set(key, value)
        store.add(key + "/there", 1)

    def get(key: str) -> Optional[bytes]:
        return bytes(store.get(key)) if store.add(key + "/there", 0) else None

    return put, get


def next_store(store: Any, rank: int) -> Any:
    """
    The part of a store by which `rank` meets the other ranks of its group. Earlier groups with the same
    name have used other parts. Processes may have belonged to different ones of these groups, so only
    the store can tell which part is next: the first one that is open to the rank.
    """
    for number in itertools.count():
        part = dist.PrefixStore(f"dblp/{number}", store)
        if _is_open(part, rank):
            return part


def _is_open(part: Any, rank: int) -> bool:
    """
    May a rank enter a part of a store? A rank whose process ended before it left, and that starts again, enters the same
    part, also if all have agreed since.
    """
    if part.add(f"left/{rank}", 0):
        return False
    return not part.add("closed", 0) or bool(part.check([f"agreed/{rank}"]) and not part.check(["why"]))


class MeetingError(ConnectionError):
    """Ranks cannot form a group; all of them raise this with the same text."""


class Meeting:
    """
    Ranks that meet in a store, which no earlier group has used, see next_store(). A process may end
    anywhere in agree(); that of the same rank after it does the same again.

    store: has set(), get(), add(), check() and compare_set(), as stores of torch.distributed do.
    limit: seconds until all ranks must be there.
    """

    def __init__(self, store: Any, rank: int, size: int, limit: float) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._until = time.monotonic() + limit
        self._limit = limit

    def kv(self) -> KV:
        """The store as callables for a communicator, which also end when a rank has failed."""
        put, there = store_kv(self._store)

        def get(key: str) -> Optional[bytes]:
            self._check()
            return there(key)

        return put, get

    def fail(self, why: str) -> None:
        """Let all ranks fail; the first reason counts."""
        self._store.compare_set("why", "", why)

    def _check(self) -> None:
        if self._store.check(["why"]):
            raise MeetingError(bytes(self._store.get("why")).decode())

    def _wait(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        pause = _PAUSE
        while not condition():
            self._check()
            if time.monotonic() > self._until:
                # A rank that is missing must not enter after the others have left
                self._store.add("closed", 1)
                self.fail(f"{what()} within {self._limit:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, _PAUSE_MOST)

    def agree(self, facts: Dict[str, Any]) -> None:
        """Wait for all ranks. Raises MeetingError on all of them if their facts differ."""
        try:
            if self._compare(facts):
                self._store.add("agreed", 1)
                self._store.set(f"agreed/{self._rank}", "1")
            self._wait(self._all_agreed, lambda: f"{min(self._agreed(), self._size - 1)} of {self._size} ranks have created "
                       "the process group")
            self._store.add("closed", 1)
        finally:
            self._store.add(f"left/{self._rank}", 1)

    def _agreed(self) -> int:
        return int(self._store.add("agreed", 0))

    def _all_agreed(self) -> bool:
        """Asks for the number first, because its reply is short; a rank that has agreed again counts twice"""
        return self._agreed() >= self._size and bool(self._store.check([f"agreed/{rank}" for rank in range(self._size)]))

    def _compare(self, facts: Dict[str, Any]) -> bool:
        """Are these the facts of the first rank? Otherwise all ranks fail."""
        mine = json.dumps([self._rank, facts], sort_keys=True)
        first, other = json.loads(bytes(self._store.compare_set("facts", "", mine)).decode())
        for name, value in json.loads(mine)[1].items():
            if other.get(name) != value:
                self.fail(f"ranks of a process group differ: rank {self._rank} has {name} {value}, "
                          f"and rank {first} has {other.get(name)}")
                return False
        return True

    def open(self, **how: Any) -> Comm:
        """Open the communicator. If a rank cannot, all raise MeetingError with its reason."""
        outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def run() -> None:
            try:
                outcome.put(Comm(self._rank, self._size, self.kv(), **how))
            except Exception as e:  # pylint: disable=broad-except
                outcome.put(e)

        # Rank 0 waits for the others in the library, where it does not look into the store
        threading.Thread(target=run, name="dblp-open", daemon=True).start()
        self._wait(lambda: not outcome.empty(), lambda: "not all ranks have joined")
        comm = outcome.get()
        if isinstance(comm, Comm):
            return comm
        if not isinstance(comm, MeetingError):
            self.fail(f"rank {self._rank} cannot open a communicator: {comm}")
        self._check()
        raise comm
