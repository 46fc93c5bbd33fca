# SPDX-License-Identifier: GPL-2.0-only
"""Rows of the trainings, see training.sh."""

import statistics

from claims import Claim, mean, median, plot, rounds_s
from figures import number, ratio

SMOOTH = 10
SEEDS = ("1", "2", "3", "4", "5")


def run_of(f, scenario, key, name):
    """The result of a run, or None if it is missing"""
    found = f.results(scenario, key, name)
    return found[0] if found else None


def smooth(run):
    """Running mean of the loss over the last rounds, from the tenth round on"""
    loss = run["loss"]
    return [mean(loss[i - SMOOTH:i]) for i in range(SMOOTH, len(loss) + 1)]


def rounds_to(run, target):
    """Number of rounds until the loss has fallen to @target"""
    return next((SMOOTH + i for i, loss in enumerate(smooth(run)) if loss <= target), None)


def same_loss(runs):
    """The lowest loss that all runs reach"""
    return max(min(smooth(run)) for run in runs)


def seconds(run, rounds):
    return sum(run["us"][:rounds]) / 1e6


def excess(runs, others):
    """Mean final loss of runs minus that of others"""
    if not runs or not others or None in runs or None in others:
        return None
    return mean([r["held"] for r in runs]) - mean([r["held"] for r in others])


def noise(runs):
    return statistics.stdev(r["held"] for r in runs) if runs and None not in runs else None


# DBLP

def gathers(f, transport):
    """Durations of a gather of 3 x 300 kB, seconds: (calm round, burst)"""
    return [median(rounds_s(f, "dblp", "90 all", transport, lambda i, hit=hit: (i % 3 == 2) == hit))
            for hit in (False, True)]


def baseline_s(f, fixed, rounds):
    """Duration of these rounds with the papers' baseline: its gathers, and the rest as in our run at 0.8 %"""
    theirs, ours = gathers(f, "baseline"), gathers(f, "dblp-0.8%-early")
    if None in theirs + ours:
        return None
    calm = [us for us, event in zip(fixed["us"], fixed["event"]) if event == "-"]
    rest = median(calm) / 1e6 - ours[0]
    return sum(rest + theirs[event == "burst"] for event in fixed["event"][:rounds])


def dblp_times(f, seed, names):
    """Rounds and seconds to the loss that all of these reach, by name; None if a result is missing"""
    runs = {name: run_of(f, "train_dblp", seed, name) for name in names}
    if None in runs.values():
        return None
    target = same_loss(runs.values())
    rounds = {name: rounds_to(run, target) for name, run in runs.items()}
    times = {name: (rounds[name], seconds(run, rounds[name])) for name, run in runs.items()}
    times["baseline"] = rounds["fixed"], baseline_s(f, runs["fixed"], rounds["fixed"])
    return None if times["baseline"][1] is None else times


def fixed_excess(f):
    """Excess loss of our run at 0.8 %, over seeds in which it has ended"""
    pairs = [(run_of(f, "train_dblp", seed, "fixed"), run_of(f, "train_dblp", seed, "tcp")) for seed in SEEDS]
    return mean([fixed["held"] - tcp["held"] for fixed, tcp in pairs if fixed and tcp])


def back_rows(f):
    """Losses in both directions, beside those on the way to the server only"""
    names = ("back", "there", "fixed", "tcp")
    times = [t for t in (dblp_times(f, seed, names) for seed in SEEDS) if t]
    tcp = [run_of(f, "train_dblp", seed, "tcp") for seed in SEEDS]
    sd = noise(tcp)
    why = next((f.error("train_dblp", seed, name) for seed in SEEDS for name in names
                if not run_of(f, "train_dblp", seed, name)), None)

    def cut(name, other):
        return mean([1 - t[name][1] / t[other][1] for t in times])

    yield Claim("train-back-time", "losses both ways: time to the same loss: cut against the papers' baseline, mean of "
                f"{len(times)} seeds", cut("back", "baseline"), "share", low=0.196, paper="0.244, as baseline / DBLP - 1",
                why=why, peers={"gradients only": cut("there", "baseline"), "cut against ours at 0.8 %": cut("back", "fixed"),
                                "cut against TCP without losses": cut("back", "tcp")},
                more="; ".join(f"{name} {mean([t[name][0] for t in times]):.0f} rounds, "
                               f"{mean([t[name][1] for t in times]):.2f} s" for name in (*names, "baseline"))
                if times else None)

    def above(name):
        return excess([run_of(f, "train_dblp", seed, name) for seed in SEEDS], tcp)

    yield Claim("train-back-loss", "losses both ways: final loss on text never trained on, above that of TCP without "
                "losses, means of 5 seeds", above("back"), "nats", high=sd and round(sd, 4), why=why,
                peers={"gradients only": above("there")}, more="the bar is the standard deviation of TCP's" if sd else None)


