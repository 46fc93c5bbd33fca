#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Tables, limits and files to plot of the demo with PyTorch, from the logs of torch.sh. A
round lasts from the time when the last rank begins its backward pass to the time when the
last rank has the averages. With losses, ranks leave the barrier up to 200 ms apart.
"""

import json
import pathlib
import re
import statistics
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "lib"))
from figures import Row, markdown_table, number, quantile, ratio, text_table  # pylint: disable=wrong-import-position

NAMES = {"gloo-cubic": "Gloo, cubic", "gloo-bbr": "Gloo, bbr", "tcp-bbr": "dblp-run --transport tcp:bbr",
         "dblp": "dblp-run --budget 10%", "dblp-seeds": "dblp-run --budget 10%",
         "clean-gloo": "Gloo, cubic", "clean-tcp": "dblp-run --transport tcp:cubic",
         "clean-dblp": "dblp-run --budget 10%", "fsdp": "FSDP2, Gloo, bbr"}
#: Trainings of sharded.py, by the number that it prints as seed
SHARDED = {1: NAMES["fsdp"], 2: "FSDP2, dblp, nothing lost", 3: "FSDP2, dblp, budget 10 %"}
RANKS, KILLED = 4, 2

ROUND = re.compile(r"\[(\d+)\] seed (\d+) round (\d+) of (\d+): backward ([0-9.]+) ms until ([0-9.]+), "
                   r"loss ([0-9.]+)$")
END = re.compile(r"\[(\d+)\] seed (\d+) end: .*, accuracy ([0-9.]+), replica ([0-9a-f]+)$")
FAILED = re.compile(r"\[(\d+)\] .*rank (\d+) has failed: ")


class Run:
    """A log: times of rounds, and results of trainings, by seed"""

    def __init__(self, path):
        self.name = path.stem
        self.begins, self.ends, self.loss, self.accuracy, self.replicas = {}, {}, {}, {}, {}
        self.named = {}
        self.last = self.tuned = None
        for line in path.read_text().splitlines():
            self.parse(line)

    def parse(self, line):
        if found := ROUND.search(line):
            rank, seed, i, _, ms, end, loss = found.groups()
            at = int(seed), int(i)
            self.ends.setdefault(at, {})[int(rank)] = float(end)
            self.begins.setdefault(at, {})[int(rank)] = float(end) - float(ms)
            self.loss.setdefault(at, {})[int(rank)] = float(loss)
            self.last = at
        elif found := END.search(line):
            rank, seed, accuracy, replica = found.groups()
            self.accuracy[int(seed)] = float(accuracy)
            self.replicas.setdefault(int(seed), {})[int(rank)] = replica
        elif found := FAILED.search(line):
            self.named[int(found[1])] = int(found[2])
        elif line == "# tuned":
            self.tuned = self.last

    def rounds(self, seed, first=1):
        """Durations of the rounds from @first on that all ranks have completed"""
        return {i: max(ends.values()) - max(self.begins[s, i].values()) for (s, i), ends in sorted(self.ends.items())
                if s == seed and i >= first and len(ends) == RANKS}

    def p(self, share, seed=1):
        rounds = list(self.rounds(seed).values())
        return quantile(rounds, share) if rounds else None

    def different(self):
        """Number of trainings whose ranks do not end with equal parameters"""
        return sum(len(by_rank) != RANKS or len(set(by_rank.values())) > 1 for by_rank in self.replicas.values())


def cells(run, name, rounds, seed):
    ms = list(rounds.values())
    replicas = run.replicas.get(seed)
    return [name, str(len(ms)), *(f"{quantile(ms, q):.1f}" for q in (50, 90, 100)),
            f"{run.accuracy[seed]:.3f}" if seed in run.accuracy else "-",
            "-" if not replicas else "equal" if len(set(replicas.values())) == 1 else "DIFFER"]


HEAD = ["transport", "loss", "rounds", "p50 ms", "p90 ms", "max ms", "accuracy", "replicas"]


def table(runs):
    for run in runs.values():
        if run.name == "dblp-seeds":
            continue
        if run.name == "fsdp":
            for seed, name in SHARDED.items():
                row = cells(run, name, run.rounds(seed), seed)
                yield row[:1] + ["5 %"] + row[1:]
            continue
        loss = "0 %" if run.name.startswith("clean-") else "5 %"
        row = cells(run, NAMES[run.name], run.rounds(1), 1)
        yield row[:1] + [loss] + row[1:]
        seed, after = run.tuned or (0, 0)
        if run.rounds(seed, after + 2):
            row = cells(run, "  the same, 25 % by dblpctl", run.rounds(seed, after + 2), seed)
            yield row[:1] + [loss] + row[1:]


def print_table(rows):
    rows = [HEAD, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    for row in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))
    print()


def seed_noise(runs):
    """Mean accuracy of Gloo without loss minus ours, standard deviation of Gloo's, and both means"""
    lossy, clean = (list(runs[n].accuracy.values()) if n in runs else [] for n in ("dblp-seeds", "clean-gloo"))
    if min(len(lossy), len(clean)) < 2:
        return None, None, {}
    means = statistics.mean(clean), statistics.mean(lossy)
    return means[0] - means[1], round(statistics.stdev(clean), 4), {"Gloo": means[0], "AF_DBLP": means[1]}


