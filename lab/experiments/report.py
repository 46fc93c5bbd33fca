#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write the tables and plots of the experiments from the results in the output directories."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from claims import Claim, mean, median, plot, rounds_s
from figures import (Figures, arguments, goodput, number, peers_text, pooled, ratio, verdict,
                     wire_s, write)
import dfs
import fabric
import mlt
import training


# DBLP: 3 workers, 300 kB, 100 Mbit/s, RTT 1 ms

DBLP_N, DBLP_SIZE, DBLP_RATE, DBLP_RTT = 3, 300000, 100e6, 0.001
LOW, HIGH = 0.008, 0.408
LOSSES = (60, 70, 80, 90)


def dblp_limit(budget, loss, burst_s, rate=DBLP_RATE):
    """RTT + max(N D / C, D / ((1 - p) R)), R the @rate of a worker in the burst; what is left after
    it goes at the full rate of the port, without losses"""
    alone = wire_s(DBLP_SIZE * (1 - budget), DBLP_RATE)
    passing = (1 - loss / 100) * rate / DBLP_RATE
    passed = alone / passing
    if passed > burst_s:
        passed = burst_s + DBLP_N * (alone - passing * burst_s)
    return DBLP_RTT + max(DBLP_N * alone, passed)


def held_rate():
    """Rate of a worker that keeps its window when the burst empties the queue. The window w of
    sqrt has sqrt(w) packets in the queue, whose delay is x RTT: sqrt(w) = (1 + x) / x. N windows
    are what the port holds with that delay: N w = (1 + x) C RTT. So x^2 C RTT / N = 1 + x."""
    room = DBLP_RATE * DBLP_RTT / 8 / 1514 / DBLP_N
    return DBLP_RATE / DBLP_N * (1 + (1 + (1 + 4 * room) ** 0.5) / (2 * room))


def dblp_limits(budget, loss, burst_s):
    """Limits of senders at the full rate of their uplinks, with the window held, and the rate"""
    return [dblp_limit(budget, loss, burst_s, rate) for rate in (DBLP_RATE, held_rate(), DBLP_RATE / DBLP_N)]


DBLP = {"baseline": "the papers' baseline", "baseline-all": "the same, its control in the burst",
        "dblp-0.8%-early": "ours, 0.8 %", "dblp-40.8%-eager": "ours, phases",
        "dblp-0.8%-early-lossy": "ours, 0.8 %, lossy", "dblp-40.8%-eager-lossy": "ours, phases, lossy",
        "cubic": "cubic", "bbr": "bbr"}
FIXED, PHASES = "dblp-0.8%-early", "dblp-40.8%-eager"


def dblp_times(f, loss, burst, keep):
    return {t: median(rounds_s(f, "dblp", f"{loss} {burst}", t, keep)) for t in DBLP}


def dblp_burst(f, key, hit, limits, transport, name, what):
    """Rows of a burst: with the window held, and by lossy, which may raise it"""
    texts = [f"{1e3 * s:.1f} ms {how}" for s, how in zip(limits, (
        "at the full rate of uplinks", "with the window held", "at the rate held"))]
    for suffix, high, limit in (("", 1.25, 1), ("-lossy", None, 0)):
        ours = hit[transport + suffix]
        others = {t: ratio(s, limits[limit]) for t, s in hit.items() if t != transport + suffix}
        shares = ", ".join(f"{text} ({ratio(ours, s):.3f})" for text, s in zip(texts, limits)) if ours else None
        yield Claim(name + suffix, f"{what}{', lossy' if suffix else ''}, median over the limit "
                    + ("of uplinks" if suffix else "with the window held"),
                    ratio(ours, limits[limit]), "ratio", high=high, limit=1, peers=others,
                    more=ours and f"{1e3 * ours:.1f} ms; limits (ours over them) {shares}",
                    why=f.error("dblp", key, transport + suffix))


