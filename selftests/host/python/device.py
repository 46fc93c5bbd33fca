# SPDX-License-Identifier: GPL-2.0-only
"""
The device of the models in ddp.py and gpu.py, from DDP_DEVICE of the environment: "cpu", "cuda" or
another one of PyTorch, or "fake". Then tensors are in memory of the CPU, and dblp.torch stages them
by a FakeDevice.
"""

import os

import torch

import dblp.torch
from dblp.accelerator import copy_part
from fakedevice import FakeDevice, Stream

NAME = os.environ.get("DDP_DEVICE", "cpu")


class FakeTorchDevice(FakeDevice):
    """A FakeDevice for tensors of PyTorch"""

    def stream(self):
        # Not kept, so that its thread ends
        return Stream()

    def make(self, nbytes):
        return torch.empty(nbytes, dtype=torch.uint8)

    def move(self, host, offset, tensor, back):
        copy_part(host, offset, tensor, back)

    def future(self):
        return torch.futures.Future()

    def set(self, future, value):
        future.set_result(value)


FAKE = FakeTorchDevice() if NAME == "fake" else None
DEVICE = torch.device("cpu" if FAKE else NAME)
if FAKE:
    dblp.torch.device_of = lambda _device: FAKE
