# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Signals to all descendants, and their end if this process is killed: for dblp.run.

A process that starts ranks is a child subreaper: a descendant whose parent has ended becomes
its child, also in a session of its own. guard() puts a second subreaper above it. If one of the
two is killed, the other one ends all descendants.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import Callable, Dict, List, Optional, Set

#: Signals that end ranks, and signals that are only passed on to them
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PASSED = (signal.SIGUSR1, signal.SIGUSR2)
#: Seconds to wait for the end of a process after SIGKILL
LIMIT = 5.0

#: Leaders of the process groups that this process has started, see signal_descendants()
leaders: Set[int] = set()

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def handled_signals() -> Set[int]:
    """ENDING and PASSED without those that this process has inherited as ignored, as by nohup(1)."""
    return {s for s in ENDING + PASSED if signal.getsignal(s) != signal.SIG_IGN}


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGTERM for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def die_with(parent: int) -> Callable[[], None]:
    """A preexec_fn for a child of `parent`: the child gets SIGTERM when `parent` ends."""
    def in_child() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    return in_child


def _stat(pid: int) -> List[str]:
    """The fields of proc_pid_stat(5) without the first: name, state, parent, ... Raises OSError."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        head, _, rest = f.read().rpartition(")")
    return [head.partition("(")[2], *rest.split()]


def _parent(pid: int) -> Optional[int]:
    with contextlib.suppress(OSError):
        return int(_stat(pid)[2])
    return None


def descendants() -> Set[int]:
    """Process IDs of all processes below this one."""
    children: Dict[Optional[int], List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            children.setdefault(_parent(int(name)), []).append(int(name))
    found: Set[int] = set()
    parents = [os.getpid()]
    while parents:
        below = children.pop(parents.pop(), [])
        found.update(below)
        parents += below
    return found


def _proc_is_ours() -> bool:
    """Is /proc that of this PID namespace? In a container it may be that of the host."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self") == str(os.getpid())
    return False


def signal_descendants(number: int, spared: int = 0) -> None:
    """
    Send a signal to all descendants except `spared`, or to the process groups of `leaders` if /proc
    does not show them.
    """
    if not _proc_is_ours():
        for pid in leaders:
            with contextlib.suppress(OSError):
                os.killpg(pid, number)
        return
    family = descendants() | {os.getpid()}
    for pid in family - {os.getpid(), spared}:
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(pid)
            try:
                # The process ID may have been reused
                if _parent(pid) in family:
                    signal.pidfd_send_signal(fd, number)
            finally:
                os.close(fd)


def _childless() -> bool:
    """Reap all children that have ended. Is no child left?"""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    except ChildProcessError:
        return True


def _ended_within(seconds: float, number: int) -> bool:
    """Send a signal to all descendants, which may start more, until none is left. Is none left in time?"""
    end = time.monotonic() + seconds
    while not _childless():
        if time.monotonic() >= end:
            return False
        signal_descendants(number)
        time.sleep(0.05)
    return True


def kill_all() -> List[str]:
    """Send SIGKILL to all descendants and wait for their end. Return a line for each that remains."""
    if _ended_within(LIMIT, signal.SIGKILL):
        return []
    lines = []
    for pid in sorted(descendants()) if _proc_is_ours() else ():
        with contextlib.suppress(OSError):
            name, state = _stat(pid)[:2]
            lines.append(f"process {pid} ({name}, state {state}) has not ended {LIMIT:g} s after SIGKILL "
                         "and is left running")
    return lines


def _end_all(grace: float) -> None:
    """End all descendants, by SIGTERM and after `grace` seconds by SIGKILL."""
    signal_descendants(signal.SIGTERM)
    _ended_within(grace, 0)
    for line in kill_all():
        sys.stderr.write(f"dblp-run: {line}\n")


def adopt() -> None:
    """Become the parent of each descendant whose own parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _stop(child: int) -> None:
    """Stop with all ranks until SIGCONT. `child` runs on, so that it can end them if this process is killed."""
    signal_descendants(signal.SIGSTOP, child)
    os.kill(os.getpid(), signal.SIGSTOP)
    signal_descendants(signal.SIGCONT, child)


def guard(grace: float) -> Optional[int]:
    """
    Fork. Returns None in the child, which has a session of its own, with handled_signals() and
    SIGCHLD blocked. The parent passes these signals on to the child and returns the exit status
    of the child. If the child was killed, the parent first ends the child's descendants. SIGTSTP
    stops the parent and the child's descendants.

    grace: seconds between SIGTERM and SIGKILL.
    """
    adopt()
    passed = handled_signals()
    stops = set() if signal.getsignal(signal.SIGTSTP) == signal.SIG_IGN else {signal.SIGTSTP}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, passed | stops | {signal.SIGCHLD})
    parent = os.getpid()
    child = os.fork()
    if not child:
        os.setsid()
        die_with(parent)()
        adopt()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        return None
    while True:
        number = signal.sigwait(passed | stops | {signal.SIGCHLD})
        if number in stops:
            _stop(child)
            continue
        if number != signal.SIGCHLD:
            os.kill(child, number)
            continue
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    _end_all(grace)
    killed = os.WTERMSIG(status)
    sys.stderr.write(f"dblp-run: the process that started the ranks was killed by {signal_name(killed)}: "
                     "all ranks were ended\n")
    return 128 + killed
