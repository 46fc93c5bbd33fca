# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The end of process groups of PyTorch by destroy_process_group()."""

import functools
from typing import Any, Callable, List

import torch.distributed as dist

__all__ = ["at_end", "end"]

_c10d: Any = dist.distributed_c10d
_Group: Any = dist.ProcessGroup

_functions: List[Callable[[Any], None]] = []


def at_end(function: Callable[[Any], None]) -> None:
    """Call function(group) whenever a process group ends, which may be more than once; None stands for all groups."""
    _functions.append(function)


def end(group: Any) -> None:
    """A process group ends."""
    for function in _functions:
        function(group)


def _shutting_down(method: Any) -> Any:
    """What destroy_process_group() looks up by its name, and calls for each group"""
    @functools.wraps(method)
    def shut_down(group: Any) -> Any:
        done = method(group)
        end(group)
        return done
    return shut_down


def _destroying(method: Any) -> Any:
    """destroy_process_group() of PyTorch 1.13, which calls neither"""
    @functools.wraps(method)
    def destroy_process_group(group: Any = None) -> Any:
        # The method frees groups
        end(None if group is dist.group.WORLD else group)
        return method(group)
    return destroy_process_group


if hasattr(_c10d, "_shutdown_backend"):
    # Up to 2.8
    _c10d._shutdown_backend = _shutting_down(_c10d._shutdown_backend)  # pylint: disable=protected-access
elif hasattr(_Group, "shutdown"):
    _Group.shutdown = _shutting_down(_Group.shutdown)
else:
    dist.destroy_process_group = _c10d.destroy_process_group = _destroying(_c10d.destroy_process_group)
