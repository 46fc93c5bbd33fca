# SPDX-License-Identifier: GPL-2.0-only
"""
dblp.torch with gradients on a GPU: for "run --cuda", which calls main(). Ranks run "gpu.py SCENARIO"
under dblp-run, and share the GPU. DDP_DEVICE=fake replaces it, see device.py.
"""

import contextlib
import gc
import itertools
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import dblp.torch
import dblp.accelerator
from dblp.staging import Stager
from ddp import digest
from device import DEVICE, FAKE, NAME

HERE = os.path.dirname(os.path.abspath(__file__))
#: Seconds that all checks may take together, and that a rank waits for an event
MOST, LONG = 300, 60
#: Width of layers: 16 MB of float32, or few on the fake device
WIDTH = 64 if FAKE else 2048
MODULE = None if FAKE else getattr(torch, DEVICE.type)


def settle():
    """Wait for all work of the device"""
    if MODULE:
        MODULE.synchronize()


def device():
    return FAKE or dblp.accelerator.device_of(DEVICE)


def layers(n=6):
    torch.manual_seed(1)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(n))).to(DEVICE)


def buckets(model, **how):
    """A DDP with a bucket for each layer"""
    return DDP(model, bucket_cap_mb=WIDTH * WIDTH * 4 / (1 << 20), gradient_as_bucket_view=True, **how)


def inputs(rows=64):
    data = torch.Generator().manual_seed(100 + dist.get_rank())
    return torch.randn(rows, WIDTH, generator=data).to(DEVICE)


def say(*words):
    if not dist.is_initialized() or not dist.get_rank():
        print(*words, flush=True)


# Scenarios of ranks


class FakeScaler:
    """As GradScaler without a GPU: its scale is a tensor, to be read without get_scale()"""

    def __init__(self):
        self._scale = torch.tensor(2.0 ** 10)

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        raise AssertionError("the hook has waited for the device")

    def scale(self, loss):
        return loss * self._scale

    def step(self, opt):
        grads = [p.grad for group in opt.param_groups for p in group["params"]]
        self.finite = all(g.isfinite().all() for g in grads)
        for g in grads:
            g /= self._scale
        if self.finite:
            opt.step()

    def update(self):
        self._scale *= 1 if self.finite else 0.5


def scaler_of():
    if FAKE:
        return FakeScaler()
    return torch.cuda.amp.GradScaler(init_scale=2.0 ** 10) if DEVICE.type == "cuda" else \
        torch.amp.GradScaler(DEVICE.type, init_scale=2.0 ** 10)


def amp():
    """Mixed precision, with a round that overflows on one rank: the scale halves once, replicas are those of Gloo"""
    models = [buckets(layers(3)) for _ in range(2)]
    scalers = [scaler_of() for _ in models]
    dblp.torch.register(models[1], "2%", scaler=scalers[1])
    x = inputs()
    for ddp, scaler in zip(models, scalers):
        opt = torch.optim.SGD(ddp.parameters(), 0.01)
        for i in range(6):
            opt.zero_grad()
            with torch.autocast(DEVICE.type, torch.bfloat16 if FAKE else torch.float16):
                loss = ddp(x).float().square().mean()
            scaler.scale(loss * (float("inf") if i == 3 and not dist.get_rank() else 1)).backward()
            scaler.step(opt)
            scaler.update()
        assert float(scaler._scale) == 2.0 ** 9, scaler._scale
    apart = max((p - q).abs().max().item() for p, q in zip(*(m.parameters() for m in models)))
    replicas = [""] * dist.get_world_size()
    dist.all_gather_object(replicas, digest(models[1]))
    assert len(set(replicas)) == 1, replicas
    say(f"{apart:.1e} from Gloo")


class Wait(torch.autograd.Function):
    """Its backward pass waits, on the CPU, until an event is there and reached"""

    @staticmethod
    def forward(ctx, x, reached):
        ctx.reached = reached
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        end = time.monotonic() + LONG
        while not ctx.reached():
            assert time.monotonic() < end, "the sum of the last layer is not back during backward()"
            time.sleep(0.001)
        return grad, None