def dblp_rows(f):
    times = [t for t in (dblp_times(f, seed, ("phases", "fixed", "tcp")) for seed in SEEDS) if t]
    why = next((f.error("train_dblp", seed, name) for seed in SEEDS for name in ("phases", "fixed", "tcp")
                if not run_of(f, "train_dblp", seed, name)), None)

    def average(value):
        return mean([value(t) for t in times])

    yield Claim("train-dblp-time",
                f"time to the same loss: cut against the papers' baseline, mean of {len(times)} seeds",
                average(lambda t: 1 - t["phases"][1] / t["baseline"][1]), "share", low=0.244,
                paper="0.244, as baseline / DBLP - 1", why=why,
                peers={"baseline / ours - 1": average(lambda t: t["baseline"][1] / t["phases"][1] - 1),
                       "cut against ours at 0.8 %": average(lambda t: 1 - t["phases"][1] / t["fixed"][1]),
                       "cut against TCP without losses": average(lambda t: 1 - t["phases"][1] / t["tcp"][1])},
                more="; ".join(f"{name} {average(lambda t, name=name: t[name][0]):.0f} rounds, "
                               f"{average(lambda t, name=name: t[name][1]):.2f} s"
                               for name in ("phases", "fixed", "baseline", "tcp")) if times else None)
    yield from back_rows(f)
    by_name = {name: [r for r in (run_of(f, "train_dblp", seed, name) for seed in SEEDS) if r]
               for name in ("phases", "fixed", "there", "back", "tcp")}
    whole = len(by_name["tcp"]) == len(by_name["phases"]) == len(SEEDS)
    sd = noise(by_name["tcp"]) if whole else None
    yield Claim("train-dblp-loss", "final loss on text never trained on: ours with phases and feedback, above that of "
                "TCP without losses, means of 5 seeds", excess(by_name["phases"], by_name["tcp"]) if whole else None,
                "nats", high=sd and round(sd, 4), paper="accuracy within 0.5 points", why=why,
                peers={"ours at 0.8 %": fixed_excess(f)},
                more=f"TCP {mean([r['held'] for r in by_name['tcp']]):.3f}; the bar is its standard deviation"
                if sd else None)
    for name, runs in by_name.items():
        if not runs:
            continue
        missing = ratio(sum(sum(r["missing"]) for r in runs), sum(sum(r["asked"]) for r in runs))
        tolerant = mean([r["phase"].count("tolerant") / len(r["phase"]) for r in runs])
        burst, calm = ([us / 1e3 for r in runs for us, event in zip(r["us"], r["event"]) if (event == "burst") == hit]
                       for hit in (True, False))
        more = f"{len(runs)} seeds, median round {median(calm):.1f} ms"
        if burst:
            more += f", in bursts {median(burst):.1f} ms, at most {max(burst):.0f} ms"
        if name == "phases":
            more += f"; tolerant for {100 * tolerant:.0f} % of the rounds"
        if name == "back":
            drifts = [r["drift"] for r in runs]
            lost = ratio(sum(sum(r["param_missing"]) for r in runs), sum(sum(r["param_asked"]) for r in runs))
            more += (f"; of parameters {lost:.3f}, drift at most {number(max(map(max, drifts)))}, at the end "
                     f"{number(mean([d[-1] for d in drifts]))}")
        yield Claim(f"train-dblp-{name}", f"{name}: bytes that never came", missing or 0, "share", more=more)


# Budgets that are found

FIXED = ("0.8", "10", "20", "40.8", "80")


