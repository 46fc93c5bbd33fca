# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Processes that begin and end together, and what they print: for dblp.run."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from .progress import Line

#: Seconds between SIGTERM and SIGKILL
GRACE = 5.0
#: A line that is longer is printed in pieces
LINE = 1 << 16
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_line = Line()


def say(text: str) -> None:
    """A line of dblp-run's own."""
    _line.clear()
    sys.stderr.write(f"dblp-run: {text}\n")
    sys.stderr.flush()


def _die_with(parent: int) -> Callable[[], None]:
    def in_child() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    return in_child


class _Lines:
    """What comes out of a pipe, in lines with a prefix."""

    def __init__(self, pipe: Any, prefix: bytes, to: Any) -> None:
        self.pipe, self.prefix, self.to = pipe, prefix, to
        self.rest = b""
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> bool:
        """Print all that is there; is there nothing to come?"""
        while True:
            try:
                data = os.read(self.pipe.fileno(), LINE)
            except BlockingIOError:
                return False
            if not data:
                return True
            *lines, self.rest = (self.rest + data).split(b"\n")
            self._print(lines)
            if len(self.rest) >= LINE:
                self.end()

    def end(self) -> None:
        if self.rest:
            self._print([self.rest])
        self.rest = b""

    def _print(self, lines: Sequence[bytes]) -> None:
        begin = Line.BEGIN.encode()
        for line in lines:
            if not self.prefix and line.startswith(begin):
                _line.show(line[len(begin):].decode(errors="replace"))
                continue
            _line.clear()
            # Of a line that was written over, what could be seen last
            text = line.rstrip(b"\r").rsplit(b"\r", 1)[-1]
            self.to.write(self.prefix + text + b"\n")
        self.to.flush()


class _Process:
    def __init__(self, name: str, rank: Optional[int], popen: Any, prefix: bytes) -> None:
        self.name, self.rank, self.popen = name, rank, popen
        self.pidfd = os.pidfd_open(popen.pid)
        self.lines = [_Lines(popen.stdout, prefix, sys.stdout.buffer),
                      _Lines(popen.stderr, prefix, sys.stderr.buffer)]

    def signal(self, number: int) -> None:
        """To it and to what it has started; not after it was reaped."""
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass

    def reap(self) -> int:
        """Its exit status as a shell has it; if it failed, what it has started ends."""
        info = os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOWAIT)
        if info is not None and (info.si_code != os.CLD_EXITED or info.si_status):
            self.signal(signal.SIGKILL)
        status = self.popen.wait()
        os.close(self.pidfd)
        return int(status) if status >= 0 else 128 - int(status)


def _how(status: int) -> str:
    if status > 128:
        try:
            return f"was killed by {signal.Signals(status - 128).name}"
        except ValueError:
            pass
    return f"has failed with exit status {status}"


class Ranks:
    """
    Processes, of which all end when one fails.

    require: a rank that ends well without having opened a communicator has failed.
    watch: a file descriptor whose end ends all, or None.

    The environment of ranks has to have `environment`: by that they tell which
    communicators they open, see progress.tell().
    """

    def __init__(self, require: bool = False, watch: Optional[int] = None) -> None:
        self._require = require
        self._select = selectors.DefaultSelector()
        self._alive: List[_Process] = []
        self._used: Set[int] = set()
        self._status = 0
        self._kill_at: Optional[float] = None
        self._folder = tempfile.TemporaryDirectory(prefix="dblp-run-")
        path = os.path.join(self._folder.name, "socket")
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._told.bind(path)
        self.environment: Dict[str, str] = {"DBLP_RUN_SOCKET": path}
        self._select.register(self._told, selectors.EVENT_READ, self._listen)
        if watch is not None:
            _line.everything = True
            self._watch = watch
            self._select.register(watch, selectors.EVENT_READ, self._watched)
        self._signals, wake = socket.socketpair()
        for s in self._signals, wake:
            s.setblocking(False)
        self._wake = wake
        self._select.register(self._signals, selectors.EVENT_READ, self._signalled)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str],
              rank: Optional[int] = None, stdin: int = subprocess.DEVNULL) -> None:
        """
        Start a process, called `name` in messages; its lines have the number of its
        rank before them, if that is given. Raises OSError.
        """
        popen = subprocess.Popen(command, env=dict(environment), stdin=stdin, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True,
                                 preexec_fn=_die_with(os.getpid()))
        process = _Process(name, rank, popen, b"" if rank is None else b"[%d] " % rank)
        self._alive.append(process)
        self._select.register(process.pidfd, selectors.EVENT_READ, lambda: self._ended(process))
        for lines in process.lines:
            self._select.register(lines.pipe, selectors.EVENT_READ,
                                  lambda lines=lines: self._read(lines))

    def fail(self, status: int, why: str) -> None:
        """End all with this exit status, unless another reason came before."""
        if not self._status:
            self._status = status
            say(why + (": the others are ended" if self._alive else ""))
        if self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE
            self._signal(signal.SIGTERM)

    def run(self) -> int:
        """Wait for the end of all; the exit status."""
        try:
            while self._alive:
                left = None if self._kill_at is None else self._kill_at - time.monotonic()
                if left is not None and left <= 0:
                    self._signal(signal.SIGKILL)
                    left = None
                # What they say first, then their end
                ready = self._select.select(left)
                for key, _ in sorted(ready, key=lambda r: self._is_end(r[0])):
                    key.data()
        except BrokenPipeError:
            self.fail(1, "nobody reads what is printed")
            sys.stdout = None  # type: ignore[assignment]
        finally:
            _line.end()
            self._signal(signal.SIGKILL)
            self._told.close()
            self._folder.cleanup()
        return self._status

    def _is_end(self, key: Any) -> bool:
        return any(key.fd == process.pidfd for process in self._alive)

    def _signal(self, number: int) -> None:
        for process in self._alive:
            process.signal(number)

    def _read(self, lines: _Lines) -> None:
        if lines.read():
            lines.end()
            self._select.unregister(lines.pipe)
            lines.pipe.close()

    def _listen(self) -> None:
        while True:
            try:
                rank, kind, text = self._told.recv(4096).decode(errors="replace").split(" ", 2)
            except BlockingIOError:
                return
            if kind == "progress":
                _line.show(text)
            elif rank == "0" and not self._used & {0}:
                say(text)
            self._used.add(int(rank))

    def _watched(self) -> None:
        if not os.read(self._watch, 4096):
            self._select.unregister(self._watch)
            self.fail(128 + signal.SIGHUP, "who started this has ended")

    def _signalled(self) -> None:
        for number in self._signals.recv(64):
            if self._kill_at is not None:
                self._signal(signal.SIGKILL)
            self.fail(128 + number, f"{signal.Signals(number).name}")

    def _ended(self, process: _Process) -> None:
        self._select.unregister(process.pidfd)
        self._alive.remove(process)
        status = process.reap()
        for lines in process.lines:
            if not lines.pipe.closed:
                self._read(lines)
            if not lines.pipe.closed:
                # What it has started in the background may still hold it
                lines.end()
                self._select.unregister(lines.pipe)
                lines.pipe.close()
        self._listen()
        if status:
            self.fail(status, f"{process.name} {_how(status)}")
        elif self._require and process.rank is not None and process.rank not in self._used:
            self.fail(1, f"{process.name} has ended without having used dblp, which is required")