def overlap():
    """The backward pass of the first layer begins when the sum of the last layer is back on the device"""
    first, rest = layers(1), layers(5)
    ended = []

    def back():
        # In its first round DDP has one bucket
        return not ddp._has_rebuilt_buckets or ended and (ended[0].is_set() if FAKE else ended[0].query())

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.rest = first, rest

        def forward(self, x):
            return self.rest(Wait.apply(self.first(x), back))

    ddp = buckets(Both())
    state = dblp.torch.register(ddp, "2%")
    here = device()
    record, sides = here.record, []

    def noting(stream=None):
        event = record(stream)
        # The first side stream is that of copies to the host, the second one that of copies back
        if stream is not None and stream not in sides:
            sides.append(stream)
        if stream in sides[1:]:
            ended.append(event)
        return event

    here.record = noting
    for _ in range(3):
        ended.clear()
        ddp(inputs()).square().mean().backward()
    here.record = record
    assert state.error is None and len(ended) > 1, ended
    settle()
    say(f"{len(ended)} buckets")


def occupy():
    """Keep the device busy for about a second; returns a function: is it still?"""
    settle()
    if hasattr(MODULE, "_sleep"):
        MODULE._sleep(2_000_000_000)
    else:
        data = torch.ones(4096, 4096, device=DEVICE)
        for _ in range(200):
            data = data @ data
    event = MODULE.Event()
    event.record()
    return lambda: not event.query()


def unsynchronised():
    """While the device is busy with earlier work, the hook returns for each bucket: with norms and a loss scale"""
    ddp, scaler = buckets(layers()), scaler_of()
    state = dblp.torch.State(scaler=scaler, norms=1, options=dict(job=7))
    reported, report = [], dblp.torch.report_norm
    dblp.torch.report_norm = lambda job, norm: reported.append(norm)
    waited, busy, held = [], [lambda: True], []

    def noting(state, bucket):
        future = dblp.torch.hook(state, bucket)
        waited.append(not busy[0]())
        if FAKE and bucket.is_last() and held:
            held.pop().release()
        return future

    ddp.register_comm_hook(state, noting)
    for i in range(3):
        waited.clear()
        loss = scaler.scale(ddp(inputs()).square().mean())
        # The first round waits until all ranks have opened the communicator
        if i and FAKE:
            FAKE.current = FAKE.stream()
            FAKE.current.hold()
            held.append(FAKE.current)
        elif i:
            busy[0] = occupy()
        loss.backward()
    dblp.torch.report_norm = report
    if FAKE:
        FAKE.current = None
    settle()
    assert waited and not any(waited), waited
    assert dist.get_rank() or len(reported) == 3, reported
    say(f"{len(waited)} buckets")


