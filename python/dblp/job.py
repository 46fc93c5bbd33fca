# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What programs tell the kernel about the job that they belong to."""

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
    errnos.EPERM: "the job is another user's",
    errnos.EAFNOSUPPORT: "there is no AF_DBLP (is the module loaded?)",
}


def report_norm(job: int, norm: float) -> None:
    """
    Report the norm of a gradient to the detector of a job: if that is on, the job is in
    the phase that follows from the norm when this returns, with all its sockets.

    job: its number, in the network namespace of this thread.
    norm: at least 0, less than 2^32.

    Once for each time that the detector's rule is to be applied, such as an epoch, by one
    of the programs of the job on this machine: the same norm once more looks like calm.

    Raises ValueError for a norm that cannot be (scale all of them if it is too large),
    OSError with the reason; then nothing has changed.
    """
    error = _c.lib.dblp_job_norm(number("job", job), float(norm))
    if error in (-errnos.EINVAL, -errnos.ERANGE):
        raise ValueError(f"norm {norm} is not a number within 0 ... 2^32")
    if error:
        raise os_error(error, _REASONS)


def _host() -> bytes:
    """Eight bytes that differ between kernels and network namespaces, as jobs do."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as f:
        boot = f.read()
    namespace = os.stat("/proc/self/ns/net")
    return hashlib.sha256(b"%s %d %d" % (boot, namespace.st_dev, namespace.st_ino)).digest()[:8]


def first_of_host(comm: Comm) -> bool:
    """
    Is this the first one of the ranks whose job is the same one of the kernel? That one
    reports norms. All ranks have to ask, at the same place among their operations.
    """
    hosts = array.array("i", bytes(8 * comm.nranks))
    hosts[2 * comm.rank:2 * comm.rank + 2] = array.array("i", _host())
    comm.allreduce(hosts, op=Op(budget=0)).wait()
    pairs = list(zip(hosts[::2], hosts[1::2]))
    return pairs.index(pairs[comm.rank]) == comm.rank
