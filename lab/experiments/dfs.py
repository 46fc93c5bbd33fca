# SPDX-License-Identifier: GPL-2.0-only
"""Rows of the experiment with sparse gradients, see pictures.py."""

import statistics

from claims import Claim, mean, rounds_s
from figures import ratio

DENSITIES = ("1", "5", "20")
#: Names of trainings in pictures.json
TRAININGS = {"top 1": "the largest 1 %", "top 5": "the largest 5 %", "top 20": "the largest 20 %",
             "prune 90": "blocks of the least norm pruned, 90 % of the squared norm",
             "prune 50": "the same, 50 %", "prune 10": "the same, 10 %",
             "prune 50 256": "the same, 50 %, in blocks of 256"}


def training(f):
    """The results of pictures.py or None, and the reason if they are missing"""
    found = next((r[0] for d in DENSITIES for r in [f.results("dfs", d, "training")] if r), None)
    return found, f.error("dfs", DENSITIES[0], "training")


def wire_rows(f, density, said):
    """Rows of bytes and durations"""
    limits = said["limits"][density] if said else None

    def seconds(how, transport="dblp"):
        return mean(rounds_s(f, "dfs", f"{density} {how}", transport))

    def times(over):
        return {t: ratio(seconds("best", t), seconds(over, t)) for t in ("dblp", "cubic")}

    def sent(how):
        found = f.results("dfs", f"{density} {how}", "dblp")
        return found[0]["sent_bytes"] if found else None

    why = f.error("dfs", f"{density} best", "dblp")
    what = f"{density} % not zero"
    blocks = f"{min(limits['blocks'])} to {max(limits['blocks'])}" if limits else ""
    yield Claim(f"dfs-{density}-bytes", f"{what}: bytes both ways over those of the best sizes and bitmaps",
                ratio(sent("best"), limits and limits["best"]), "ratio", high=1.1, limit=1, why=why,
                more=f"best sizes {blocks} elements; {100 * limits['union']:.1f} % of a sum are not zero"
                if limits else None)
    ours = times("whole")
    yield Claim(f"dfs-{density}-time", f"{what}: time of a round over that of whole vectors", ours.pop("dblp"),
                "ratio", high=0.26, limit=ratio(limits and limits["best"], limits and limits["bytes"]), why=why,
                peers=ours | {"segments of zeroes left out by the kernel": ratio(seconds("segments"), seconds("whole"))},
                paper="0.2588 (of the training's time)",
                more=f"{1e3 * seconds('best'):.1f} ms of {1e3 * seconds('whole'):.1f} ms" if ours and seconds("best")
                and seconds("whole") else None)
    ours = times("256")
    yield Claim(f"dfs-{density}-256", f"{what}: time of a round over that of blocks of 256", ours.pop("dblp"),
                "ratio", high=0.5, limit=ratio(limits and limits["best"], limits and limits["fixed"]), why=why,
                peers=ours | {"bytes": ratio(sent("best"), sent("256"))}, paper="down to 0.1283 (of the cost)")


def accuracy_rows(said, why):
    """Rows of accuracies, compared with trainings that send all elements"""
    dense = said["accuracy"]["dense"] if said else []
    noise = statistics.stdev(dense) if len(dense) > 1 else None
    for name, text in TRAININGS.items():
        found = said["accuracy"][name] if said else []
        yield Claim(f"dfs-accuracy-{name.replace(' ', '-')}", f"{text}: accuracy above that of whole gradients",
                    mean(found) - mean(dense) if found else None, "share",
                    low=-round(noise, 4) if noise and name.startswith("top") else None, why=why,
                    more=f"{mean(found):.3f}, {mean(said['sent'][name]):.3f} of the bytes both ways; whole {mean(dense):.3f}, "
                    f"standard deviation of {len(dense)} seeds {noise:.3f}" if found and noise else None)


def rows(f):
    """All rows"""
    said, why = training(f)
    for density in DENSITIES:
        yield from wire_rows(f, density, said)
    yield from accuracy_rows(said, why)
