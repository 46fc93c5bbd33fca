# SPDX-License-Identifier: GPL-2.0-only
"""Rows of asynchronous training, see fabric.sh."""

import re

from claims import Claim, mean
from figures import ratio
from training import run_of

# Number of updates in a mean loss
SMOOTH = 40
SEEDS = ("1", "2", "3", "4", "5")
POLICIES = ("ordered", "fifo")


def losses(run):
    """(microseconds, mean loss of the last updates) in order of time, including dropped updates"""
    updates = run["updates"]
    return [(updates[i - 1][0], mean([loss for _, loss, _ in updates[i - SMOOTH:i]]))
            for i in range(SMOOTH, len(updates) + 1)]


def begin(run):
    return run["updates"][0][0]


def time_to(run, target):
    """Time at which the loss has fallen to @target, microseconds of the clock"""
    return next(us for us, loss in losses(run) if loss <= target)


def bytes_to(run, us):
    """Bytes on the server's link from the first update to time @us"""
    counts = [count for at, count in run["bytes"] if begin(run) <= at <= us]
    return counts[-1] - counts[0]


def to_same_loss(runs):
    """(seconds, bytes, updates) of each run until the lowest loss that all runs reach"""
    target = max(min(loss for _, loss in losses(run)) for run in runs)
    ends = [time_to(run, target) for run in runs]
    return [((end - begin(run)) / 1e6, bytes_to(run, end), sum(us <= end for us, _, _ in run["updates"]))
            for run, end in zip(runs, ends)]


def behind(run):
    """Maximum divergence of the replica, as a share of its bound"""
    return max(step[3] for step in run["steps"]) / run["div_max"]


def lost(run):
    """Divergence of the replica when it replaced the server, as a share of the bound"""
    at, of = (int(v) for v in re.search(r"promoted at version (\d+) of (\d+)", run["replica"]).groups())
    before = run["steps"][:next(i for i, step in enumerate(run["steps"] + [[of + 1]]) if step[0] > of)]
    return sum(step[2] for step in before if step[0] > at) / run["div_max"], at, of


def compared(f, case, seeds, what, bar):
    """Rows of ordered relative to fifo"""
    pairs = [[run_of(f, "fabric", f"{case} {seed}", policy) for policy in POLICIES] for seed in seeds]
    why = next((f.error("fabric", f"{case} {seed}", policy) for seed, pair in zip(seeds, pairs)
                for policy, run in zip(POLICIES, pair) if not run), None)
    pairs = [pair for pair in pairs if None not in pair]
    found = [to_same_loss(pair) for pair in pairs]
    for i, (name, text, high, unit) in enumerate((
            ("time", "time to the same loss", 0.5, "s"),
            ("bytes", "bytes on the server's link, both directions, until then", 0.3333, "MB"))):
        values = [[both[k][i] / (1 if unit == "s" else 1e6) for both in found] for k in (0, 1)]
        ratios = [ratio(a, b) for a, b in zip(*values)]
        yield Claim(f"fabric-{case}-{name}", f"{what}: {text}, ordered over FIFO", mean(ratios),
                    "ratio", high=high if bar else None, why=why,
                    paper="up to 3 times faster" if name == "time" else "not given",
                    peers={"updates": mean([ratio(both[0][2], both[1][2]) for both in found])} if name == "time" else {},
                    more=f"{mean(values[0]):.2f} {unit} over {mean(values[1]):.2f} {unit}; ratios "
                         + ", ".join(f"{r:.2f}" for r in ratios) if pairs else None)
    held = [mean([pair[k]["held"] for pair in pairs]) for k in (0, 1)]
    counts = [pair[0]["scheduler"] for pair in pairs]
    yield Claim(f"fabric-{case}-held", f"{what}: loss on text never trained on after the same time, ordered less FIFO",
                held[0] - held[1] if pairs else None, "nats", why=why,
                more=f"FIFO {held[1]:.3f}; ordered: " + ", ".join(
                    f"{sum(c[name] for c in counts) / len(counts):.0f} {name}" for name in
                    ("applied", "messages", "joined", "dropped")) if pairs else None)


def rows(f):
    yield from compared(f, "changing", SEEDS, "links change", True)
    yield from compared(f, "even", ("1",), "links stay as they are", False)
    runs = [run_of(f, "fabric", f"{case} {seed}", policy) for case, seeds in (("changing", SEEDS), ("even", ("1",)))
            for seed in seeds for policy in POLICIES]
    killed = run_of(f, "fabric", "killed 1", "ordered")
    runs = [run for run in runs + [killed] if run]
    yield Claim("fabric-replica", "norms of steps that the replica lacks, at most, over the bound", max(map(behind, runs), default=None),
                "ratio", high=1, paper="bounded", more=f"all {sum(len(run['steps']) for run in runs)} messages of {len(runs)} runs")
    share, at, of = lost(killed) if killed else (None, None, None)
    yield Claim("fabric-killed", "the server is killed: norms of steps that are lost with it, over the bound", share, "ratio", high=1,
                paper="bounded", why=f.error("fabric", "killed 1", "ordered"),
                more=f"the replica took over at version {at} of {of}; {killed['scheduler']['version']} in the end"
                if killed else None)
