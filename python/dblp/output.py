# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Copies output of ranks from their pipes to a file that may be slow: for dblp.ranks."""

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

#: Maximum bytes of a read. A longer line is printed in pieces
CHUNK = 1 << 16


class Output:
    """
    A file with a thread that writes to it, because a write to a stopped terminal or a full pipe
    blocks.

    fd: file descriptor.
    failed: called in the event loop with the first error of a write; after that nothing is
        written.
    """

    #: Pending bytes from which on readers of pipes wait
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
        """Are ROOM bytes or more pending?"""
        return self._pending >= self.ROOM

    def write(self, data: bytes) -> None:
        """Write `data` after all pending data."""
        self._pending += len(data)
        self._queue.put(data)

    async def room(self) -> None:
        """Wait until the file is not full. Callers continue in the order of their calls."""
        async with self._turn:
            await self._until(self.ROOM - 1)

    async def drained(self) -> None:
        """Wait until no data is pending."""
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
            # The event loop may have ended
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._written, len(data), error)

    def _write_all(self, data: bytes) -> Optional[OSError]:
        while data:
            try:
                data = data[os.write(self._fd, data):]
            except BlockingIOError:
                # Another process may have made the open file non-blocking
                select.select([], [self._fd], [])
            except OSError as e:
                return e
        return None


class Lines:
    """
    Copies the output of a process from a pipe, line by line.

    pipe: reading end, closed at end of file.
    show: called with lines, without line ends.
    output: the Output that show() writes to; while it is full, the pipe is not read.
    """

    def __init__(self, pipe: Any, show: Callable[[Sequence[bytes]], None], output: Output) -> None:
        self._pipe, self._show, self._output = pipe, show, output
        self._rest = b""
        self._left: Optional[int] = None
        self._wake = asyncio.Event()
        os.set_blocking(pipe.fileno(), False)

    def end(self) -> None:
        """The process has ended: copy only the bytes in the pipe now, not later ones of its children."""
        if self._left is None and not self._pipe.closed:
            left = fcntl.ioctl(self._pipe.fileno(), termios.FIONREAD, bytes(4))
            self._left = struct.unpack("i", left)[0]
            self._wake.set()

    async def copy(self) -> None:
        """Copy until end of file. Each turn of the event loop reads once, so that all pipes are served."""
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
        """Some bytes; empty at end of file"""
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