def dblp_rows(f):
    for burst, what in (("all", "for the whole round"), ("0.25", "for 250 ms")):
        burst_s = float("inf") if burst == "all" else float(burst)
        for loss in LOSSES:
            key = f"{loss} {burst}"
            hit = dblp_times(f, loss, burst, lambda i: i % 3 == 2)
            calm = dblp_times(f, loss, burst, lambda i: i % 3 != 2)
            limits = {b: dblp_limits(b, loss, burst_s) for b in (LOW, HIGH)}
            name = f"dblp-{loss}-{'round' if burst == 'all' else '250ms'}"
            where = f"{loss} % loss {what}"
            for transport, budget, who in ((PHASES, HIGH, "phases"), (FIXED, LOW, "fixed")):
                yield from dblp_burst(f, key, hit, limits[budget], transport, f"{name}-{who}",
                                      f"{where}: ours with {'phases' if who == 'phases' else '0.8 %'}")
            gain = {t: ratio(s, hit[PHASES]) for t, s in hit.items() if t != PHASES}
            bar = 5.97 if loss == 90 and burst == "all" else None
            yield Claim(f"{name}-gain", f"{where}: the papers' baseline over ours with phases",
                        gain.pop("baseline"), "ratio", low=bar, paper="4.0 to 5.97", peers=gain,
                        limit=ratio(hit["baseline"], limits[HIGH][0]),
                        why=f.error("dblp", key, "baseline"))
            yield Claim(f"{name}-ideal", f"{where}: an ideal transport with 0.8 % over ours with phases",
                        ratio(limits[LOW][0], hit[PHASES]), "ratio", paper="not given",
                        limit=limits[LOW][0] / limits[HIGH][0], why=f.error("dblp", key, PHASES))
            if (loss, burst) == (90, "all"):
                yield Claim("dblp-calm", "rounds without loss: the papers' baseline over ours with phases",
                            ratio(calm["baseline"], calm[PHASES]), "ratio",
                            paper="1.52 to 1.95 (average of all rounds)",
                            peers={t: ratio(s, calm[PHASES]) for t, s in calm.items()
                                   if t not in (PHASES, "baseline")},
                            limit=ratio(calm["baseline"], dblp_limit(HIGH, 0, 0)),
                            why=f.error("dblp", key, "baseline"))


def dblp_table(f):
    """Medians of lossy rounds in ms, as in the plot"""
    yield ("| loss | limit 0.8 % | window held | limit 40.8 % | window held | "
           + " | ".join(DBLP.values()) + " |")
    yield "|---" + "|--:" * (len(DBLP) + 4) + "|"
    for burst, what in (("all", "whole round"), ("0.25", "250 ms")):
        for loss in LOSSES:
            burst_s = float("inf") if burst == "all" else float(burst)
            hit = dblp_times(f, loss, burst, lambda i: i % 3 == 2)
            cells = [s for b in (LOW, HIGH) for s in dblp_limits(b, loss, burst_s)[:2]] + list(hit.values())
            yield (f"| {loss} %, {what} | "
                   + " | ".join("-" if c is None else f"{1e3 * c:.1f}" for c in cells) + " |")


# LTP: 8 workers, 250 kB, 200 Mbit/s, RTT 0.5 ms, a queue of 30 packets

LTP_TCP = ("reno", "cubic", "bbr", "dctcp")
LTP_PEERS = LTP_TCP + ("sctp",)
LTP_LOSSES = ("0", "0.01", "0.1", "1", "5")


def ltp_limit(budget):
    return 0.0005 + wire_s(8 * 250000 * (1 - budget), 200e6)


def ltp_p(f, loss, transport, share):
    return pooled(f.results("ltp", loss, transport), share)


def ltp_rows(f):
    for loss in LTP_LOSSES:
        for transport, budget in (("dblp-2%-early", 0.02), ("dblp", 0)):
            limit = ltp_limit(budget)
            found = f.results("ltp", loss, transport)
            more = (f"p50 {pooled(found, 50) / limit:.3f}, max {pooled(found, 100) / limit:.3f}"
                    if found else None)
            yield Claim(f"ltp-{loss}-{'budget' if budget else 'reliable'}",
                        f"{loss} % loss, {'budget 2 %' if budget else 'reliable'}: p99 over the limit",
                        ratio(pooled(found, 99), limit), "ratio", limit=1,
                        high=1.3 if budget and loss == "1" else None, more=more,
                        peers={p: ratio(ltp_p(f, loss, p, 99), limit) for p in LTP_PEERS},
                        why=f.error("ltp", loss, transport))
        ours = mean(rounds_s(f, "ltp", loss, "dblp-2%-early"))
        gains = {p: ratio(mean(rounds_s(f, "ltp", loss, p)), ours) for p in LTP_PEERS}
        known = [gains[p] for p in LTP_TCP if gains[p]]
        yield Claim(f"ltp-{loss}-gain", f"{loss} % loss: mean round of the slowest of reno, cubic and bbr "
                    "over ours with 2 %", max((gains[p] for p in LTP_TCP[:3] if gains[p]), default=None),
                    "ratio", paper="up to 30 (training throughput)", peers=gains,
                    more=f"over the best TCP {min(known):.3f}" if known else None,
                    why=f.error("ltp", loss, "dblp-2%-early"))
    for share in (50, 99):
        times = {p: ltp_p(f, "0", p, share) for p in LTP_TCP}
        best = min((t for t in times.values() if t), default=None)
        yield Claim(f"ltp-0-best-p{share}", f"0 % loss, reliable: p{share} over that of the best TCP",
                    ratio(ltp_p(f, "0", "dblp", share), best), "ratio", high=1.0,
                    peers={p: ratio(t, best) for p, t in times.items()},
                    why=f.error("ltp", "0", "dblp"))


