#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write the tables of the bench from the results in the output directories."""

import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from figures import (FRAME, PAYLOAD, Figures, Row, arguments, cpu_per_byte, goodput,
                     markdown_table, pooled, quantile, ratio, wire_s, write)

PEERS = ("cubic", "bbr", "dctcp", "sctp")


def bulk_rows(f):
    for offloads in ("on", "off"):
        dblp, tcp = (f.results("bulk", offloads, transport) for transport in ("dblp", "cubic"))
        why = f.error("bulk", offloads, "dblp" if not dblp else "cubic")
        rates = [goodput(r) for r in (dblp, tcp)]
        costs = [cpu_per_byte(r) for r in (dblp, tcp)]
        more = costs_more = None
        if all(rates):
            more = f"{rates[0] / 1e6:.1f} and {rates[1] / 1e6:.1f} Mbit/s"
            costs_more = f"{costs[0]:.3f} and {costs[1]:.3f} a byte"
        # Without offloads, most instructions belong to the stacks of TCP and UDP
        bar = 1.0 if offloads == "on" else None
        yield Row(f"bulk-offloads-{offloads}", f"bulk goodput, offloads {offloads}, over TCP's",
                  ratio(*rates), "ratio", low=bar, peers={"tcp-cubic": 1.0}, more=more, why=why)
        yield Row(f"instructions-offloads-{offloads}",
                  f"instructions per byte, offloads {offloads}, over TCP's",
                  ratio(*costs), "ratio", high=bar, peers={"tcp-cubic": 1.0}, more=costs_more,
                  why=why)


def rr_rows(f):
    times = {transport: pooled(f.results("rr", "64", transport), 50)
             for transport in ("dblp", "cubic", "sctp")}
    tcp = times["cubic"]
    more = None
    if times["dblp"] and tcp:
        more = f"{times['dblp'] * 1e6:.3f} and {tcp * 1e6:.3f} us at the median"
    yield Row("rr-64", "64-byte request and response, time over TCP's",
              ratio(times["dblp"], tcp), "ratio", high=1.0,
              peers={"tcp-cubic": ratio(tcp, tcp), "sctp": ratio(times["sctp"], tcp)}, more=more,
              why=f.error("rr", "64", "dblp" if tcp else "cubic"))


def goodput_row(f, scenario, key, name, what, low=None, others=PEERS):
    """Goodput as a share of the wire limit of 100 Mbit/s"""
    limit = 100e6 * PAYLOAD / FRAME
    shares = {transport: ratio(goodput(f.results(scenario, key, transport)), limit)
              for transport in ("dblp",) + others}
    return Row(f"goodput-{name}", f"goodput {what}, share of the wire limit",
               shares.pop("dblp"), "share", low=low, peers=shares,
               why=f.error(scenario, key, "dblp"))


def loss_rows(f):
    for loss in ("0", "0.1", "0.5", "1", "2", "5"):
        yield goodput_row(f, "loss", loss, f"loss-{loss}", f"at {loss} % loss, budget 0", low=0.98)


def noise_rows(f):
    kinds = {"bunches": "with ACKs in bunches, 5 to 10 ms apart, RTT 2 ms",
             "jitter": "with each way 3 to 7 ms"}
    for kind, what in kinds.items():
        yield goodput_row(f, "noise", kind, kind, what)


def round_row(f, scenario, loss, budget, high, wire, what):
    """p99 of rounds over the wire limit; peers, and the medians"""
    transport = "dblp-2%" if budget else "dblp"
    found = f.results(scenario, loss, transport)
    peers = {peer: ratio(pooled(f.results(scenario, loss, peer), 99), wire) for peer in PEERS}
    more = None
    if found:
        more = (f"p50 {pooled(found, 50) / wire:.3f}, max {pooled(found, 100) / wire:.3f}, "
                f"{sum(len(r['samples']) for r in found)} rounds")
    return Row(f"{scenario}-loss-{loss}-budget-{budget}",
               f"{what}, {loss} % loss, budget {budget} %: p99 over the wire limit",
               ratio(pooled(found, 99), wire), "ratio", high=high, peers=peers, more=more,
               why=f.error(scenario, loss, transport))