def bars(runs):
    def p90(name):
        return runs[name].p(90) if name in runs else None

    def compared(name, what, ours, theirs, high):
        peers = {f"{n} ms": p90(n) for n in (ours, theirs)}
        return Row(name, what, ratio(p90(ours), p90(theirs)), "ratio", high=high, peers=peers,
                   why="not run, see demo/run --help")

    yield compared("p90-gloo-bbr", "p90 at 5 % loss, of Gloo over bbr", "dblp", "gloo-bbr", 0.2)
    yield compared("p90-tcp-bbr", "p90 at 5 % loss, of the same plan over tcp:bbr", "dblp", "tcp-bbr", 0.4)
    both = [runs["fsdp"].p(90, seed) if "fsdp" in runs else None for seed in (3, 1)]
    yield Row("p90-fsdp", "p90 at 5 % loss, FSDP2 by the backend dblp, of Gloo over bbr", ratio(*both), "ratio", high=0.4,
              peers=dict(zip(("dblp ms", "Gloo ms"), both)), why="needs PyTorch 2.6")
    yield compared("p90-clean", "p90 without loss, of the same plan over tcp:cubic", "clean-dblp", "clean-tcp", 1.0)
    below, noise, peers = seed_noise(runs)
    yield Row("accuracy", "mean accuracy of 5 seeds at 5 % loss, below that of Gloo without loss", below, "accuracy",
              high=noise, peers=peers, more="the bar is the standard deviation of Gloo's",
              why="not run, see demo/run --help")
    yield Row("replicas", "trainings that end with replicas that differ", sum(r.different() for r in runs.values()),
              "trainings", high=0, peers={"of": sum(len(r.replicas) for r in runs.values())})
    if "dblp" in runs:
        named = sum(rank == KILLED for rank in runs["dblp"].named.values())
        yield Row("killed", "ranks that name the one that was killed", named, "ranks", low=RANKS - 1)
    lines = sum("dblp" in line for line in (here / "digits.py").read_text().lower().splitlines())
    yield Row("lines", "lines of the script that know of dblp", lines, "lines", high=0)


def write_rounds(directory, run):
    """Write a run as a log of dblp-train, for demo/plot"""
    with open(directory / run.name, "w", encoding="ascii") as f:
        f.write(f"name {NAMES[run.name]}\n")
        for i, ms in run.rounds(1).items():
            loss = statistics.mean(run.loss[1, i].values())
            f.write(f"round {i} - 0 0 0 {ms * 1000:.0f} 0 0 0 {loss:.6f} 0 none\n")


def main():
    directory = pathlib.Path(sys.argv[1])
    runs = {name: Run(directory / f"{name}.log") for name in NAMES if (directory / f"{name}.log").exists()}
    if not any(run.ends for run in runs.values()):
        sys.exit(f"report.py: there are no logs of the demo in {directory}")
    rows = list(table(runs))
    figures = list(bars(runs))
    print_table(rows)
    text_table(figures)
    with open(directory / "table.md", "w", encoding="utf-8") as f:
        for row in [HEAD, ["---"] + ["--:"] * (len(HEAD) - 1), *rows]:
            f.write("| " + " | ".join(c.strip() for c in row) + " |\n")
        f.write("\n" + "\n".join(markdown_table(figures)) + "\n")
    with open(directory / "rows.json", "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(row.as_json()) for row in figures) + "\n]\n")
    for run in runs.values():
        if run.rounds(1):
            write_rounds(directory, run)


if __name__ == "__main__":
    main()
