# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The end of process groups of PyTorch by destroy_process_group()."""

import functools
from typing import Any, Callable, List

import torch.distributed as dist

__all__ = ["at_end"]

_c10d: Any = dist.distributed_c10d

_functions: List[Callable[[Any], None]] = []


def at_end(function: Callable[[Any], None]) -> None:
    """Call function(group) whenever a process group ends; None stands for all groups."""
    _functions.append(function)


def _end(group: Any) -> None:
    for function in _functions:
        function(group)


def _shutting_down(method: Any) -> Any:
    """_shutdown_backend(): destroy_process_group() looks it up by name, and calls it for each group"""
    @functools.wraps(method)
    def shutdown_backend(group: Any) -> Any:
        done = method(group)
        _end(group)
        return done
    return shutdown_backend


def _destroying(method: Any) -> Any:
    """destroy_process_group() of PyTorch 1.13, which has no _shutdown_backend()"""
    @functools.wraps(method)
    def destroy_process_group(group: Any = None) -> Any:
        # The method frees groups
        _end(None if group is dist.group.WORLD else group)
        return method(group)
    return destroy_process_group


if hasattr(_c10d, "_shutdown_backend"):
    _c10d._shutdown_backend = _shutting_down(_c10d._shutdown_backend)  # pylint: disable=protected-access
else:
    dist.destroy_process_group = _c10d.destroy_process_group = _destroying(_c10d.destroy_process_group)