def fanin_rows(f):
    wire = wire_s(8 * 100000, 200e6)
    for loss in ("0", "0.1", "1"):
        for budget, high in ((0, 1.30), (2, 1.10)):
            yield round_row(f, "fanin", loss, budget, high, wire, "fan-in 8 -> 1")


def budget_rows(f):
    name = ("budget", "1")
    boots = list(zip(f.results(*name, "dblp-2%"), f.results(*name, "dblp")))
    for share in (50, 99):
        found = [pooled([mine], share) / pooled([none], share) for mine, none in boots]
        more = None
        if found:
            slower = sum(one > 1 for one in found)
            more = (f"{min(found):.4f} ... {max(found):.4f}; slower with {slower} of {len(found)} "
                    f"seed{'s' * (len(found) > 1)}")
        yield Row(f"budget-2-p{share}", f"fan-in 8 -> 1, 1 % loss: p{share} with a budget of 2 % over that "
                  "without, median of seeds",
                  statistics.median(found) if found else None, "ratio", high=1.0, more=more,
                  why=f.error(*name, "dblp-2%" if f.results(*name, "dblp") else "dblp"))


def many_rows(f):
    wire = wire_s(128 * 20000, 200e6)
    for loss in ("0", "1"):
        yield round_row(f, "many", loss, 2, 1.25, wire, "fan-in 128 -> 1")


def share_rows(f):
    found = f.results("share", "8", "dblp")
    value = more = peers = None
    if found:
        ours, theirs = (sum(r["side_bytes"][i] for r in found) for i in (0, 1))
        value = ours / (ours + theirs)
        peers = {"tcp-cubic": 1 - value}
        each = (r["side_bytes"][0] / sum(r["side_bytes"]) for r in found)
        more = "by seed: " + ", ".join(f"{share:.3f}" for share in each)
    yield Row("share", "8 flows beside 8 of TCP cubic: share of the bytes", value, "share",
              low=0.35, high=0.65, peers=peers, more=more, why=f.error("share", "8", "dblp"))


def others_share(results):
    """The share of the bytes of the other side's flows"""
    sides = [sum(r["side_bytes"][i] for r in results) for i in (0, 1)]
    return ratio(sides[1], sum(sides))


def dropped_share(results):
    """The share of the packets to the receiver that its queue dropped"""
    dropped, passed = (sum(r["queue"][what] for r in results) for what in ("drops", "packets"))
    return ratio(dropped, dropped + passed)


def beside_rows(f):
    for packets, low in ((8, 0.25), (30, 0.35)):
        for delay in ("4ms", "20ms"):
            for other in ("cubic", "bbr"):
                name = ("beside", f"{packets} {delay} {other}")
                where = (f"8 flows beside 8 of TCP {other}, queue of {packets} packets, "
                         f"{delay.replace('ms', ' ms')} each way")
                for what, how, bars in (("share of TCP", others_share, {"low": low}),
                                        ("dropped", dropped_share, {"high": 0.05})):
                    yield Row(f"beside-{name[1].replace(' ', '-')}-{what.split()[0]}",
                              f"{where}: {what}", how(f.results(*name, "dblp")), "share", **bars,
                              peers={transport: how(f.results(*name, transport))
                                     for transport in f.transports(*name)},
                              why=f.error(*name, "dblp"))


def burst_rounds(results, patience_s):
    """Durations of rounds in bursts, seconds. A round counts if it began in a burst, at least
    @patience_s before its end. If a burst began in a round, the rest of the round counts if
    it lasted for @patience_s."""
    for r in results:
        ended = r["started_ns"] / 1e9
        for sample in r["samples"]:
            began, ended = ended, ended + sample / 1e9
            for start, end in r["bursts"]:
                if start <= began <= end - patience_s:
                    yield ended - began
                elif began < start < ended - patience_s:
                    yield ended - start