# BML: 9 hosts, 900 kB

BML_SIZE = 900000


def bml_rows(f):
    once = {rate: wire_s(BML_SIZE, rate * 1e6) for rate in (16, 32)}
    theory = {"cube": 8 / 9 * once[16]}
    for rate in (16, 32):
        theory |= {f"{rate} transpose": 16 / 9 * once[rate], f"{rate} ring": 16 / 9 * once[rate],
                   f"{rate} ps": 16 * once[rate]}
    papers = {"cube": "0.889 T_F", "ps": "not compared"}

    def time_of(key, transport):
        return mean(rounds_s(f, "bml", key, transport))

    for key, limit in theory.items():
        rate, _, algo = key.partition(" ")
        what = (f"{algo}, one link of {rate} Mbit/s" if algo
                else "bcube, two links of 16 Mbit/s")
        ours = time_of(key, "dblp")
        yield Claim(f"bml-{key.replace(' ', '-')}", f"{what}: time of a sum over theory",
                    ratio(ours, limit), "ratio", high=None if algo else 1.15, limit=1,
                    peers={t: ratio(time_of(key, t), limit)
                           for t in ("dblp-2%-early", "cubic", "bbr")},
                    paper=papers.get(algo or key, "1.778 T_F"), why=f.error("bml", key, "dblp"),
                    more=f"{ours:.3f} s = {ours / once[16]:.3f} T_F of 16 Mbit/s" if ours else None)
    cube = time_of("cube", "dblp")
    for rate, text, paper in ((16, "with half its links", "2 (1/k of the time)"),
                              (32, "at equal bandwidth of a host", "not given")):
        times = {algo: ratio(time_of(f"{rate} {algo}", "dblp"), cube)
                 for algo in ("transpose", "ring", "ps")}
        yield Claim(f"bml-gain-{rate}", f"transpose {text}, over bcube", times.pop("transpose"),
                    "ratio", peers=times, paper=paper,
                    limit=theory[f"{rate} transpose"] / theory["cube"],
                    why=f.error("bml", f"{rate} transpose", "dblp"))


def overlap_rows(f):
    for plan, size in (("ps", 60000), ("transpose", 60000), ("ring", 60000), ("bcube", 30000)):
        whole, cut = (mean(rounds_s(f, "overlap", f"{plan} {message}", "dblp")) for message in (1048576, size))
        yield Claim(f"overlap-{plan}", f"{plan}: time in messages of {size // 1000} kB over that in one message",
                    ratio(cut, whole), "ratio", limit=0.5 if plan == "ps" else None,
                    more=f"{cut:.3f} s over {whole:.3f} s" if cut and whole else None,
                    why=f.error("overlap", f"{plan} {size}", "dblp"))


# DS-Sync: 3 racks of 3 hosts with links of 32 Mbit/s, 600 kB

def dssync_rows(f):
    once = wire_s(600000, 32e6)
    for slow, what in (("24", "core 4:1 over-subscribed"), ("6", "the same, one rack at a quarter of it")):
        # A rack sends 4 vectors to the core, and receives as many
        core = 4 * once * 32 / float(slow)
        groups = (4 / 3 * once + core) / 2
        times = {(algo, t): mean(rounds_s(f, "dssync", f"{slow} {algo}", t))
                 for algo in ("transpose", "average") for t in ("dblp", "cubic", "bbr")}
        for algo, limit in (("transpose", core), ("average", groups)):
            ours = times[algo, "dblp"]
            yield Claim(f"dssync-{slow}-{algo}", f"{what}: {algo}, mean time of a round over theory",
                        ratio(ours, limit), "ratio", limit=1,
                        peers={t: ratio(times[algo, t], limit) for t in ("cubic", "bbr")},
                        more=f"{1e3 * ours:.1f} ms" if ours else None,
                        why=f.error("dssync", f"{slow} {algo}", "dblp"))
        yield Claim(f"dssync-{slow}-gain", f"{what}: average over transpose, mean time of a round",
                    ratio(times["average", "dblp"], times["transpose", "dblp"]), "ratio",
                    paper="up to 94 % of the end-to-end time saved", limit=groups / core,
                    peers={t: ratio(times["average", t], times["transpose", t]) for t in ("cubic", "bbr")},
                    why=f.error("dssync", f"{slow} average", "dblp"))


# Spraying: 8 flows over 4 paths of 20 Mbit/s

SPRAY = {"equal": ("equal paths", 80e6), "half": ("one of half the rate", 70e6),
         "dark": ("one goes dark", 60e6)}


def spray_goodput(f, key, ports):
    """Goodput as a share of the paths' rates, without headers of TCP"""
    bits = goodput(f.results("spray", key, f"dblp-{ports}-ports"))
    return bits and wire_s(bits / 8, SPRAY[key][1])


