# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Communicators of process groups of PyTorch."""

import os
import secrets
import weakref
from typing import Any, Dict, Optional, Sequence, Tuple

import torch.distributed as dist

from .comm import Comm
from .ending import at_end
from .lanes import Lane
from .meeting import store_kv
from .tensors import close
from .units import env_number

#: Communicators by process group, with their options; one is closed when its group is freed
_comms: "weakref.WeakKeyDictionary[Any, Tuple[Comm, Dict[str, Any]]]" = weakref.WeakKeyDictionary()


def store_of(group: Any) -> Any:
    """The store by which ranks of a group find each other, with a prefix for each communicator"""
    every: Any = dist.distributed_c10d
    name = [secrets.token_hex(8)]
    # Rank 0 chooses the prefix: ranks may have opened different numbers of communicators
    dist.broadcast_object_list(name, dist.get_global_rank(group, 0), group)
    # PyTorch has no public name for the default store
    return dist.PrefixStore(f"dblp/{name[0]}", every._get_default_store())  # pylint: disable=protected-access


def timeout_ms(group: Any) -> int:
    """The time limit of a process group in ms, or of the default store if the group does not tell it"""
    every: Any = dist.distributed_c10d
    options = getattr(group, "options", None)
    # In PyTorch 2 the backend of each device has them
    for device in getattr(group, "_device_types", ()):
        options = options or getattr(group._get_backend(device), "options", None)  # pylint: disable=protected-access
    # That of the backend dblp has it itself
    limit = getattr(group, "limit", None) or getattr(options, "_timeout", None)
    limit = limit or every._get_default_store().timeout  # pylint: disable=protected-access
    return min(int(limit.total_seconds() * 1000), 0xffffffff)


def job_of(options: Dict[str, Any]) -> Any:
    """Number of the job of a communicator that is opened with these options"""
    job = options.get("job")
    return job if job is not None else env_number("DBLP_JOB")


def opened(group: Any, options: Dict[str, Any]) -> Optional[Comm]:
    """Return the open communicator of a group, or None. Raise ValueError if it has other options."""
    group = group if group is not None else dist.group.WORLD
    found = _comms.get(group) if group is not None else None
    if found is None:
        return None
    comm, used = found
    for name, value in options.items():
        # Lists and tuples compare equal, and so do None, 0 and an absent option
        was, wanted = (tuple(v) if isinstance(v, list) else v or None for v in (used.get(name), value))
        if value is not None and was != wanted:
            raise ValueError(f"the communicator of this group is open already, with {name} {was}, not {wanted}")
    return comm


def _close(group: Any) -> None:
    """PyTorch 2 keeps a group that a DDP has used, so the end of the last reference to it comes too late"""
    for one, (comm, _) in list(_comms.items()):
        if group is None or one is group:
            _comms.pop(one, None)
            close(comm)


at_end(_close)


#: Has the environment the address of rank 0? dblp-run(1) sets it for the first communicator of all ranks
_from_launcher = ["DBLP_RUN_SOCKET" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ]


def communicator(group: Any = None, lanes: Optional[Sequence[Lane]] = None, **options: Any) -> Comm:
    """
    The communicator of a process group. The first call opens it, and all ranks of the group
    must call this. destroy_process_group() closes it, and so does the end of the last reference to
    the group.

    group: process group; None: all ranks.
    lanes: see dblp.Lane; None: one lane, or those of the open communicator.
    options: other keywords of dblp.Comm: timeout_ms, ports, ... Defaults are the time limit of
        the process group for join_ms and operation_ms, unless DBLP_JOIN_MS and DBLP_OPERATION_MS
        of the environment are set, and the number of torchrun's restarts for `epoch`.

    Under dblp-run its variables have the address of rank 0. Otherwise ranks find each other by
    the default store of PyTorch, at the first address of the machine of rank 0, unless
    DBLP_DEVICES of the environment names a device. The transport is that of DBLP_TRANSPORT of
    the environment, else "dblp".

    Raises the exceptions of dblp.Comm, and ValueError if the open communicator has other lanes
    or options.
    """
    group = group if group is not None else dist.group.WORLD
    known = opened(group, dict(options, lanes=lanes))
    if known is not None:
        return known
    options["job"] = job_of(options)
    if options.get("epoch") is None:
        options["epoch"] = env_number("TORCHELASTIC_RESTART_COUNT")
    for limit in "join_ms", "operation_ms":
        if f"DBLP_{limit.upper()}" not in os.environ:
            options.setdefault(limit, timeout_ms(group))
    rendezvous: Any = None
    if group is not dist.group.WORLD or not _from_launcher[0]:
        rendezvous = store_kv(store_of(group))
    else:
        # Ranks may have opened communicators of different other groups before
        _from_launcher[0] = False
    comm = Comm(dist.get_rank(group), dist.get_world_size(group), rendezvous,
                devices=os.environ.get("DBLP_DEVICES"), lanes=lanes, **options)
    _comms[group] = comm, dict(options, lanes=lanes or [Lane()])
    return comm
