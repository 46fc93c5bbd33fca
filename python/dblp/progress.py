# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Progress reports of ranks to dblp-run, and the line that it prints."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import Any, Callable

from .units import format_budget

#: Minimum seconds between two progress reports of rank 0
EVERY = 1.0
#: Minimum seconds between two progress lines that are not on a terminal, unless budgets change
QUIET = 30.0
#: Maximum seconds that a rank blocks to report the communicator that it has opened
PATIENCE = 5.0

_BUDGET = ", budget "


def tell(kind: str, text: str, patience: float = PATIENCE) -> None:
    """
    Send a report to dblp-run, if this process is one of its ranks. Errors are ignored, because
    only printed lines depend on reports.

    kind: "opened" or "progress". patience: maximum seconds to block.
    """
    path, rank = os.environ.get("DBLP_RUN_SOCKET"), os.environ.get("RANK")
    if not path or not rank:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.settimeout(patience)
        try:
            s.sendto(f"{rank} {kind} {text}".encode(), path)
        except OSError:
            pass


class Tally:
    """Sums of the results of operations, which rank 0 reports to dblp-run."""

    def __init__(self) -> None:
        # Signal handlers may carry out operations, too
        self._lock = threading.RLock()
        self._total = 0
        self._restart()

    def _restart(self) -> None:
        self._since = time.monotonic()
        self._count = self._ns = self._asked = self._missing = self._most = 0
        self._least = -1

    def add(self, result: Any) -> None:
        """Add the result of an operation that has succeeded."""
        if os.environ.get("RANK") != "0":
            return
        with self._lock:
            self._total += 1
            self._count += 1
            self._ns += result.ns
            self._asked += result.asked
            self._missing += result.missing
            if result.asked:
                self._least = result.budget_least if self._least < 0 else min(self._least, result.budget_least)
                self._most = max(self._most, result.budget_most)
            if time.monotonic() >= self._since + EVERY:
                self.tell()

    def tell(self) -> None:
        """Report the operations since the last report."""
        with self._lock:
            if self._count:
                tell("progress", self._text(), 0)
                self._restart()

    def _text(self) -> str:
        least, most = format_budget(max(self._least, 0)), format_budget(self._most)
        return (f"operation {self._total}, the last {self._count} took {self._ns / 1e6 / self._count:.1f} ms each, "
                f"{100 * self._missing / max(self._asked, 1):.2f}% missing{_BUDGET}"
                f"{least}{'' if least == most else ' ... ' + most}")


class Line:
    """
    The latest progress line. On a terminal it is overwritten; otherwise it is printed when
    budgets have changed, every QUIET seconds, and at the end.

    write: writes a str to standard error.
    everything: print each line, for a dblp-run on another host that reads it.
    """

    #: Start of the line
    BEGIN = "dblp-run: progress: "

    def __init__(self, write: Callable[[str], Any], everything: bool = False) -> None:
        self._write = write
        self.everything = everything
        self._there = False
        self._unsaid = self._budget = ""
        self._due = 0.0

    def show(self, text: str) -> None:
        """Replace the line."""
        self._unsaid = text
        budget = text.rpartition(_BUDGET)[2]
        if sys.stderr.isatty():
            self.clear()
            # A serial line has 0 columns
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            self._write((self.BEGIN + text)[:columns - 1])
            self._there = True
        elif self.everything or budget != self._budget or time.monotonic() >= self._due:
            self._budget, self._due = budget, time.monotonic() + QUIET
            self.end()

    def clear(self) -> None:
        """Erase the line from the terminal, before other output."""
        if self._there:
            self._write("\r\x1b[K")
            self._there = False

    def end(self) -> None:
        """Print the latest line, unless it is printed already."""
        self.clear()
        if self._unsaid:
            self._write(self.BEGIN + self._unsaid + "\n")
            self._unsaid = ""