def burst_rows(f):
    for loss in (60, 70, 80, 90):
        for budget in (0.8, 40.8):
            name = ("burst", f"{loss} {budget}%")
            limit = 287000 * (100 - budget) / 100 * 8 / (100e6 * (100 - loss) / 100)
            for share, high in ((50, 1.4 if loss == 90 else 1.25),
                                (99, 2.0 if loss == 90 else 1.6)):
                found = {transport: list(burst_rounds(f.results(*name, transport), 2 * limit))
                         for transport in ["dblp", *f.transports(*name)]}
                values = {transport: quantile(times, share) / limit if times else None
                          for transport, times in found.items()}
                number = len(found["dblp"])
                yield Row(f"burst-{loss}-budget-{budget}-p{share}",
                          f"3 -> 1 amid bursts of {loss} % loss, budget {budget} %: p{share} over "
                          "the limit",
                          values.pop("dblp"), "ratio", high=high, peers=values,
                          more=f"{number} rounds" if number else None,
                          why=f.error(*name, "dblp"))


def runs_rows(f):
    wire = wire_s(8 * 100000, 200e6)
    for begins, ends, loss in (("0.1", "10", "90"), ("0.5", "10", "70")):
        name = ("runs", f"{begins} {ends} {loss}")
        found = f.results(*name, "dblp")
        peers = {transport: ratio(pooled(f.results(*name, transport), 99), wire)
                 for transport in f.transports(*name)}
        more = None
        if found:
            more = (f"p50 {pooled(found, 50) / wire:.3f}, max {pooled(found, 100) / wire:.3f}, "
                    f"{sum(len(r['samples']) for r in found)} rounds, "
                    f"{100 * dropped_share(found):.1f} % dropped")
        yield Row(f"runs-{begins}-{loss}",
                  f"fan-in 8 -> 1, runs of loss ({begins} % begin, {ends} % end, {loss} % lost), "
                  "budget 10 %, early: p99 over the wire limit",
                  ratio(pooled(found, 99), wire), "ratio", high=1.5, peers=peers, more=more,
                  why=f.error(*name, "dblp"))


def latency_rows(f):
    wire = wire_s(1000000, 100e6)
    found = f.results("latency", "1", "dblp-2%-early")
    others = PEERS + ("dblp", "dblp-2%-eager")
    peers = {transport: ratio(pooled(f.results("latency", "1", transport), 99), wire)
             for transport in others}
    more = None
    if found:
        more = (f"p50 {pooled(found, 50) / wire:.4f}, "
                f"{sum(len(r['samples']) for r in found)} messages")
    yield Row("latency-1MB", "1 MB message, 1 % loss, budget 2 %, early: p99 over the wire time",
              ratio(pooled(found, 99), wire), "ratio", high=1.03, peers=peers, more=more,
              why=f.error("latency", "1", "dblp-2%-early"))


def idle_rows(f):
    number = 10000
    memory, timers, more = {}, {}, {}
    for transport in ("dblp", "cubic"):
        for r in f.results("idle", str(number), transport):
            seconds = r["elapsed_ns"] / 1e9
            memory[transport] = r["memory_bytes"] / number
            if r["timers"]:
                timers[transport] = (r["timers"]["own"] - r["timers_before"]["own"]) / seconds
                more[transport] = (f"all timers of the machine {r['timers']['all'] / seconds:.1f} "
                                   f"a second, {r['timers_before']['all'] / seconds:.1f} before")
    why = f.error("idle", str(number), "dblp")
    yield Row("idle-memory", "10,000 connections in 1 GiB: kernel memory of one, both ends",
              memory.get("dblp"), "bytes", peers={"tcp-cubic": memory.get("cubic")}, why=why)
    yield Row("idle-timers", "10,000 idle connections: timer expirations a second, about none",
              timers.get("dblp"), "1/s", high=1.0, peers={"tcp-cubic": timers.get("cubic")},
              more=more.get("dblp"), why=why)


