# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What ranks print, on its way from their pipes to a file that may be slow: for dblp.ranks."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import queue
import select
import struct
import termios
import threading
from typing import Any, Callable, Optional, Sequence

#: Bytes that are read at once. A line that is longer is printed in pieces
CHUNK = 1 << 16


class Output:
    """
    A file that a thread of its own writes to, because a write to a terminal that is stopped
    or to a full pipe does not return.

    fd: its descriptor.
    failed: is called in the event loop with the first error of a write; no more is written.
    """

    #: Bytes that may wait to be written before readers of pipes wait
    ROOM = 1 << 16

    def __init__(self, fd: int, failed: Callable[[OSError], None]) -> None:
        self._fd, self._failed = fd, failed
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._pending = 0
        self._less = asyncio.Event()
        self._turn = asyncio.Lock()
        threading.Thread(target=self._write, name="dblp-run-output", daemon=True).start()

    @property
    def full(self) -> bool:
        """Are ROOM bytes or more waiting to be written?"""
        return self._pending >= self.ROOM

    def write(self, data: bytes) -> None:
        """Write this after all that is waiting."""
        self._pending += len(data)
        self._queue.put(data)

    async def room(self) -> None:
        """Wait until it is not full. Callers continue in the order of their calls."""
        async with self._turn:
            await self._until(self.ROOM - 1)

    async def drained(self) -> None:
        """Wait until all is written."""
        await self._until(0)

    async def _until(self, pending: int) -> None:
        while self._pending > pending:
            self._less.clear()
            await self._less.wait()

    def _written(self, n: int, error: Optional[OSError]) -> None:
        self._pending -= n
        self._less.set()
        if error is not None:
            self._failed(error)

    def _write(self) -> None:
        broken = False
        while True:
            data, error = self._queue.get(), None
            if not broken:
                error = self._write_all(data)
                broken = error is not None
            # The loop may have ended
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._written, len(data), error)

    def _write_all(self, data: bytes) -> Optional[OSError]:
        while data:
            try:
                data = data[os.write(self._fd, data):]
            except BlockingIOError:
                # Another process that has this file may have made it so
                select.select([], [self._fd], [])
            except OSError as e:
                return e
        return None


class Lines:
    """
    What comes out of the pipe of a process, in lines.

    pipe: its reading end, which is closed at its end.
    show: is called with some lines, without their ends.
    output: what show() writes to; while it is full, nothing is read.
    """

    def __init__(self, pipe: Any, show: Callable[[Sequence[bytes]], None], output: Output) -> None:
        self._pipe, self._show, self._output = pipe, show, output
        self._rest = b""
        self._left: Optional[int] = None
        self._wake = asyncio.Event()
        os.set_blocking(pipe.fileno(), False)

    def end(self) -> None:
        """The process has ended: show what is in the pipe now, and nothing that its children write later."""
        if self._left is None and not self._pipe.closed:
            left = fcntl.ioctl(self._pipe.fileno(), termios.FIONREAD, bytes(4))
            self._left = struct.unpack("i", left)[0]
            self._wake.set()

    async def copy(self) -> None:
        """Show all lines. Each turn of the event loop reads once, so that other pipes have their turn."""
        with self._pipe:
            while True:
                data = await self._read()
                if not data:
                    break
                *lines, self._rest = (self._rest + data).split(b"\n")
                self._show(lines)
                if len(self._rest) >= CHUNK:
                    self._show_rest()
                await self._output.room()
            self._show_rest()

    def _show_rest(self) -> None:
        if self._rest:
            self._show([self._rest])
        self._rest = b""

    async def _read(self) -> bytes:
        """Some bytes, or nothing at the end"""
        loop, fd = asyncio.get_running_loop(), self._pipe.fileno()
        while self._left != 0:
            loop.add_reader(fd, self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            loop.remove_reader(fd)
            with contextlib.suppress(BlockingIOError):
                data = os.read(fd, CHUNK if self._left is None else min(CHUNK, self._left))
                if self._left is not None:
                    self._left -= len(data)
                return data
        return b""