def spray_rows(f):
    for key, (what, _) in SPRAY.items():
        one = {"one port": spray_goodput(f, key, 1)} if key != "dark" else {}
        yield Claim(f"spray-{key}-goodput", f"{what}: goodput of 16 ports over the sum of the paths"
                    + (" that are left" if key == "dark" else ""),
                    spray_goodput(f, key, 16), "ratio", low=0.95 if key == "half" else None, limit=1,
                    peers=one, why=f.error("spray", key, "dblp-16-ports"))
        if key == "dark":
            continue
        times = {n: [pooled(f.results("spray", key, f"dblp-{n}-messages"), q) for q in (50, 99)]
                 for n in (1, 16)}
        more = (f"p99 {1e3 * times[16][1]:.0f} ms, p50 {1e3 * times[16][0]:.0f} ms; with one port "
                f"{1e3 * times[1][1]:.0f} ms, {1e3 * times[1][0]:.0f} ms" if all(times[1] + times[16]) else None)
        yield Claim(f"spray-{key}-p99", f"{what}: p99 of messages of 100 kB, 16 ports over one",
                    ratio(times[16][1], times[1][1]), "ratio", high=0.6 if key == "half" else None,
                    more=more, why=f.error("spray", key, "dblp-16-messages"))


# Ablations

def ablation_results(f):
    """(key, result) in the order of the measurements"""
    for scenario, key, transport in f.seeds:
        if scenario == "ablations":
            for r in f.results(scenario, key, transport):
                yield key, r


def ablation_rows(f):
    for key, r in ablation_results(f):
        asked = r.get("asked_bytes") or r["delivered_bytes"] + r["missing_bytes"]
        sent = ratio(r["queue"]["bytes"], wire_s(asked, 8)) if "queue" in r else None
        more = f"p50 {1e3 * pooled([r], 50):.1f} ms, p99 {1e3 * pooled([r], 99):.1f} ms"
        if sent:
            more += f", bytes on the link {sent:.4f}"
        yield Claim(f"ablations-{key.replace(' ', '-').replace('%', '')}", key, r["missing_bytes"] / asked, "share",
                    more=more)


SCENARIOS = {"dblp": dblp_rows, "ltp": ltp_rows, "bml": bml_rows, "overlap": overlap_rows, "dssync": dssync_rows,
             "ablations": ablation_rows, "train_dblp": training.dblp_rows, "train_auto": training.auto_rows,
             "train_racks": training.racks_rows, "train_rules": training.rules_rows, "dfs": dfs.rows, "fabric": fabric.rows,
             "mlt": mlt.rows, "spray": spray_rows}


def table(rows):
    yield "| figure | paper | ours | limit | bar | | beside it | peers |"
    yield "|---|---|--:|--:|---|---|---|---|"
    for row in rows:
        yield (f"| {row.what} | {row.paper or ''} | {number(row.value)} | "
               f"{number(row.limit) if row.limit else ''} | {row.bar()} | "
               f"{'' if row.bar() == 'printed' and row.value is not None else verdict(row)} | "
               f"{row.more or ''} | {peers_text(row)} |")


# Plots

def plots(args, f):
    if "dblp" in args.scenarios:
        curves = {who: [dblp_times(f, loss, "all", lambda i: i % 3 == 2)[t] for loss in LOSSES]
                  for t, who in DBLP.items()}
        for budget in (LOW, HIGH):
            curves[f"limit of {100 * budget:.1f} %"] = [dblp_limit(budget, loss, float("inf"))
                                                       for loss in LOSSES]
        plot(args, "dblp", "Gather of 3 x 300 kB while packets are lost, median round",
             "loss (%)", "seconds", LOSSES, curves)
    if "ltp" in args.scenarios:
        who = {"dblp-2%-early": "ours, 2 %", "dblp": "ours, reliable"} | {p: p for p in LTP_PEERS}
        plot(args, "ltp", "Gather of 8 x 250 kB, queue of 30 packets, p99 over the limit",
             "loss (%)", "p99 / limit", LTP_LOSSES,
             {text: [ratio(ltp_p(f, loss, t, 99), ltp_limit(0)) for loss in LTP_LOSSES]
              for t, text in who.items()})
    training.plots(args, f)


def main():
    args = arguments(__doc__, SCENARIOS)
    f = Figures(args.out)
    rows = {name: list(make(f)) if name in args.scenarios else [] for name, make in SCENARIOS.items()}
    plots(args, f)
    fields = {f"TABLE_{name.upper()}": "\n".join(table(found)) for name, found in rows.items()}
    return write(args, "experiments", sum(rows.values(), []), f, MEDIANS="\n".join(dblp_table(f)), **fields)


if __name__ == "__main__":
    sys.exit(main())