def rate():
    """Staging without a network, beside plain copies between the same memory"""
    here, size, rounds = device(), (1 << 16 if FAKE else 25 << 20), 32
    data = [torch.ones(size // 4, device=DEVICE) for _ in range(4)]
    host = here.make(size) if FAKE else here.pinned(size)
    view = dblp.accelerator.part_of(host, 0, data[0])

    class Nothing:
        def wait(self):
            return None

    def plain():
        for i in range(rounds):
            view.copy_(data[i % 4], non_blocking=True)
        for i in range(rounds):
            data[i % 4].copy_(view, non_blocking=True)

    stager = Stager(lambda: None)

    def staged():
        jobs = [stager.submit(here, size, lambda _host: Nothing(), [(0, data[i % 4])]) for i in range(rounds)]
        for job in jobs:
            job.future.wait()

    def seconds(function):
        settle()
        began = time.monotonic()
        function()
        settle()
        return time.monotonic() - began

    times = [min(seconds(function) for _ in range(5)) for function in (plain, staged)]
    stager.close()
    gigabytes = [2 * rounds * size / t / 1e9 for t in times]
    say(f"{gigabytes[1] / gigabytes[0]:.2f} of {gigabytes[0]:.1f} GB/s")


def speed():
    """Time that sums add to backward(), beside that of Gloo"""
    def median(ddp, synced=True):
        x, times = inputs(), []
        for _ in range(8):
            dist.barrier()
            settle()
            began = time.monotonic()
            with contextlib.nullcontext() if synced else ddp.no_sync():
                ddp(x).square().mean().backward()
            settle()
            times.append(time.monotonic() - began)
        return sorted(times[2:])[3]

    gloo, ours = buckets(layers()), buckets(layers())
    dblp.torch.register(ours, "2%")
    alone = median(gloo, False)
    added = [1000 * (median(ddp) - alone) for ddp in (gloo, ours)]
    say(f"{added[1] / added[0]:.2f} of {added[0]:.0f} ms")


# The table


def within(number, bar):
    word, _, limit = bar.partition(" ")
    return not bar or (number <= float(limit) if word == "<=" else number >= float(limit))


class Table:
    """Rows of checks; `names`: only those whose name contains one of these"""

    def __init__(self, names):
        self.end = time.monotonic() + MOST
        self.names = names
        self.rows = self.bad = 0

    def wanted(self, name):
        return not self.names or any(n in name for n in self.names)

    def ranks(self, n, script, scenarios, *options):
        """Status, output by rank, and messages of ranks; None as status: not within the time"""
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                [sys.executable, "-m", "dblp.run", "-n", str(n), "--transport", "tcp", "--no-hook", *options,
                 os.path.join(HERE, script), *scenarios.split()], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env={**os.environ, "DDP_FOLDER": folder}) as p:
            try:
                out, err = p.communicate(timeout=max(1, self.end - time.monotonic()))
                status = p.returncode
            except subprocess.TimeoutExpired:
                p.terminate()
                (out, err), status = p.communicate(), None
        lines = [line.split("] ", 1) for line in out.splitlines()]
        return status, [[text for rank, text in lines if rank == f"[{r}"] for r in range(n)], err

    def row(self, name, good, figure, bar, err):
        self.rows += 1
        self.bad += not good
        print(f"{name:54} {'ok' if good else 'FAILED':7} {figure:28} {bar}".rstrip(), flush=True)
        for line in err.splitlines()[-15:] if not good else ():
            print("    " + line)

    def same(self, name, n, scenarios, *options, status=0, lines=None):
        """All ranks that print anything print the same lines"""
        if self.wanted(name):
            got, out, err = self.ranks(n, "ddp.py", scenarios, *options)
            said = [line for line in out if line] if status else out
            good = got == status and all(line == said[0] for line in said) and said and said[0]
            self.row(name, good and said[0] == (lines or said[0]), lines[0] if lines else "equal", "", err)

    def figures(self, n, *checks):
        """Of each scenario, rank 0 prints a line, which begins with a number. Checks have a name, a scenario and a bar"""
        checks = [check for check in checks if self.wanted(check[0])]
        if not checks:
            return
        _, out, err = self.ranks(n, "gpu.py", " ".join(check[1] for check in checks), "--job", "7")
        for (name, _, bar), line in itertools.zip_longest(checks, out[0][:len(checks)], fillvalue="none"):
            self.row(name, line != "none" and (FAKE or within(float(line.split()[0]), bar)), line, bar, err)


def find():
    """The name of the device: that of DDP_DEVICE, else of the GPU that PyTorch finds here, or None"""
    if NAME != "cpu":
        return NAME
    if hasattr(torch, "accelerator"):
        return torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else None
    found = [name for name in ("cuda", "xpu") if hasattr(torch, name) and getattr(torch, name).is_available()]
    return found[0] if found else None


def main(names=()):
    """Print the table; return the exit status: 4, as of other skipped tests, without a GPU"""
    name = find()
    if name is None:
        text = f"PyTorch {torch.__version__} finds no GPU on this machine: nothing was tested"
        print(f"TAP version 13\n1..0 # SKIP {text}", flush=True)
        print(f"run --cuda: SKIPPED: {text}", file=sys.stderr)
        return 4
    os.environ["DDP_DEVICE"] = name
    card = "a device in memory of the CPU, whose bars are not checked" if FAKE else getattr(torch, name).get_device_name(0)
    print(f"{card}; PyTorch {torch.__version__}; ranks share the device; process group gloo, transport tcp", flush=True)
    table = Table(names)
    table.same("options and types of DDP, 2 ranks: the bits of Gloo", 2, "matrix", lines=["the same 96"])
    table.same("buckets, no_sync(), join(), lanes, 3 ranks", 3, "lanes plain rebuilt no_sync join")
    table.same("loss scale, fp16, sparse, copies, 2 ranks", 2, "sparse swapped scaled fp16 two copied")
    table.same("norms for the job, 3 ranks", 3, "norms", "--job", "7", "--norms", "3")
    table.same("a rank ends in backward(), 4 ranks: all others fail", 4, "crash", status=7, lines=["error 1"])
    table.figures(4, ("autocast and GradScaler with an overflow, 4 ranks", "amp", "<= 1e-3"),
                  ("a sum is back during backward(), by events, 4 ranks", "overlap", ""),
                  ("hooks return while the device is busy, 4 ranks", "unsynchronised", ""),
                  ("time added to backward(), as part of Gloo's, 4 ranks", "speed", "<= 0.7"))
    table.figures(1, ("staging, as part of plain pinned copies", "rate", ">= 0.8"))
    print(f"{table.rows - table.bad} of {table.rows} passed, {MOST - table.end + time.monotonic():.0f} s")
    return 1 if table.bad or not table.rows else 0


if __name__ == "__main__":
    dist.init_process_group("gloo")
    for scenario in sys.argv[1:]:
        globals()[scenario]()
        gc.collect()
