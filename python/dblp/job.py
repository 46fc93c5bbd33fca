# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Reports of programs to the kernel about their job."""

from __future__ import annotations

import array
import errno as errnos
import hashlib
import os

from . import _c
from .comm import Comm, os_error
from .op import Op
from .units import number

_REASONS = {
    errnos.ENOENT: "there is no such job",
    errnos.EPERM: "the job belongs to another user",
    errnos.EAFNOSUPPORT: "the kernel has no AF_DBLP (is the module loaded?)",
}


def report_norm(job: int, norm: float) -> None:
    """
    Report the norm of a gradient to the detector of a job. If the detector is on, the job and
    its sockets are in the phase that follows from the norm when this returns.

    job: number of the job in the network namespace of this thread.
    norm: 0 <= norm < 2^32.

    One of the programs of the job on this machine reports, once per application of the
    detector's rule, such as once an epoch. A repeated norm looks like a training that no longer
    changes.

    Raises ValueError for an invalid norm (scale all norms if it is too large), or OSError with
    the reason; then nothing has changed.
    """
    error = _c.lib.dblp_job_norm(number("job", job), float(norm))
    if error in (-errnos.EINVAL, -errnos.ERANGE):
        raise ValueError(f"norm {norm} is not a number within 0 ... 2^32")
    if error:
        raise os_error(error, _REASONS)


def _host() -> bytes:
    """Eight bytes that identify the kernel and the network namespace, which have jobs of their own."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as f:
        boot = f.read()
    namespace = os.stat("/proc/self/ns/net")
    return hashlib.sha256(b"%s %d %d" % (boot, namespace.st_dev, namespace.st_ino)).digest()[:8]


def first_of_host(comm: Comm) -> bool:
    """
    Is this rank the first one on its kernel and network namespace? That rank reports norms.
    All ranks must call this at the same place among their operations.
    """
    hosts = array.array("i", bytes(8 * comm.nranks))
    hosts[2 * comm.rank:2 * comm.rank + 2] = array.array("i", _host())
    comm.allreduce(hosts, op=Op(budget=0)).wait()
    pairs = list(zip(hosts[::2], hosts[1::2]))
    return pairs.index(pairs[comm.rank]) == comm.rank