def paired_row(f, key, transport, base, figure, what, unit, **bars):
    """A figure relative to that of @base in the same boot: the median of the boots"""
    def ratios(which):
        pair = [f.results("real", key, name) for name in (which, base)]
        return [figure([mine]) / figure([theirs]) for mine, theirs in zip(*pair)]

    name = f"real-{key.replace(' ', '-')}"
    if what.endswith(("p50", "p99")):
        name += what[-4:].replace(" ", "-")
    number, load, _ = key.split()
    text = f"{number} CPU{'s' * (number != '1')}{', busy' * (load == 'busy')}: {what}, over {base}'s"
    found = ratios(transport)
    more = None
    if found:
        mine, theirs = (statistics.median(figure([r]) for r in f.results("real", key, which))
                        for which in (transport, base))
        scale = 1e6 if unit == "Mbit/s" else 1e-3
        more = (f"{mine / scale:.4g} and {theirs / scale:.4g} {unit}; "
                f"{min(found):.3f} ... {max(found):.3f} in {len(found)} boot{'s' * (len(found) > 1)}")
    others = {other: ratios(other) for other in f.transports("real", key)}
    return Row(name, text, statistics.median(found) if found else None, "ratio", **bars,
               peers={other: statistics.median(r) for other, r in others.items() if r},
               more=more, why=f.error("real", key, base if f.results("real", key, transport)
                                      else transport))


def median_s(results):
    return pooled(results, 50)


def p99_s(results):
    return pooled(results, 99)


def real_rows(f):
    for cpus in ("1", "2"):
        for load in ("idle", "busy"):
            where = f"{cpus} {load}"
            yield paired_row(f, f"{where} bulk", "dblp", "cubic", goodput,
                             "goodput at 200 Mbit/s, RTT 0.5 ms, in bulk", "Mbit/s", low=0.97)
            for loss in ("0", "1"):
                for figure, name, high in ((median_s, "p50", 1.05), (p99_s, "p99", 1.0)):
                    yield paired_row(f, f"{where} fanin-{loss}", "dblp", "cubic", figure,
                                     f"fan-in 8 -> 1, {loss} % loss, {name}", "ms", high=high)
            yield paired_row(f, f"{where} latency", "dblp", "cubic", median_s,
                             "1 MB message, 100 Mbit/s, p50", "ms", high=1.03)
            yield paired_row(f, f"{where} veth", "dblp", "cubic", goodput,
                             "bulk goodput over veth, offloads on", "Mbit/s",
                             low=1.0 if cpus == "1" else 0.9)
            yield paired_row(f, f"{where} rr", "dblp", "sctp", median_s,
                             "64-byte request and response, p50", "ms", high=1.0)
    yield paired_row(f, "4 idle veth8", "dblp", "cubic", goodput,
                     "8 connections over veth, offloads on", "Mbit/s", low=0.9)


SCENARIOS = {"bulk": bulk_rows, "rr": rr_rows, "loss": loss_rows, "noise": noise_rows, "fanin": fanin_rows,
             "budget": budget_rows, "runs": runs_rows, "many": many_rows, "burst": burst_rows, "share": share_rows,
             "beside": beside_rows, "latency": latency_rows, "idle": idle_rows,
             "real": real_rows}


def main():
    args = arguments(__doc__, SCENARIOS)
    f = Figures(args.out)
    rows = [row for name, make in SCENARIOS.items() if name in args.scenarios for row in make(f)]
    return write(args, "transport", rows, f, TABLE="\n".join(markdown_table(rows)))


if __name__ == "__main__":
    sys.exit(main())
