#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Learns to read digits: an ordinary script for PyTorch's DistributedDataParallel. A launcher
sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""

import argparse
import hashlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, interpolate
from torch.nn.parallel import DistributedDataParallel

SIDE, HEIGHT, WIDTH, NOISE = 16, 14, 10, 0.4
# Five pixels in a row, seven rows in a digit
GLYPHS = """
01110 00100 01110 01110 00010 11111 00110 11111 01110 01110
10001 01100 10001 10001 00110 10000 01000 00001 10001 10001
10011 00100 00001 00001 01010 11110 10000 00010 10001 10001
10101 00100 00010 00110 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""


def digits(count, seed):
    """Images of SIDE x SIDE pixels with noise, of a digit at a random position, and the digits"""
    random = torch.Generator().manual_seed(seed)
    rows = [line.split() for line in GLYPHS.split("\n") if line]
    glyphs = torch.tensor([[[float(pixel) for pixel in row[digit]] for row in rows] for digit in range(10)])
    glyphs = interpolate(glyphs[:, None], (HEIGHT, WIDTH), mode="bilinear", align_corners=False)[:, 0]
    shown = torch.randint(10, (count,), generator=random)
    images = torch.randn(count, SIDE, SIDE, generator=random) * NOISE
    top = torch.randint(SIDE + 1 - HEIGHT, (count,), generator=random).tolist()
    left = torch.randint(SIDE + 1 - WIDTH, (count,), generator=random).tolist()
    for image, digit, y, x in zip(images, shown, top, left):
        image[y:y + HEIGHT, x:x + WIDTH] += glyphs[digit]
    return images.flatten(1), shown


def network():
    """The model"""
    return nn.Sequential(nn.Linear(SIDE * SIDE, 240), nn.ReLU(), nn.Linear(240, 64), nn.ReLU(), nn.Linear(64, 10))


def learn(seed, model, options, forward=False):
    """Train a model; reports each round: the time of the backward pass, or with `forward` of both passes"""
    rank = dist.get_rank()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    images, shown = digits(options.rounds * options.batch, 1000 * seed + rank)
    for i in range(options.rounds):
        batch = slice(i * options.batch, (i + 1) * options.batch)
        optimizer.zero_grad()
        if forward:
            dist.barrier()
            start = time.monotonic()
        loss = cross_entropy(model(images[batch]), shown[batch])
        if not forward:
            dist.barrier()
            start = time.monotonic()
        loss.backward()
        end = time.monotonic()
        optimizer.step()
        print(f"seed {seed} round {i + 1} of {options.rounds}: backward {1000 * (end - start):.3f} ms "
              f"until {1000 * end:.3f}, loss {loss.item():.4f}", flush=True)


def show(seed, model, parameters):
    """Report the accuracy at the end"""
    images, shown = digits(1000, 999)
    right = (model(images).argmax(1) == shown).float().mean().item()
    replica = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in parameters))
    size = sum(p.numel() for p in parameters)
    print(f"seed {seed} end: rank {dist.get_rank()} of {dist.get_world_size()}, {size} parameters, accuracy {right:.4f}, "
          f"replica {replica.hexdigest()[:16]}", flush=True)


def train(seed, options):
    """Train one model"""
    torch.manual_seed(seed)
    model = DistributedDataParallel(network())
    learn(seed, model, options)
    show(seed, model.module, list(model.parameters()))


def main():
    """Parse the options and train a model for each seed"""
    p = argparse.ArgumentParser(description="Learn to read digits.")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--seeds", type=int, nargs="+", default=[1])
    options = p.parse_args()
    dist.init_process_group("gloo")
    for seed in options.seeds:
        train(seed, options)


if __name__ == "__main__":
    main()