def auto_runs(f, loss):
    """The trainings of seeds in which none has failed: by name"""
    names = ("auto", *(f"early-{budget}" for budget in FIXED))
    seeds = [{name: run_of(f, "train_auto", f"{loss} {seed}", name) for name in names} for seed in SEEDS]
    return [runs for runs in seeds if None not in runs.values()]


def time_to_same(runs):
    target = same_loss(runs.values())
    return {name: seconds(run, rounds_to(run, target)) for name, run in runs.items()}


def missing(runs):
    return ratio(sum(sum(r["missing"]) for r in runs), sum(sum(r["asked"]) for r in runs))


def auto_loss_rows(f, loss, what):
    seeds = auto_runs(f, loss)
    times = [time_to_same(runs) for runs in seeds]
    why = next((f.error("train_auto", f"{loss} {seed}", name) for seed in SEEDS
                for name in ("auto", *(f"early-{budget}" for budget in FIXED))), None)

    def over(name):
        return mean([t["auto"] / t[name] for t in times])

    best = min(FIXED, key=lambda budget: mean([t[f"early-{budget}"] for t in times])) if times else None
    yield Claim(f"train-auto-{loss}-time", f"{what}: time to the same loss, budgets that are found over the best fixed "
                f"one, mean of {len(seeds)} seeds", best and over(f"early-{best}"), "ratio", high=1, why=why,
                peers={f"{budget} %": over(f"early-{budget}") for budget in FIXED},
                more=f"best: {best} %; {mean([t['auto'] for t in times]):.2f} s" if times else None)
    sd = noise([runs["early-0.8"] for runs in seeds]) if len(seeds) > 1 else None

    def above(name):
        return excess([runs[name] for runs in seeds], [runs["early-0.8"] for runs in seeds])

    yield Claim(f"train-auto-{loss}-loss", f"{what}: final loss above that with 0.8 %", above("auto"), "nats",
                high=sd and round(sd, 4), why=why,
                peers={f"{budget} %": above(f"early-{budget}") for budget in FIXED[1:]},
                more=f"the bar is the standard deviation of seeds; {missing([runs['auto'] for runs in seeds]):.3f} of the "
                     "bytes missing, " + ", ".join(f"{missing([runs[f'early-{budget}'] for runs in seeds]):.3f} with "
                                                   f"{budget} %" for budget in FIXED) if seeds else None)


def model_rows(f):
    found = run_of(f, "train_auto", "models", "found") or {}
    for model, what in (("digits", "digits, Adam"), ("pictures", "Fashion-MNIST, ResNet-18, SGD")):
        runs = found.get(model, {})

        def above(name, runs=runs):
            return mean([a["loss"] - b["loss"] for a, b in zip(runs[name], runs["0"])]) if runs else None

        sd = statistics.stdev(r["loss"] for r in runs["0"]) if runs else None
        share = mean([r["missing"] for r in runs["auto"]]) if runs else None
        yield Claim(f"train-auto-{model}", f"{what}: final loss above that without losses, all of the budget lost",
                    above("auto"), "nats", high=sd and round(sd, 4), why=f.error("train_auto", "models", "found"),
                    peers={f"{name} %": above(name) for name in runs if name not in ("auto", "0")},
                    more=f"the bar is the standard deviation of {len(runs['0'])} seeds; {share:.3f} missing; accuracy "
                         f"{mean([r['accuracy'] for r in runs['auto']]):.3f}, "
                         f"{mean([r['accuracy'] for r in runs['0']]):.3f} without losses" if runs else None)


def auto_rows(f):
    yield from auto_loss_rows(f, "bursts", "bursts of 90 %")
    yield from auto_loss_rows(f, "steady", "20 % of the packets lost")
    yield from model_rows(f)


# DS-Sync

