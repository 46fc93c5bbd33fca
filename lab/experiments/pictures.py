#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Trains a small ResNet-18 on Fashion-MNIST by libdblp, with sparse gradients. dblp-run(1) starts
its ranks; rank 0 is the server. Gradients are summed as integers, so that sums do not depend on
the order of arrival. It writes to a directory:
  1.f32, 5.f32, 20.f32  gradients of a training in which workers send the largest 1, 5 or
                        20 % of their elements, as passed to libdblp: float32, those of
                        all workers for a round, then those for the next one
  pictures.json         accuracies, and bytes of these gradients at the best block size
"""

import argparse
import gzip
import json
import os
import pathlib

import dblp
import torch
from torch import nn
from torch.nn.functional import cross_entropy, pad

PICTURES = pathlib.Path("/usr/share/datasets/fashion-mnist")
WIDTH, BATCH, TRAIN, TEST = 8, 16, 20000, 2000
RATE, MOMENTUM, NORM = 0.1, 0.9, 1.0
#: Integer that stands for 1.0
SCALE = 1 << 22
ROUNDS = 120
#: The first rounds send more elements: the share falls from FIRST
WARMUP, FIRST = 40, 0.25
#: Rounds of the first seed whose gradients are written
WRITTEN = (48, 66, 84, 102, 119)
#: Trainings by name: share of the elements sent, and fields of dblp.Op
SPARSE = {"sparse": True, "rule": "feedback"}
TRAININGS = {"dense": (1, {}), "top 20": (0.2, SPARSE), "top 5": (0.05, SPARSE), "top 1": (0.01, SPARSE),
             "prune 10": (1, {**SPARSE, "prune": "10%"}), "prune 50": (1, {**SPARSE, "prune": "50%"}),
             "prune 90": (1, {**SPARSE, "prune": "90%"}),
             "prune 50 256": (1, {**SPARSE, "prune": "50%", "block": 256})}


def pictures(name, count):
    """The first pictures: pixels from -1 to 1, and labels"""
    with gzip.open(PICTURES / f"{name}-images-idx3-ubyte.gz") as f:
        pixels = torch.frombuffer(bytearray(f.read(16 + count * 784)[16:]), dtype=torch.uint8)
    with gzip.open(PICTURES / f"{name}-labels-idx1-ubyte.gz") as f:
        shown = torch.frombuffer(bytearray(f.read(8 + count)[8:]), dtype=torch.uint8)
    return pixels.view(count, 1, 28, 28).float() / 127.5 - 1, shown.long()


class Block(nn.Module):
    """A basic block of ResNet"""

    def __init__(self, planes, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(planes, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.around = nn.Sequential()
        if stride > 1:
            self.around = nn.Sequential(nn.Conv2d(planes, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        """Called by nn.Module"""
        return torch.relu(self.body(x) + self.around(x))


def resnet():
    """ResNet-18 with an eighth of its planes, for pictures of 28 x 28 pixels"""
    layers, planes = [nn.Conv2d(1, WIDTH, 3, 2, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU()], WIDTH
    for stage in range(4):
        for first in True, False:
            layers.append(Block(planes, WIDTH << stage, 2 if first and stage else 1))
            planes = WIDTH << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(planes, 10))


class Training:
    """
    One training, of this rank. Like Deep Gradient Compression (ICLR 2018), it adds momentum
    before it selects elements, keeps the others for the next round, and resets the momentum of those sent.
    """

    def __init__(self, comm, share, how, seed):
        torch.manual_seed(seed)
        self.comm, self.share, self.how = comm, share, how
        self.model = resnet()
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=RATE)
        self.random = torch.Generator().manual_seed(1000 * seed + comm.rank)
        self.gradient = torch.zeros(sum(p.numel() for p in self.parameters), dtype=torch.int32)
        self.kept = torch.zeros_like(self.gradient)
        self.velocity = torch.zeros(self.gradient.numel())
        self.number = self.sent = 0

    def compute(self, images, shown):
        """Compute the gradient to send"""
        batch = torch.randint(len(images), (BATCH,), generator=self.random)
        self.model.zero_grad()
        cross_entropy(self.model(images[batch]), shown[batch]).backward()
        whole = torch.cat([p.grad.reshape(-1) for p in self.parameters])
        self.velocity = MOMENTUM * self.velocity + whole * min(1, NORM / float(whole.norm()))
        self.gradient = (self.velocity * SCALE).round().to(torch.int32) + self.kept
        if self.share < 1:
            self.keep_small(max(self.share, FIRST * (self.share / FIRST) ** (self.number / WARMUP)))

    def keep_small(self, share):
        """Send the largest share of the elements, and keep the others"""
        size = self.gradient.abs()
        small = size < size.topk(int(share * size.numel())).values[-1]
        self.kept = self.gradient * small
        self.gradient[small] = 0
        self.velocity[~small] = 0

    def step(self):
        """Do a step along the mean"""
        mean = self.gradient.float() / SCALE / (self.comm.nranks - 1)
        for p, part in zip(self.parameters, mean.split([p.numel() for p in self.parameters])):
            p.grad = part.view_as(p)
        self.optimizer.step()

    def sum(self):
        """Sum the gradients of all ranks, and do a step"""
        self.sent += self.comm.allreduce(
            self.gradient.numpy(), op=dblp.Op(algo="ps", server=True, **self.how)).wait().sent
        self.step()
        self.number += 1

    def accuracy(self, images, shown):
        """Share of the pictures that the model names correctly, normalised over all of them"""
        with torch.no_grad():
            return float((self.model(images).argmax(1) == shown).float().mean())


def cost(vector, block):
    """Bytes of the vector's blocks that are not all zero, plus a bit for each block"""
    there = pad(vector != 0, (0, -vector.numel() % block)).view(-1, block).any(1)
    short = int(there[-1]) * (-vector.numel() % block)
    return 4 * (int(there.sum()) * block - short) + (there.numel() + 7) // 8


