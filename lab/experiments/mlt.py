# SPDX-License-Identifier: GPL-2.0-only
"""Rows of scenario mlt: lanes in an incast, and trainings with losses."""

from claims import Claim, mean
from figures import pooled, quantile, ratio, wire_s

LOSSES = (1, 5, 10, 20)
QUEUES = {"short": "queues of 12 kB", "deep": "queues of 300 kB"}
TRANSPORTS = {"layers": "ours, lanes by layer", "lanes": "ours, lanes by layer and magnitude",
              "dctcp": "DCTCP", "dctcp-bands": "DCTCP in the same bands"}
#: Bytes of all gradients, and of those of the front layers
ALL, FRONT = 800000, 160000
#: Loss budget of all elements, with either kind of lanes
BUDGET = 0.112


def incast(f, queue, transport):
    return f.results("mlt", f"incast {queue}", transport)


def whole(f, queue, transport, share):
    """Quantile of the duration of rounds, seconds"""
    return pooled(incast(f, queue, transport), share)


def front(f, queue, transport, share):
    """Quantile of the time until the server has the sums of the front layers, seconds"""
    samples = [s for r in incast(f, queue, transport) for s in r["lanes"][0]["samples"]]
    return quantile(samples, share) / 1e9 if samples else None


def counters(f, queue):
    """Marks and drops of the switch, and missing bytes, by lane"""
    found = incast(f, queue, "lanes")
    if not found:
        return None
    first, rest = found[0]["bands"][1:3]
    missing = [ratio(lane["missing_bytes"], lane["asked_bytes"]) for lane in found[0]["lanes"]]
    return (f"with lanes by magnitude the switch marked {rest['marked']} and dropped {rest['dropped']} of "
            f"{rest['packets']} packets with AF12, and dropped {first['dropped']} of {first['packets']} with AF11; missing "
            f"of the front, the large and the others: {', '.join(f'{m:.4f}' for m in missing)}")


def times(f, queue, take, share):
    return {t: take(f, queue, t, share) for t in TRANSPORTS}


def milliseconds(found):
    return {TRANSPORTS[t]: s and 1e3 * s for t, s in found.items()}


def incast_rows(f, queue):
    tail = 0.45 if queue == "short" else 0.38
    for name, take, bar, size, paper in (("front", front, 0.5, FRONT, None),
                                         ("all", whole, tail, ALL * (1 - BUDGET), "0.38 (-62 %)")):
        what = "until the front layers are there" if name == "front" else "the whole round"
        last = times(f, queue, take, 99)
        theirs = last["dctcp"]
        for by in ("layers", "lanes"):
            more = {TRANSPORTS[t]: ratio(s, theirs) for t, s in last.items() if t not in (by, "dctcp")}
            yield Claim(f"mlt-{queue}-{name}-{by}", f"{QUEUES[queue]}, {what}: p99 of {TRANSPORTS[by]}, over that of DCTCP",
                        ratio(last[by], theirs), "ratio", high=bar, paper=paper, limit=ratio(wire_s(size, 100e6), theirs),
                        peers=more, why=f.error("mlt", f"incast {queue}", by),
                        more=f"{1e3 * last[by]:.1f} ms, DCTCP {1e3 * theirs:.1f} ms" if last[by] and theirs else None)
    medians = milliseconds(times(f, queue, whole, 50))
    yield Claim(f"mlt-{queue}-p50", f"{QUEUES[queue]}: median round of {TRANSPORTS['layers']}",
                medians.pop(TRANSPORTS["layers"]), "ms", peers=medians, more=counters(f, queue),
                why=f.error("mlt", f"incast {queue}", "layers"))


def train_rows(f):
    for rule in ("feedback", "bubble"):
        found = [f.results("mlt", f"train {rule}", name) for name in ("selective", "random")]
        for i, loss in enumerate(LOSSES):
            points = [r[0]["budgets"][1 + i] if r else None for r in found]
            value = peers = more = None
            if None not in points:
                mine, other = points
                value = mean(mine["losses"]) - mean(other["losses"])
                peers = {"above no loss": mine["worse"], "random": other["worse"]}
                more = (f"missing {ratio(mine['missing_bytes'], mine['asked_bytes']):.4f} and "
                        f"{ratio(other['missing_bytes'], other['asked_bytes']):.4f}; standard errors "
                        f"{mine['error']:.4f} and {other['error']:.4f}")
            yield Claim(f"mlt-train-{rule}-{loss}", f"{rule}, {loss} % lost: final loss with the least lost first, above "
                        "that of losing any, means of 5 seeds", value, "nats", high=0, peers=peers, more=more,
                        paper="more loss tolerated", why=f.error("mlt", f"train {rule}", "selective"))


def rows(f):
    for queue in QUEUES:
        yield from incast_rows(f, queue)
    yield from train_rows(f)