def racks_rows(f):
    for slow, seeds in (("24", ("1", "2", "3")), ("6", ("1",))):
        what = "core 4:1 over-subscribed" if slow == "24" else "one rack at a quarter of it"
        runs = [[run_of(f, "train_racks", f"{slow} {seed}", plan) for plan in ("average", "transpose")]
                for seed in seeds]
        why = next((f.error("train_racks", f"{slow} {seed}", plan) for seed, pair in zip(seeds, runs)
                    for plan, run in zip(("average", "transpose"), pair) if not run), None)
        pairs = [pair for pair in runs if None not in pair]
        rounds = [[rounds_to(run, same_loss(pair)) for run in pair] for pair in pairs]
        times = [[seconds(run, n) for run, n in zip(pair, both)] for pair, both in zip(pairs, rounds)]
        yield Claim(f"train-racks-{slow}-time", f"{what}: time to the same loss, average over transpose",
                    mean([a / t for a, t in times]), "ratio", high=0.6, why=why,
                    paper="up to 94 % of the end-to-end time saved",
                    peers={"rounds": mean([ratio(a, t) for a, t in rounds]),
                           "mean round": mean([ratio(mean(a["us"]), mean(t["us"])) for a, t in pairs])},
                    more=f"{mean([a for a, _ in times]):.2f} s over {mean([t for _, t in times]):.2f} s, "
                         f"seeds: {len(pairs)}" if pairs else None)
        transpose = [pair[1] for pair in runs]
        sd = noise(transpose) if len(seeds) > 1 and None not in transpose else None
        more = None
        if pairs:
            drifts = [pair[0]["drift"] for pair in pairs]
            more = (f"drift at most {number(max(map(max, drifts)))}, at the end "
                    f"{number(mean([d[-1] for d in drifts]))}; transpose {mean([pair[1]['held'] for pair in pairs]):.3f}")
            more += ", the bar is its standard deviation" if sd else ""
        yield Claim(f"train-racks-{slow}-loss", f"{what}: final loss of average above that of transpose",
                    mean([a["held"] - t["held"] for a, t in pairs]), "nats", high=sd and round(sd, 4), why=why,
                    paper="accuracy not lower", more=more)


# Rules and budgets

RULES = ("feedback", "rescale", "bubble")
BUDGETS = ("10", "20", "40.8", "60", "80")


def rules_run(f, rule, budget):
    return run_of(f, "train_rules", *(("feedback", "0") if budget == "0" else (rule, budget)))


def rules_rows(f):
    lossless = rules_run(f, None, "0")
    if lossless:
        yield Claim("train-rules-none", "nothing lost: final loss", lossless["held"], "nats")
    for rule in RULES:
        for budget in BUDGETS:
            run = rules_run(f, rule, budget)
            yield Claim(f"train-rules-{rule}-{budget}", f"{rule}, {budget} %: final loss", run and run["held"], "nats",
                        more=f"{sum(run['missing']) / sum(run['asked']):.3f} of the bytes missing, median round "
                             f"{median(run['us']) / 1e3:.1f} ms" if run else None,
                        why=f.error("train_rules", rule, budget))


def plots(args, f):
    if "train_rules" in args.scenarios:
        plot(args, "rules", "Final loss by what is lost in each round, and what is made of it", "budget (%)",
             "loss (nats a character)", ("0",) + BUDGETS,
             {rule: [run and run["held"] for run in (rules_run(f, rule, b) for b in ("0",) + BUDGETS)]
              for rule in RULES}, log=False)
    if "train_auto" in args.scenarios:
        auto = run_of(f, "train_auto", "bursts 1", "auto")
        models = run_of(f, "train_auto", "models", "found") or {}
        curves = {"text": auto and [ppm / 1e4 for ppm in auto["budget"]],
                  **{model: [mean([r["budgets"][i] / 1e4 for r in runs["auto"]]) for i in range(60)]
                     for model, runs in models.items()}}
        plot(args, "auto", "Budgets that are found", "round", "budget (%)", range(1, 61),
             {name: values for name, values in curves.items() if values}, log=False)
    if "train_dblp" in args.scenarios:
        curves = {text: [run and loss for run in [run_of(f, "train_dblp", "1", name)]
                         for loss in (smooth(run)[::5] if run else [])]
                  for name, text in (("tcp", "TCP, nothing lost"), ("fixed", "ours, 0.8 %"),
                                     ("phases", "ours, phases"), ("back", "ours, both ways"))}
        plot(args, "training", "Training loss by rounds, bursts of 90 % in three of them", "round",
             "loss (nats a character)", range(SMOOTH, 61, 5), curves, log=False)
