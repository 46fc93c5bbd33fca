#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Trains two models with loss budgets that are fixed, and with budgets that libdblp finds (see
dblp_tune(3)): a perceptron that reads the digits of lab/demo, by Adam, and the ResNet-18 of
pictures.py, by SGD with momentum. The four workers are in this process, without a network: each
loses random segments of its gradient, as many as the budget allows, and adds them to its next
gradient (rule feedback). Writes found.json to a directory.
"""

import argparse
import ctypes
import json
import pathlib
import sys

import torch
from dblp import Rule, _c
from dblp.tune import CAP
from torch import nn
from torch.nn.functional import cross_entropy

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "demo"))
# pylint: disable=wrong-import-position
from digits import SIDE, digits
from pictures import pictures, resnet

WORKERS, ROUNDS = 4, 120
#: Elements that are lost together: a packet
SEGMENT = 352
#: ppm
BUDGETS = {"0": 0, "10": 100000, "20": 200000, "40.8": 408000}


class Digits:
    """A perceptron of 77 thousand parameters"""

    BATCH = 16

    def __init__(self, seed):
        self.model = nn.Sequential(nn.Linear(SIDE * SIDE, 240), nn.ReLU(), nn.Linear(240, 64), nn.ReLU(),
                                   nn.Linear(64, 10))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.005)
        self.train = digits(20000, 1000 * seed)
        self.test = digits(2000, 1000 * seed + 1)


class Pictures:
    """A small ResNet-18 of 176 thousand parameters"""

    BATCH = 16
    TRAIN, TEST = pictures("train", 20000), pictures("t10k", 2000)

    def __init__(self, _seed):
        self.model = resnet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.train, self.test = self.TRAIN, self.TEST


class Training:
    """A training of all workers, with a fixed budget, or None: budgets are found"""

    def __init__(self, kind, budget, seed):
        torch.manual_seed(seed)
        self.task, self.budget = kind(seed), budget
        self.parameters = list(self.task.model.parameters())
        size = sum(p.numel() for p in self.parameters)
        self.random = torch.Generator().manual_seed(seed)
        self.losses = torch.Generator().manual_seed(seed)
        self.residuals = torch.zeros(WORKERS, size)
        self.tune = _c.Tune()
        #: Of the last round: as with a network, ranks do not know it yet
        self.energy = None
        self.budgets, self.missing = [], []

    def gradient(self):
        """The gradient of a worker's batch"""
        images, shown = self.task.train
        batch = torch.randint(len(images), (self.task.BATCH,), generator=self.random)
        self.task.model.zero_grad()
        cross_entropy(self.task.model(images[batch]), shown[batch]).backward()
        return torch.cat([p.grad.reshape(-1) for p in self.parameters])

    def lose(self, vector, budget):
        """Which elements of a worker's vector are lost"""
        segments = -(-vector.numel() // SEGMENT)
        lost = torch.randperm(segments, generator=self.losses)[:segments * budget // 1000000]
        mask = torch.zeros(segments, dtype=torch.bool)
        mask[lost] = True
        return mask.repeat_interleave(SEGMENT)[:vector.numel()]

    def round(self):
        """Sum the gradients of all workers, and do a step"""
        budget = _c.lib.dblp_tune_budget(ctypes.byref(self.tune), CAP) if self.budget is None else self.budget
        sent = torch.stack([self.gradient() for _ in range(WORKERS)]) + self.residuals
        lost = torch.stack([self.lose(v, budget) for v in sent])
        self.residuals = sent * lost
        mean = (sent * ~lost).mean(0)
        if self.energy:
            _c.lib.dblp_tune_round(ctypes.byref(self.tune), ctypes.byref(self.energy))
        self.energy = _c.Energy(contributions=WORKERS, rule=Rule.DBLP_FEEDBACK, sent=float(sent.square().sum()),
                                lost=float(self.residuals.square().sum()), mean=float(mean.square().sum()))
        for p, part in zip(self.parameters, mean.split([p.numel() for p in self.parameters])):
            p.grad = part.view_as(p)
        self.task.optimizer.step()
        self.budgets.append(budget)
        self.missing.append(float(lost.float().mean()))

    def result(self):
        """Loss and accuracy on samples never trained on, missing share, and budgets"""
        images, shown = self.task.test
        with torch.no_grad():
            out = self.task.model(images)
        return {"loss": float(cross_entropy(out, shown)), "accuracy": float((out.argmax(1) == shown).float().mean()),
                "missing": sum(self.missing) / len(self.missing), "budgets": self.budgets,
                "agreement": self.tune.agreement}


def main():
    """Do the trainings of all seeds"""
    p = argparse.ArgumentParser(description="Train with loss budgets that are found, and with fixed ones.")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("directory", type=pathlib.Path)
    options = p.parse_args()
    torch.set_num_threads(1)
    found = {}
    for kind in Digits, Pictures:
        for name, budget in {"auto": None, **BUDGETS}.items():
            for seed in range(1, options.seeds + 1):
                training = Training(kind, budget, seed)
                for _ in range(ROUNDS):
                    training.round()
                result = training.result()
                found.setdefault(kind.__name__.lower(), {}).setdefault(name, []).append(result)
                print(f"{kind.__name__} {name}, seed {seed}: loss {result['loss']:.4f}, accuracy "
                      f"{result['accuracy']:.4f}, {result['missing']:.4f} missing", flush=True)
    (options.directory / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
