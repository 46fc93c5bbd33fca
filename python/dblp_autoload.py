# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Registers the backend "dblp" with torch.distributed. PyTorch calls register() when it is imported,
by the entry point "torch.backends". Only the first process group imports the package dblp, so a
missing libdblp does not fail imports of PyTorch.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

__all__ = ["register"]


def _create(how: Any, options: Any) -> Any:
    return importlib.import_module("dblp.backend").create(how, options)


def register() -> None:
    """Register the backend, unless it is, or PyTorch is too old for it, or has no torch.distributed."""
    dist: Any = importlib.import_module("torch.distributed")
    if not dist.is_available():
        return
    backend: Any = dist.Backend
    if hasattr(backend, "DBLP") or "devices" not in inspect.signature(backend.register_backend).parameters:
        return
    backend.register_backend("dblp", _create, extended_api=True, devices=["cpu", "cuda"])
