# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
dblp-run puts this folder into PYTHONPATH: when PyTorch's DistributedDataParallel is
imported, it learns to register dblp.torch's hook at its first forward pass or join(),
unless the script has registered one. Nothing else is imported, so other programs do not notice.
"""

import functools
import importlib.machinery
import importlib.util
import os
import sys

_MODULE = "torch.nn.parallel.distributed"


def _teach(ddp):
    def noted(method):
        @functools.wraps(method)
        def register(self, *args, **kwargs):
            done = method(self, *args, **kwargs)
            self._dblp_has_hook = True
            return done
        return register

    def first(method):
        @functools.wraps(method)
        def call(self, *args, **kwargs):
            if not self.__dict__.get("_dblp_has_hook"):
                import dblp.torch
                dblp.torch.register(self)
            return method(self, *args, **kwargs)
        return call

    ddp.register_comm_hook = noted(ddp.register_comm_hook)
    ddp._register_builtin_comm_hook = noted(ddp._register_builtin_comm_hook)
    ddp.forward = first(ddp.forward)
    # A rank without data never reaches forward()
    ddp.join_hook = first(ddp.join_hook)


class _Finder:
    """Waits for the module, and goes."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _teach(module.DistributedDataParallel)

        spec.loader.exec_module = exec_module
        return spec


def _next():
    """The module of this name that this one hides"""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [p for p in sys.path if os.path.abspath(p) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.meta_path.insert(0, _Finder)
_next()
