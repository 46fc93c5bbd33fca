# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Budgets of the gradients of FSDP2, which it sums by reduce_scatter_tensor() of its process group, or
by an object of set_custom_reduce_scatter() where PyTorch has that (not in 2.6).
"""

import datetime
import os
import weakref
from typing import Any, Dict, List, Sequence, Union

import torch
import torch.distributed as dist

from .ending import at_end
from .enums import Rule
from .groups import store_of, timeout_ms
from .options import Options

__all__ = ["is_fsdp", "register"]


def is_fsdp(module: Any) -> bool:
    """Has fully_shard() been called for the module?"""
    return callable(getattr(module, "_get_fsdp_state", None))


def _groups(module: Any) -> Dict[Any, List[Any]]:
    """The process groups by which a module and the modules in it sum gradients, with these modules"""
    groups: Dict[Any, List[Any]] = {}
    for part in filter(is_fsdp, module.modules()):
        state = part._get_fsdp_state()  # pylint: disable=protected-access
        # A module whose parameters are all in modules of their own has none, and in a newer PyTorch one may have several
        for sharded in getattr(state, "_fsdp_param_groups", None) or filter(None, [state._fsdp_param_group]):
            groups.setdefault(sharded.mesh_info.shard_process_group, []).append(part)
    return groups


#: Process groups of _ReduceScatter, by the group in whose place they sum
_instead: "weakref.WeakKeyDictionary[Any, weakref.WeakSet[Any]]" = weakref.WeakKeyDictionary()


def _close(group: Any) -> None:
    for other, ones in list(_instead.items()):
        if group is None or other is group:
            del _instead[other]
            for one in list(ones):
                one.shutdown()


at_end(_close)


class _ReduceScatter:
    """
    Sums gradients of a process group of another backend, as set_custom_reduce_scatter() wants it. It
    has a process group of its own with the same ranks, which ends with the other one.
    """

    def __init__(self, group: Any, options: Options) -> None:
        from .backend import ProcessGroup  # pylint: disable=import-outside-toplevel  # not for PyTorch 1.13
        self._group = ProcessGroup(store_of(group), dist.get_rank(group), dist.get_world_size(group),
                                   datetime.timedelta(milliseconds=timeout_ms(group)),
                                   dist.get_process_group_ranks(group), options)
        _instead.setdefault(group, weakref.WeakSet()).add(self._group)

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Memory for an input or an output."""
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any,
                 async_op: bool = False) -> Any:
        opts = dist.ReduceScatterOptions()
        opts.reduceOp = op
        work = self._group._reduce_scatter_base(output_tensor, input_tensor, opts)  # pylint: disable=protected-access
        if not async_op:
            work.wait()
        return work if async_op else None


def register(module: Any, budget: Union[str, int, None] = None, rule: Union[Rule, int, str, None] = None,
             **how: Any) -> Options:
    """
    Let sums of gradients of a module of fully_shard() lose contributions; its parameters, which
    all_gather_into_tensor() copies, lose nothing. See dblp.torch.register().
    """
    options = Options(budget if budget is not None else os.environ.get("DBLP_BUDGET") or 0,
                      rule if rule is not None else "rescale", **how)
    if options.comm:
        raise TypeError("comm is an option of groups")
    groups = _groups(module)
    others = [group for group in groups if dist.get_backend(group) != "dblp"]
    for group in others:
        if not hasattr(module, "set_custom_reduce_scatter"):
            raise TypeError(f"the module sums gradients by the backend {dist.get_backend(group)}, and this PyTorch has no "
                            "set_custom_reduce_scatter(): create its process group with the backend dblp")
    for group, parts in groups.items():
        if group not in others:
            group.scatter_options = options
            continue
        scatter = _ReduceScatter(group, options)
        for part in parts:
            part.set_custom_reduce_scatter(scatter)
    return options
