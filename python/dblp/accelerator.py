# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
PyTorch's devices with pinned host memory as a Device of dblp.staging: cuda (also that of ROCm),
xpu, and others whose module in torch has streams and events.
"""

import functools
from typing import Any, Dict, Optional, Union

import torch

__all__ = ["Accelerator", "device_of"]


class Accelerator:
    """
    A Device of dblp.staging.

    Raises TypeError if PyTorch cannot copy between this device and pinned memory of the host.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._module: Any = getattr(torch, device.type, None)
        missing = [name for name in ("Stream", "Event", "stream", "current_stream") if not hasattr(self._module, name)]
        if missing:
            raise TypeError(f"tensors are on {device}, a device without streams: only those in memory of the CPU, or of "
                            "a device with pinned host memory, such as cuda or xpu, can be summed")
        try:
            pinned = self.pinned(1).is_pinned()
        except (RuntimeError, AssertionError) as e:
            raise TypeError(f"tensors are on {device}, and PyTorch has no pinned host memory for it: {e}") from e
        if not pinned:
            raise TypeError(f"tensors are on {device}, and PyTorch has no pinned host memory for it")
        self._event = self._blocking_event()

    def _blocking_event(self) -> Any:
        """The constructor of events whose synchronize() sleeps, where the device has them"""
        blocking = functools.partial(self._module.Event, blocking=True)
        try:
            blocking()
        except TypeError:
            return self._module.Event
        return blocking

    @property
    def key(self) -> Any:
        return self.device

    def use(self) -> None:
        # A device without a number is the current one, and of some kinds there is only one
        if self.device.index is not None and hasattr(self._module, "set_device"):
            self._module.set_device(self.device)

    def stream(self) -> Any:
        return self._module.Stream(device=self.device)

    def record(self, stream: Any = None) -> Any:
        event = self._event()
        event.record(stream if stream is not None else self._module.current_stream(self.device))
        return event

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def synchronize(self, event: Any) -> None:
        event.synchronize()

    def pinned(self, nbytes: int) -> torch.Tensor:
        # The program may have another default device
        return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)

    def free(self, host: torch.Tensor) -> None:
        """The caller drops its reference; PyTorch keeps the memory for later pinned tensors."""

    def slice(self, host: torch.Tensor, nbytes: int) -> torch.Tensor:
        return host[:nbytes]

    def copy(self, host: torch.Tensor, offset: int, tensor: torch.Tensor, stream: Any, back: bool) -> None:
        with self._module.stream(stream):
            copy_part(host, offset, tensor, back)
        tensor.record_stream(stream)

    def future(self) -> Any:
        return torch.futures.Future(devices=[self.device])

    def complete(self, future: Any, value: Any, stream: Any) -> None:
        if value is None:
            future.set_result(None)
            return
        # The future records an event on the current stream of each device of its tensors
        with self._module.stream(stream):
            future.set_result(value)


def part_of(host: torch.Tensor, offset: int, tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a buffer from `offset` on, as a tensor like the given one"""
    nbytes = tensor.numel() * tensor.element_size()
    return host[offset:offset + nbytes].view(tensor.dtype).view(tensor.shape)


def copy_part(host: torch.Tensor, offset: int, tensor: torch.Tensor, back: bool) -> None:
    """Copy a tensor into a buffer, from `offset` on, or back. Autograd, whose modes are per thread, does not see it."""
    part, tensor = part_of(host, offset, tensor), tensor.detach()
    if back:
        tensor.copy_(part, non_blocking=True)
    else:
        # A copy would conjugate or negate on the host, where it does not wait for the device
        part.copy_(tensor.resolve_conj().resolve_neg(), non_blocking=True)


_known: Dict[torch.device, Accelerator] = {}


def device_of(device: Union[torch.device, str]) -> Optional[Accelerator]:
    """
    The Accelerator of a device of PyTorch; None for the CPU, whose tensors need no staging. Raises
    TypeError for a device without pinned host memory.
    """
    device = torch.device(device)
    if device.type == "cpu":
        return None
    if device not in _known:
        _known[device] = Accelerator(device)
    return _known[device]
