# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Residuals of the rule feedback by names of parameters, for dblp.torch."""

import contextlib
import dataclasses
import errno
from typing import Any, Dict, Optional, Sequence, Tuple

import torch

from . import _c
from .comm import Comm, os_error
from .tensors import DTYPES, new_key


@dataclasses.dataclass
class Layout:
    """A recurring bucket: its parameters, and the key of its residual"""

    key: int
    dtype: torch.dtype
    names: Tuple[str, ...]
    sizes: Tuple[int, ...]
    #: The last struct dblp_op of the bucket, and the attributes that it was made from
    op: Any = None
    how: Any = None


class Residuals:
    """
    Residuals of a State, by names of parameters. The library keeps residuals of buckets; this
    object keeps those of parameters that were in no bucket yet. Here residuals are in units of
    the gradients of a rank; in the library 16-bit ones are divided by the number of ranks.
    """

    def __init__(self, parameters: Dict[str, torch.nn.Parameter]) -> None:
        # Parameters live as long as their DDP, so id() identifies them
        self._names = {id(p): name for name, p in parameters.items()}
        self._sizes = {name: p.numel() for name, p in parameters.items()}
        self._numbered = not parameters
        self._layouts: Dict[Any, Layout] = {}
        self._held: Dict[str, torch.Tensor] = {}
        self._comm: Optional[Comm] = None

    def layout(self, comm: Comm, parameters: Sequence[torch.Tensor], dtype: torch.dtype) -> Layout:
        """The layout of a bucket; for a new one, move the residuals of its parameters"""
        self._comm = comm
        place = (dtype, *map(id, parameters))
        known = self._layouts.get(place)
        if known is not None:
            return known
        names = tuple(self._names.setdefault(id(p), str(len(self._names))) for p in parameters)
        for other, old in list(self._layouts.items()):
            if not set(names).isdisjoint(old.names):
                self._held.update(self._read(old))
                comm.forget(self._layouts.pop(other).key)
        new = Layout(new_key(comm), dtype, names, tuple(p.numel() for p in parameters))
        self._sizes.update(zip(new.names, new.sizes))
        self._check(self._held)
        self._layouts[place] = new
        self._take(new)
        return new

    def _call(self, function: Any, layout: Layout, flat: torch.Tensor) -> int:
        assert self._comm is not None
        # pylint: disable=protected-access
        return self._comm._residual(function, layout.key, DTYPES[flat.dtype], flat.data_ptr(), flat.numel())

    def _share(self, dtype: torch.dtype) -> int:
        assert self._comm is not None
        return self._comm.nranks if DTYPES[dtype].itemsize == 2 else 1

    def _read(self, layout: Layout) -> Dict[str, torch.Tensor]:
        flat = torch.empty(sum(layout.sizes), dtype=layout.dtype, device="cpu")
        error = self._call(_c.lib.dblp_residual_get, layout, flat)
        if error == -errno.ENOENT:
            return {}
        if error:
            raise os_error(error, {})
        wide = flat.to(torch.promote_types(layout.dtype, torch.float32)) * self._share(layout.dtype)
        return dict(zip(layout.names, wide.split(layout.sizes)))

    def _check(self, pieces: Dict[str, torch.Tensor]) -> None:
        """Numbers of parameters may be those of buckets that are not there yet"""
        for name, tensor in pieces.items():
            if name not in self._sizes and not self._numbered:
                raise ValueError(f"there is a residual of {name}, and no such parameter")
            size = self._sizes.get(name, tensor.numel())
            if tensor.numel() != size:
                raise ValueError(f"the residual of {name} has {tensor.numel()} elements, not {size}")

    def _write(self, layout: Layout, pieces: Dict[str, torch.Tensor]) -> None:
        flat = torch.cat([pieces[name].reshape(-1) if name in pieces else torch.zeros(size, device="cpu")
                          for name, size in zip(layout.names, layout.sizes)])
        error = self._call(_c.lib.dblp_residual_set, layout, (flat / self._share(layout.dtype)).to(layout.dtype))
        if error:
            raise os_error(error, {})

    def _take(self, layout: Layout) -> None:
        """Move residuals of a layout from this object to the library"""
        pieces = {name: self._held.pop(name) for name in layout.names if name in self._held}
        if pieces:
            self._write(layout, pieces)

    def get(self) -> Dict[str, torch.Tensor]:
        found = dict(self._held)
        for layout in self._layouts.values():
            found.update(self._read(layout))
        return {name: tensor.clone() for name, tensor in found.items()}

    def set(self, pieces: Dict[str, torch.Tensor]) -> None:
        self._check(pieces)
        self.reset()
        self._held = {name: tensor.cpu() for name, tensor in pieces.items()}
        for layout in self._layouts.values():
            self._take(layout)

    def scale(self, factor: float) -> None:
        self._held = {name: tensor * factor for name, tensor in self._held.items()}
        for layout in self._layouts.values():
            pieces = self._read(layout)
            if pieces:
                self._write(layout, {name: tensor * factor for name, tensor in pieces.items()})

    def reset(self) -> None:
        # Keys stay, because all ranks must use the same ones
        self._held.clear()
        for layout in self._layouts.values():
            assert self._comm is not None
            self._comm.forget(layout.key)

    def end(self) -> None:
        """Free all residuals, except those of operations that run; the communicator may be closed already"""
        for layout in self._layouts.values():
            with contextlib.suppress(OSError, ValueError):
                assert self._comm is not None
                self._comm.forget(layout.key)
