# SPDX-License-Identifier: GPL-2.0-only
"""
FSDP2 on the CPU. That of PyTorch 2.6 is for GPUs: patched() adds what it lacks. As a program, it runs
an unmodified script: fsdp_cpu.py SCRIPT [ARGUMENT...].
"""

import contextlib
import os
import runpy
import sys

import torch


def patched():
    """fully_shard(), with two methods that streams of the CPU lack, and versions of gathered parameters kept"""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups

    if not hasattr(torch.cpu.Stream, "record_event"):
        torch.cpu.Stream.record_event = lambda _self, event=None: event or torch.cpu.Event()
        torch.cpu.Stream.wait_event = lambda _self, _event: None
        copy_out = groups.foreach_all_gather_copy_out

        def kept(result, params, group):
            with contextlib.ExitStack() as stack:
                for p in params:
                    for t in getattr(p, "all_gather_outputs", ()):
                        stack.enter_context(torch.autograd._unsafe_preserve_version_counter(t))
                copy_out(result, params, group)

        groups.foreach_all_gather_copy_out = kept
    return fully_shard


if __name__ == "__main__":
    patched()
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