def limits(path, size, workers):
    """Bytes of the rounds in a file, both ways: at each vector's best block size, and in blocks of 256"""
    rounds = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32).view(-1, workers, size)
    found = {"bytes": 0, "best": 0, "fixed": 0, "union": 0, "blocks": []}
    for vectors in rounds:
        # The sum is sent to all workers
        for vector, times in [*((v, 1) for v in vectors), (vectors.sum(0), workers)]:
            costs = {1 << j: cost(vector, 1 << j) for j in range(21)}
            found["bytes"] += times * 4 * size
            found["best"] += times * min(costs.values())
            found["fixed"] += times * costs[256]
            found["blocks"].append(min(costs, key=costs.get))
        found["union"] += float((vectors != 0).any(0).float().mean()) / len(rounds)
    return found


def write(path, index, gradient):
    """Write a gradient at its position among those of all workers"""
    data = (gradient.float() / SCALE).numpy().tobytes()
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(file, data, index * len(data))
    os.close(file)


def train(comm, key, directory, images):
    """Do a training; returns its name, accuracy, and bytes both ways as a share of whole vectors"""
    seed, name = divmod(key, len(TRAININGS))
    name, (share, how) = list(TRAININGS.items())[name]
    training = Training(comm, share, dict(how, key=key), seed)
    while training.number < ROUNDS:
        if comm.rank:
            training.compute(*images["train"])
        if comm.rank and not seed and share < 1 and training.number in WRITTEN:
            write(directory / f"{name[4:]}.f32",
                  WRITTEN.index(training.number) * (comm.nranks - 1) + comm.rank - 1, training.gradient)
        training.sum()
    # In kilobytes, which fit into 32 bits
    everyone = torch.tensor([training.sent // 1000], dtype=torch.int32)
    comm.allreduce(everyone.numpy(), op=dblp.Op(algo="ps")).wait()
    sent = 1000 * int(everyone) / (2 * (comm.nranks - 1) * ROUNDS * 4 * training.gradient.numel())
    accuracy = training.accuracy(*images["t10k"])
    if comm.rank == 1:
        print(f"seed {seed}, {name}: accuracy {accuracy:.4f}, {sent:.4f} sent", flush=True)
    return name, accuracy, sent


def main():
    """Do the trainings of all seeds"""
    p = argparse.ArgumentParser(description="Learn to name pictures, and keep gradients.")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("directory", type=pathlib.Path)
    options = p.parse_args()
    torch.set_num_threads(1)
    images = {"train": pictures("train", TRAIN), "t10k": pictures("t10k", TEST)}
    size = sum(p.numel() for p in resnet().parameters())
    said = {"size": 4 * size, "accuracy": {name: [] for name in TRAININGS}, "sent": {name: [] for name in TRAININGS}}
    with dblp.Comm() as comm:
        for key in range(options.seeds * len(TRAININGS)):
            name, accuracy, sent = train(comm, key, options.directory, images)
            said["accuracy"][name].append(accuracy)
            said["sent"][name].append(sent)
        if comm.rank == 1:
            said["limits"] = {path.stem: limits(path, size, comm.nranks - 1)
                              for path in sorted(options.directory.glob("*.f32"))}
            (options.directory / "pictures.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
