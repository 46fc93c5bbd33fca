# SPDX-License-Identifier: GPL-2.0-only
"""Rows and plots of the experiments"""

import subprocess

from figures import Row, quantile


class Claim(Row):
    """A figure compared with that of a paper; @limit is the physical limit, in @unit"""

    def __init__(self, *args, paper=None, limit=None, **more):
        super().__init__(*args, **more)
        self.paper, self.limit = paper, limit


def rounds_s(f, scenario, key, transport, keep=lambda i: True):
    """Durations of the rounds whose numbers @keep selects, seconds"""
    return [s / 1e9 for r in f.results(scenario, key, transport)
            for i, s in enumerate(r["samples"]) if keep(i)]


def mean(values):
    return sum(values) / len(values) if values else None


def median(values):
    return quantile(values, 50) if values else None


def plot(args, name, title, xlabel, ylabel, xtics, curves, log=True):
    """Plot @curves, by name: a value at each of @xtics, None is omitted; @log: logarithmic values"""
    lines = ["set terminal svg size 800,480 dynamic background 'white' name 'plot'",
             f"set output '{args.out / f'experiments-{name}.svg'}'", f"set title \"{title}\"",
             f"set xlabel \"{xlabel}\"", f"set ylabel \"{ylabel}\"",
             "set logscale y" if log else "set yrange [*:*]", "set key below",
             "set grid ytics", f"set xrange [-0.5:{len(xtics) - 0.5}]",
             "set xtics (" + ", ".join(f"'{text}' {i}" for i, text in enumerate(xtics)) + ")"]
    drawn = {curve: values for curve, values in curves.items() if any(values)}
    if not drawn:
        return
    for i, values in enumerate(drawn.values()):
        points = "\n".join(f"{x} {y:.6g}" for x, y in enumerate(values) if y)
        lines.append(f"$d{i} << END\n{points}\nEND")
    lines.append("plot " + ", ".join(f"$d{i} with linespoints linewidth 2 title \"{curve}\""
                                     for i, curve in enumerate(drawn)))
    subprocess.run(["gnuplot"], input="\n".join(lines) + "\n", text=True, check=True)
