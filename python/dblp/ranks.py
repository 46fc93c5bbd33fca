# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Processes that start and end together, and their output: for dblp.run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any, Coroutine, Dict, List, Mapping, Optional, Sequence, Set

from .guard import ENDING, die_with, handled_signals, kill_all, leaders, signal_descendants, signal_name
from .output import Lines, Output
from .progress import Line

#: Seconds between SIGTERM and SIGKILL
GRACE = 5.0
#: Maximum seconds to wait for the last output after a failure
LAST = 5.0
#: Seconds after the first signal from which on another one sends SIGKILL at once
AGAIN = 1.0
#: Maximum number of reports of ranks, or of ended processes, in a turn of the event loop
BATCH = 1000


class _Process:
    def __init__(self, name: str, rank: Optional[int], popen: Any, log: Optional[str]) -> None:
        self.name, self.rank, self.popen, self.log = name, rank, popen, log
        self.lines: List[Lines] = []
        self.copies: List[asyncio.Task[None]] = []
        #: Standard input of a dblp-run on another host, which reads numbers of signals
        self.control: Any = None

    def how(self, status: int) -> str:
        how = f"was killed by {signal_name(status - 128)}" if status > 128 else \
            f"has failed with exit status {status}"
        return f"{self.name} {how}" + (f" (see {self.log})" if self.log else "")


