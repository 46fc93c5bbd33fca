# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
dblp-run puts this directory into PYTHONPATH. When PyTorch's DistributedDataParallel is imported,
this module changes it: its first forward pass or join() registers the hook of dblp.torch, unless
the script has registered a hook or DBLP_NO_HOOK is set. A Python without the package dblp, such
as that of a virtual environment, finds the package next to this directory. The metadata beside
this module lets PyTorch register the backend "dblp". Other programs import nothing more than
without this module.
"""

import functools
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

_MODULE = "torch.nn.parallel.distributed"
_HERE = os.path.dirname(os.path.abspath(__file__))


def _teach(ddp: Any) -> None:
    def noted(method: Any) -> Any:
        @functools.wraps(method)
        def register(self: Any, *args: Any, **kwargs: Any) -> Any:
            done = method(self, *args, **kwargs)
            self._dblp_has_hook = True
            return done
        return register

    # torch.compile() would take the first answer for that of all calls
    @getattr(sys.modules["torch"], "_disable_dynamo", lambda function: function)
    def register(self: Any) -> bool:
        """Register the hook. Returns False if there is one already."""
        if self.__dict__.get("_dblp_has_hook"):
            return False
        import dblp.torch  # pylint: disable=import-outside-toplevel
        dblp.torch.register(self)
        return True

    def first(method: Any) -> Any:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if register(self):
                # The import has put a check before join_hook()
                return getattr(self, method.__name__)(*args, **kwargs)
            return method(self, *args, **kwargs)
        return call

    ddp.register_comm_hook = noted(ddp.register_comm_hook)
    ddp._register_builtin_comm_hook = noted(ddp._register_builtin_comm_hook)
    ddp.forward = first(ddp.forward)
    # A rank without data never calls forward()
    ddp.join_hook = first(ddp.join_hook)


class _Finder:
    """A finder that changes the module when it is imported, and then removes itself."""

    @classmethod
    def find_spec(cls, name: str, _path: Any = None, _target: Any = None) -> Any:
        """As sys.meta_path wants it."""
        if name != _MODULE:
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            _teach(module.DistributedDataParallel)

        setattr(spec.loader, "exec_module", exec_module)
        return spec


class _Package:
    """The last finder, which finds the package if no other has."""

    @classmethod
    def find_spec(cls, name: str, _path: Any = None, _target: Any = None) -> Any:
        """As sys.meta_path wants it."""
        folder = os.path.dirname(_HERE)
        if name == "dblp_autoload":
            return importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(folder), name + ".py"))
        if name != "dblp":
            return None
        return importlib.util.spec_from_file_location(name, os.path.join(folder, "__init__.py"),
                                                      submodule_search_locations=[folder])


def _next() -> None:
    """Import the sitecustomize that this module hides"""
    paths = [p for p in sys.path if os.path.abspath(p) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if not os.environ.get("DBLP_NO_HOOK"):
    sys.meta_path.insert(0, _Finder)
sys.meta_path.append(_Package)
_next()
