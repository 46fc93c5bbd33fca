# SPDX-License-Identifier: GPL-2.0-only
"""What the reports of lab/bench and lab/experiments share: results, figures, tables."""

import argparse
import fnmatch
import json
import pathlib

# A packet of TCP over IPv4 with timestamps on Ethernet
PAYLOAD, FRAME = 1448, 1514


def wire_s(size, bits_per_second):
    """Time of the link for these bytes of payload, with the overhead of TCP"""
    return size * FRAME / PAYLOAD * 8 / bits_per_second


class Figures:
    """Results by scenario, key and transport"""

    def __init__(self, directory):
        self.seeds = {}
        self.errors = []
        self.failed = {}
        for path in sorted(pathlib.Path(directory).glob("*-seed-*/failed")):
            self.failed[path.parent.name] = path.read_text().strip()
        for path in sorted(pathlib.Path(directory).glob("*-seed-*/results")):
            seed = int(path.parent.name.rpartition("-")[2])
            for text in path.read_text().splitlines():
                self.add(seed, json.loads(text))

    def add(self, seed, line):
        name = (line["scenario"], line["key"], line["transport"])
        if line["status"] == 0:
            self.seeds.setdefault(name, {})[seed] = line["result"]
        else:
            reason = line["error"].strip().splitlines() or ["no reason given"]
            self.errors.append((name, seed, reason[0]))

    def results(self, *name):
        """One result for each seed; none if any of them has failed"""
        if any(error[0] == name for error in self.errors) or self.failed_boot(*name):
            return []
        found = self.seeds.get(name, {})
        return [found[seed] for seed in sorted(found)]

    def transports(self, *name):
        """Transports measured besides the default, in this order"""
        found = {other[2]: True for other in [*self.seeds, *(error[0] for error in self.errors)]
                 if other[:2] == name and other[2] != "dblp"}
        return list(found)

    def complaints(self):
        yield from (f"{boot}: {reason}" for boot, reason in self.failed.items())
        for name, seed, reason in self.errors:
            yield f"{' '.join(name)}, seed {seed}: {reason}"

    def failed_boot(self, scenario, key, _):
        """Name of a boot of this scenario that failed, with its reason"""
        name = "-".join([scenario, *key.split()]) + "-"
        for boot, reason in self.failed.items():
            if name.startswith(boot.rpartition("-seed-")[0] + "-"):
                return f"{boot}: {reason}"
        return None

    def error(self, *name):
        failed = self.failed_boot(*name)
        if failed:
            return failed
        for other, seed, reason in self.errors:
            if other == name:
                return f"{reason} (seed {seed})"
        return "not run"


def quantile(samples, share):
    """By nearest rank"""
    rank = -(-len(samples) * share // 100)
    return sorted(samples)[max(int(rank), 1) - 1]


def pooled(results, share):
    """Quantile of the samples of all seeds, seconds"""
    samples = [s for r in results for s in r["samples"]]
    return quantile(samples, share) / 1e9 if samples else None


def goodput(results):
    """Bits per second over all seeds"""
    elapsed = sum(r["elapsed_ns"] for r in results)
    return sum(r["delivered_bytes"] for r in results) * 8e9 / elapsed if elapsed else None


def cpu_per_byte(results):
    """Instructions, one each nanosecond"""
    delivered = sum(r["delivered_bytes"] for r in results)
    return sum(r["busy_ns"] for r in results) / delivered if delivered else None


class Row:
    """A figure of the table"""

    def __init__(self, name, what, value, unit, low=None, high=None, peers=None, more=None,
                 why=None, met=None):
        self.name, self.what, self.unit = name, what, unit
        self.value = None if value is None else round(value, 4)
        self.low, self.high = low, high
        self.peers = {k: round(v, 4) for k, v in (peers or {}).items() if v is not None}
        self.more, self.why = more, why
        self.met = self.judge() if met is None else met

    def judge(self):
        if self.value is None:
            return False
        return ((self.low is None or self.value >= self.low) and
                (self.high is None or self.value <= self.high))

    def bar(self):
        if self.low is not None and self.high is not None:
            return f"{self.low} ... {self.high}"
        if self.low is not None:
            return f">= {self.low}"
        return "printed" if self.high is None else f"<= {self.high}"

    def as_json(self):
        return {"name": self.name, "value": self.value, "unit": self.unit, "bar": self.bar(),
                "met": self.met, "peers": self.peers}


def ratio(a, b):
    return None if a is None or not b else a / b


def number(value):
    """Four significant figures or more, never an exponent"""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def peers_text(row):
    return ", ".join(f"{name} {number(value)}" for name, value in row.peers.items())


def verdict(row):
    if row.value is None:
        return "NOT MEASURED"
    return "met" if row.met else "MISSED"


def text_table(rows):
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(f"{row.what:<{width}}  {number(row.value):>8}  {row.bar():>13}  {verdict(row):<7}"
              f"  {peers_text(row)}".rstrip())
        if row.value is None:
            print(f"    {row.why}")


def markdown_table(rows):
    yield "| figure | value | bar | | peers | beside it |"
    yield "|---|--:|---|---|---|---|"
    for row in rows:
        yield (f"| {row.what} | {number(row.value)} | {row.bar()} | {verdict(row)} | "
               f"{peers_text(row)} | {row.more or ''} |")


def read_notes(path):
    """GLOB: TEXT, which indented lines continue"""
    notes = []
    for line in path.read_text().splitlines() if path.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and notes:
            notes[-1][1] += " " + line.strip()
        else:
            glob, _, text = line.partition(": ")
            notes.append([glob, text.strip()])
    return notes


def markdown_notes(rows, notes):
    """One paragraph for each note, with the figures that it explains"""
    missed = [row for row in rows if row.value is not None and not row.met]
    if not missed:
        return ["Every bar is met."]
    lines = []
    for glob, text in notes:
        about = [row for row in missed if fnmatch.fnmatchcase(row.name, glob)]
        missed = [row for row in missed if row not in about]
        if about:
            lines.append(f"- {', '.join(f'`{row.name}`' for row in about)}: {text}")
    lines += [f"- `{row.name}`: not explained yet." for row in missed]
    return lines


def lacking(rows, f):
    """What could not be measured, with its reason"""
    lines = [f"- `{row.name}`: {row.why}" for row in rows if row.value is None]
    said = [row.why for row in rows if row.value is None]
    lines += [f"- {line}" for line in f.complaints() if line not in said]
    return "\n".join(lines) or "Everything could be measured."


def arguments(description, scenarios):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--seeds", required=True)
    parser.add_argument("--notes", type=pathlib.Path, required=True)
    parser.add_argument("--template", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", choices=scenarios)
    return parser.parse_args()


def write(args, name, rows, f, **fields):
    """NAME.json and, from the template, NAME.md, and the table on stdout. Returns what the
    program ends with."""
    figures = [row.as_json() for row in rows]
    (args.out / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    page = args.template.read_text()
    fields |= {
        "KERNEL": args.kernel,
        "COMMIT": args.commit,
        "SEEDS": args.seeds,
        "NOTES": "\n".join(markdown_notes(rows, read_notes(args.notes))),
        "LACKING": lacking(rows, f),
    }
    for field, text in fields.items():
        page = page.replace(f"@{field}@", text)
    (args.out / f"{name}.md").write_text(page)
    text_table(rows)
    for line in f.complaints():
        print(line)
    missing = sum(row.value is None for row in rows)
    print(f"{sum(row.met for row in rows)} of {len(rows)} bars met, {missing} could not be measured")
    return int(missing > 0)