class Ranks:
    """
    Processes that all end when one fails. The constructor needs a running event loop.

    folder: directory for a socket.
    require: a rank that succeeds without opening a communicator has failed.
    grace: seconds between SIGTERM and SIGKILL.
    everything: print each progress line of rank 0.

    Ranks need the variables of `environment`, by which they send reports, see progress.tell().
    """

    def __init__(self, folder: str, require: bool = False, grace: float = GRACE,
                 everything: bool = False) -> None:
        self._require, self._grace = require, grace
        self._loop = asyncio.get_running_loop()
        self._alive: Dict[int, _Process] = {}
        self._used: Set[int] = set()
        self._status = 0
        self._failed = self._loop.create_future()
        self._failed_at = 0.0
        self._running = False
        self._over = asyncio.Event()
        self._following: Optional[asyncio.Task[None]] = None
        self._tasks: List[asyncio.Task[None]] = []
        self._err = Output(2, self._unprinted)
        self._out = self._err if os.path.sameopenfile(1, 2) else Output(1, self._unprinted)
        self._line = Line(lambda text: self._err.write(text.encode(errors="replace")), everything)
        path = os.path.join(folder, "socket")
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._told.bind(path)
        self.environment: Dict[str, str] = {"DBLP_RUN_SOCKET": path}
        self._loop.add_reader(self._told, self._listen)
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        signals = handled_signals()
        for number in signals:
            self._loop.add_signal_handler(number, self._signalled, number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals | {signal.SIGCHLD})

    @property
    def failed(self) -> bool:
        """Are all processes being ended, after a failure or a signal?"""
        return self._failed.done()

    def say(self, text: str) -> None:
        """Print a message of dblp-run."""
        self._line.clear()
        self._err.write(f"dblp-run: {text}\n".encode(errors="replace"))

    async def start(self, name: str, command: Sequence[str], environment: Mapping[str, str],
                    rank: Optional[int] = None, log: Optional[str] = None, setup: Any = None) -> None:
        """
        Start a process. Raises OSError.

        name: name of the process in messages.
        rank: its rank, printed before its lines; None: it is a dblp-run on another host.
        log: path of a file for its output; None: print the output.
        setup: for a dblp-run on another host: the value that its receive_setup() returns.
            Its standard input then also carries signals.
        """
        with contextlib.ExitStack() as files:
            out = err = subprocess.PIPE
            if log:
                out, err = files.enter_context(open(log, "wb")).fileno(), subprocess.STDOUT
            popen = subprocess.Popen(
                command, env=dict(environment), stdin=subprocess.DEVNULL if setup is None else subprocess.PIPE,
                stdout=out, stderr=err, start_new_session=True, preexec_fn=die_with(os.getpid()))
        process = _Process(name, rank, popen, log)
        self._alive[popen.pid] = process
        leaders.add(popen.pid)
        prefix = b"" if rank is None else b"[%d] " % rank
        for pipe, output in (popen.stdout, self._out), (popen.stderr, self._err):
            if pipe is not None:
                lines = Lines(pipe, self._printer(prefix, output), output)
                process.lines.append(lines)
                process.copies.append(self._later(lines.copy()))
        if setup is not None:
            process.control, _ = await self._loop.connect_write_pipe(asyncio.BaseProtocol, popen.stdin)
            process.control.write(json.dumps(setup).encode() + b"\n")
        if self.failed:
            # A process failed during the start, and this one missed the signal
            self._signal(signal.SIGTERM)

    async def receive_setup(self) -> Any:
        """
        Return the `setup` that start() of another dblp-run has sent on standard input. From now
        on handle the signals that follow it, and end all processes at end of file.
        """
        reader = asyncio.StreamReader(limit=1 << 24)
        await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        setup = json.loads(await reader.readline() or b"{}")
        self._following = asyncio.ensure_future(self._follow(reader))
        return setup

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        while True:
            line = await reader.readline()
            if not line:
                self.fail(128 + signal.SIGHUP, "the connection to the host that started this has ended")
                self._kill_now()
                return
            self._pass_on(int(line), "")

    def fail(self, status: int, why: str, number: int = signal.SIGTERM,
             after: Sequence[asyncio.Task[None]] = ()) -> None:
        """
        End all processes by signal `number`, and by SIGKILL after the grace period. Only the
        first call has an effect.

        status: exit status of dblp-run.
        why: reason to print, unless empty, when the tasks `after` have printed.
        """
        if self.failed:
            return
        self._status = status
        self._failed.set_result(None)
        self._failed_at = self._loop.time()
        if why:
            self._later(self._explain(why + (": the others are ended" if self._alive else ""), after))
        self._signal(number)
        self._loop.call_later(self._grace, self._over.set)
        self._loop.call_soon(self._reap)

    async def run(self) -> int:
        """Wait for the end of all processes; return the exit status of dblp-run."""
        self._running = True
        self._reap()
        await self._over.wait()
        if self.failed:
            for text in kill_all():
                self.say(text)
        for process in self._alive.values():
            self._close(process)
        printed = asyncio.ensure_future(self._printed())
        await asyncio.wait({printed, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({printed}, timeout=LAST)
        if printed.done():
            printed.result()
        self._told.close()
        return self._status

    def _later(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(coroutine)
        self._tasks.append(task)
        return task

    async def _explain(self, why: str, after: Sequence[asyncio.Task[None]]) -> None:
        if after:
            await asyncio.wait(after)
        self.say(why)

    async def _printed(self) -> None:
        """Wait until all output is written."""
        await asyncio.gather(*self._tasks)
        self._line.end()
        await self._out.drained()
        await self._err.drained()

    def _printer(self, prefix: bytes, output: Output) -> Any:
        begin = Line.BEGIN.encode()

        def show(lines: Sequence[bytes]) -> None:
            texts = []
            for line in lines:
                if not prefix and line.startswith(begin):
                    self._show(line[len(begin):].decode(errors="replace"))
                else:
                    # Of a line that was overwritten, keep the text that was last visible
                    texts.append(prefix + line.rstrip(b"\r").rsplit(b"\r", 1)[-1] + b"\n")
            if texts:
                self._line.clear()
                output.write(b"".join(texts))
        return show

    def _show(self, progress: str) -> None:
        if not self._err.full:
            self._line.show(progress)

    def _unprinted(self, error: OSError) -> None:
        self.fail(1, "the reader of the output has closed it" if isinstance(error, BrokenPipeError) else
                  f"cannot print: {error.strerror}")

    def _signal(self, number: int) -> None:
        """Send a signal to all processes, here or by dblp-run on other hosts; ssh(1) itself gets none"""
        controls = [p.control for p in self._alive.values() if p.control]
        for control in controls:
            control.write(b"%d\n" % number)
        if not controls:
            signal_descendants(number)

    def _listen(self) -> None:
        for _ in range(BATCH):
            try:
                rank, kind, text = self._told.recv(4096).decode(errors="replace").split(" ", 2)
                number = int(rank)
            except BlockingIOError:
                return
            except ValueError:
                continue
            if kind == "progress":
                self._show(text)
            elif number == 0 and not self._used & {0}:
                self.say(text)
            self._used.add(number)

    def _signalled(self, number: int) -> None:
        self._pass_on(number, signal_name(number))

    def _pass_on(self, number: int, why: str) -> None:
        if number not in ENDING:
            self._to_ranks(number)
        else:
            self.fail(128 + number, why, number)
            self._kill_now()

    def _kill_now(self) -> None:
        """Send SIGKILL, unless the first signal is less than AGAIN seconds old: timeout(1) sends each twice"""
        if self._loop.time() >= self._failed_at + AGAIN:
            self._over.set()

    def _to_ranks(self, number: int) -> None:
        for process in self._alive.values():
            if process.control:
                process.control.write(b"%d\n" % number)
            else:
                # Popen.send_signal() may reap the process
                os.kill(process.popen.pid, number)

    def _reap(self) -> None:
        """Reap children that have ended: started and adopted ones"""
        with contextlib.suppress(ChildProcessError):
            for _ in range(BATCH):
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if info is None:
                    if self._running and not self._alive and not self.failed:
                        self._over.set()
                    return
                process = self._alive.get(info.si_pid)
                if process is None:
                    os.waitpid(info.si_pid, 0)
                else:
                    self._ended(process)
            self._loop.call_soon(self._reap)
            return
        # No child is left
        if self._running or self.failed:
            self._over.set()

    def _close(self, process: _Process) -> None:
        for lines in process.lines:
            lines.end()

    def _ended(self, process: _Process) -> None:
        status = process.popen.wait()
        del self._alive[process.popen.pid]
        leaders.discard(process.popen.pid)
        self._close(process)
        self._listen()
        if status:
            status = int(status) if status > 0 else 128 - int(status)
            self.fail(status, process.how(status), after=process.copies)
        elif self._require and process.rank is not None and process.rank not in self._used:
            self.fail(1, f"{process.name} has ended without having used dblp, which --require demands")
