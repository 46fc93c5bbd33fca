#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Learns to read digits by FSDP2, as digits.py does by DistributedDataParallel: "seed" 1 by Gloo, 2 by the
backend dblp without losses, 3 by the same with a budget for gradients.
"""

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import dblp.torch
from digits import learn, network, show


def train(seed, options, backend, budget=0):
    """Train one model by a process group of this backend"""
    torch.manual_seed(1)
    mesh = DeviceMesh.from_group(dist.new_group(backend=backend), "cpu")
    model = network()
    for part in (*model, model):
        fully_shard(part, mesh=mesh)
    if budget:
        dblp.torch.register(model, budget)
    learn(seed, model, options, forward=True)
    show(seed, model, [p.full_tensor() for p in model.parameters()])


def main():
    """Parse the options and train three models"""
    p = argparse.ArgumentParser(description="Learn to read digits by FSDP2.")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--budget", default="10%")
    options = p.parse_args()
    dist.init_process_group("gloo")
    train(1, options, "gloo")
    train(2, options, "dblp")
    train(3, options, "dblp", options.budget)


if __name__ == "__main__":
    main()
