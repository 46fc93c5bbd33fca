# SPDX-License-Identifier: GPL-2.0-only
"""
A rank of torch_ddp.py and torch-dblp.py, under dblp-run: ddp.py SCENARIO... Tests check its
output.
"""

import contextlib
import copy
import datetime
import gc
import hashlib
import io
import itertools
import os
import pickle
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_wrapper
from torch.nn.parallel import DistributedDataParallel as DDP

import dblp.torch
from device import DEVICE, FAKE

ROUNDS = 6
# Budget of comparisons with Gloo: over TCP nothing is lost, whatever the budget is
BUDGET = os.environ.get("DDP_BUDGET", "10%")
# With the default size, all parameters of these models are in one bucket
dist._DEFAULT_FIRST_BUCKET_BYTES = 1000


class Model(nn.Module):
    """Parameters of many sizes, in buckets of many sizes; one branch is not always used"""

    def __init__(self):
        super().__init__()
        self.sizes = nn.Sequential(*(nn.Linear(a, b) for a, b in ((10, 3), (3, 400), (400, 7), (7, 1))))
        self.rare = nn.Linear(10, 1)

    def forward(self, x, rare=False):
        y = self.sizes(x)
        return y + self.rare(x) if rare else y


def make(**how):
    """A DDP with the same parameters on all ranks, and several buckets, of 1 kB"""
    torch.manual_seed(1)
    ddp = DDP(Model().to(DEVICE), bucket_cap_mb=0.001, find_unused_parameters=True, **how)
    return ddp, torch.optim.SGD(ddp.parameters(), 0.01, momentum=0.9)


def train(ddp, opt, accumulate=1, rounds=ROUNDS):
    """Data of a rank and round; data and the branches they use differ between ranks"""
    rank = dist.get_rank()
    data = torch.Generator().manual_seed(100 + rank)
    for i in range(rounds):
        opt.zero_grad()
        for part in range(accumulate):
            with ddp.no_sync() if part < accumulate - 1 else contextlib.nullcontext():
                x = torch.randn(16, 10, generator=data).to(DEVICE)
                # In one round no rank uses the branch, in others some ranks do
                ddp(x, rare=i % 3 and (i + rank) % 2).square().mean().backward()
        opt.step()


def digest(ddp):
    data = b"".join(p.detach().cpu().numpy().tobytes() for p in ddp.module.parameters())
    return hashlib.sha256(data).hexdigest()


def apart(a, b):
    """The largest difference of two models' parameters"""
    return max((p - q).abs().max().item() for p, q in zip(a.module.parameters(), b.module.parameters()))


def against_gloo(state_of, accumulate=1, most=1e-5):
    """Repeat the training by Gloo; print the digest of the replica, and fail if both differ"""
    gloo, ours = make(), make()
    state = state_of(ours[0])
    for pair in gloo, ours:
        train(*pair, accumulate)
    assert apart(gloo[0], ours[0]) <= most, apart(gloo[0], ours[0])
    assert state.error is None and state.missing == 0
    assert state.buckets > ROUNDS and state.asked > 0
    print(digest(ours[0]))
    return state


def plain():
    state = against_gloo(lambda ddp: dblp.torch.register(ddp, BUDGET))
    # Each bucket is summed once in each round
    assert state.buckets % ROUNDS == 0, state.buckets


def lanes():
    """One lane for biases, one for the largest other elements, and one for the rest"""
    three = [dblp.Lane(large="30%", rest=2, budget=0), dblp.Lane(tos=40, priority=4), dblp.Lane(ect=False)]
    state = against_gloo(lambda ddp: dblp.torch.register(ddp, BUDGET, lanes=three,
                                                         lane_of=lambda p: int(p.dim() == 1)))
    assert state.comm.lanes == 3


def rebuilt():
    """Without unused parameters DDP makes new buckets after the first round"""
    models = []
    for _ in range(2):
        torch.manual_seed(1)
        models.append(DDP(nn.Sequential(*(nn.Linear(30, 30) for _ in range(8))).to(DEVICE), bucket_cap_mb=0.01))
    state = dblp.torch.register(models[1], BUDGET)
    for ddp in models:
        opt = torch.optim.SGD(ddp.parameters(), 0.05)
        data = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(ROUNDS):
            opt.zero_grad()
            ddp(torch.randn(4, 30, generator=data).to(DEVICE)).square().mean().backward()
            opt.step()
    assert models[1]._has_rebuilt_buckets
    assert apart(*models) < 1e-5, apart(*models)
    print(digest(models[1]))


class Typed(nn.Module):
    """Parameters of a type, for which this processor need not have a matrix product"""

    def __init__(self, dtype):
        super().__init__()
        self.front = nn.Parameter(torch.randn(40, 10).to(dtype))
        self.rare = nn.Parameter(torch.randn(3, 10).to(dtype))
        self.back = nn.Parameter(torch.randn(1, 40).to(dtype))

    def forward(self, x, rare=False):
        y = nn.functional.linear(x, self.front.float()).tanh()
        y = nn.functional.linear(y, self.back.float())
        return y + nn.functional.linear(x, self.rare.float()).sum(1, keepdim=True) if rare else y


def pair_of(model_of, **how):
    """The same model twice: one for Gloo, and one for dblp"""
    models = []
    for _ in range(2):
        torch.manual_seed(1)
        models.append(DDP(model_of().to(DEVICE), **how))
    state = dblp.torch.register(models[1], BUDGET)
    return [(ddp, torch.optim.SGD(ddp.parameters(), 0.01, momentum=0.9)) for ddp in models], state


def matrix():
    """Options of DDP. With two ranks each sum is that of two numbers, and has the bits of Gloo"""
    runs = 0
    for dtype in torch.float32, torch.float64, torch.float16:
        for static, unused, view, small, parts in itertools.product((False, True), repeat=5):
            how = dict(static_graph=static, find_unused_parameters=unused, gradient_as_bucket_view=view,
                       **(dict(bucket_cap_mb=0.001) if small else {}))
            pairs, state = pair_of(lambda dtype=dtype: Typed(dtype), **how)
            data = torch.Generator().manual_seed(100 + dist.get_rank())
            for i in range(4):
                # A static graph always uses the same branches; without `unused` all branches are used
                rare = not unused or (not static and i % 2 == dist.get_rank())
                for part in range(1 + parts):
                    x = torch.randn(4, 10, generator=data).to(DEVICE)
                    for ddp, opt in pairs:
                        if not part:
                            opt.zero_grad()
                        # A static graph allows this from its second round on
                        with ddp.no_sync() if parts and not part and i else contextlib.nullcontext():
                            ddp(x, rare=rare).square().mean().backward()
                for _, opt in pairs:
                    opt.step()
            assert digest(pairs[0][0]) == digest(pairs[1][0]), (dtype, how, parts, apart(pairs[0][0], pairs[1][0]))
            assert state.error is None and state.buckets, (dtype, how)
            runs += 1
    print("the same", runs)


class Rows(nn.Module):
    """Sparse and dense gradients"""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(50, 4, sparse=True)
        self.dense = nn.Linear(4, 3)

    def forward(self, i):
        return self.dense(self.rows(i)).square().mean()


def sparse():
    """Gradients that libdblp cannot sum use PyTorch's own path, with one warning"""
    pairs, state = pair_of(Rows)
    data = torch.Generator().manual_seed(100 + dist.get_rank())
    for _ in range(4):
        i = torch.randint(50, (6,), generator=data).to(DEVICE)
        for ddp, _ in pairs:
            ddp.zero_grad()
            ddp(i).backward()
            with torch.no_grad():
                for p in ddp.parameters():
                    p -= 0.1 * (p.grad.to_dense() if p.grad.is_sparse else p.grad)
    assert digest(pairs[0][0]) == digest(pairs[1][0])
    assert state.buckets >= 4 and state.error is None
    print("sparse")


def refuses_to_divide(ddp):
    """Sums are divided by the number of ranks, also when some have joined"""
    try:
        with ddp.join(divide_by_initial_world_size=False):
            raise AssertionError("was not refused")
    except ValueError as e:
        assert "divide_by_initial_world_size" in str(e), e


def join():
    """Ranks have different numbers of batches, and the last one none"""
    pairs, state = pair_of(Model, find_unused_parameters=True, bucket_cap_mb=0.001)
    rank = dist.get_rank()
    batches = 0 if rank == dist.get_world_size() - 1 else 3 + 2 * rank
    data = torch.Generator().manual_seed(100 + rank)
    inputs = [torch.randn(4, 10, generator=data).to(DEVICE) for _ in range(batches)]
    copied = copy.deepcopy(pairs[1][0])
    pairs.append((copied, torch.optim.SGD(copied.parameters(), 0.01, momentum=0.9)))
    for ddp, opt in pairs:
        with ddp.join():
            for x in inputs:
                opt.zero_grad()
                ddp(x, rare=True).square().mean().backward()
                opt.step()
    for ddp, _ in pairs[1:]:
        assert apart(pairs[0][0], ddp) < 1e-5
        refuses_to_divide(ddp)
    by_hand = make()[0]
    by_hand.register_comm_hook(dblp.torch.State(), dblp.torch.hook)
    refuses_to_divide(by_hand)
    assert state.buckets
    print(digest(pairs[1][0]), digest(copied))


def swapped():
    """Rank 0 moves its parameters to other memory, as after an evaluation with averages of parameters"""
    pairs, state = pair_of(Model, find_unused_parameters=True)
    for _ in range(3):
        for ddp, opt in pairs:
            train(ddp, opt, rounds=2)
        if not dist.get_rank():
            for p in pairs[1][0].parameters():
                p.data = p.data.clone()
    assert apart(pairs[0][0], pairs[1][0]) < 1e-5 and state.error is None
    print(digest(pairs[1][0]))


def copied():
    """Copies of a DDP use dblp as well, or warn"""
    pairs, state = pair_of(Model, find_unused_parameters=True)
    train(*pairs[1], rounds=2)
    before = state.buckets
    stored = io.BytesIO()
    torch.save(pairs[1][0], stored)
    stored.seek(0)
    begun = []
    begin = state.comm._begin
    state.comm._begin = lambda *args: begun.append(1) or begin(*args)
    for copy_of in copy.deepcopy(pairs[1][0]), torch.load(stored, weights_only=False):
        train(copy_of, torch.optim.SGD(copy_of.parameters(), 0.01), rounds=2)
        assert begun and state.buckets == before, (len(begun), state.buckets)
        begun.clear()
        print(digest(copy_of))
    other = DDP(nn.Linear(2, 2))
    dblp.torch.register(other, lane_of=lambda _p: 0)
    other = pickle.loads(pickle.dumps(other))
    for _ in range(2):
        other(torch.ones(1, 2)).sum().backward()
    assert not begun
    print("copied")


class Scaler:
    """A loss scale that an overflow halves, as in GradScaler"""

    def __init__(self, scale):
        self.scale, self.halved = scale, 0

    def get_scale(self):
        return self.scale

    def update(self, overflow):
        self.halved += overflow
        self.scale *= 0.5 if overflow else 1


def scaled():
    """
    A linear loss: each gradient is c. One round is infinite on one rank, and the scale changes.
    After that, each element of the applied steps has the sum of all rounds.
    """
    c, count, model = 0.5, 0, nn.Linear(300, 300).to(DEVICE)
    ddp, scaler = DDP(model), Scaler(2.0 ** 16)
    state = dblp.torch.register(ddp, "10%", policy="eager", scaler=scaler)
    applied = [torch.zeros_like(p) for p in model.parameters()]
    for i in range(2 * ROUNDS):
        ddp.zero_grad()
        if i == ROUNDS:
            scaler.scale = 2.0 ** 10
        if i == 2 * ROUNDS - 1:
            # This round adds the remaining residuals
            state.how.update(budget=0)
        bad = float("inf") if i == 2 and not dist.get_rank() else 1
        (ddp(torch.full((1, 300), c).to(DEVICE)).sum() * scaler.scale * bad).backward()
        overflow = not all(p.grad.isfinite().all() for p in model.parameters())
        if not overflow:
            count += 1
            for total, p in zip(applied, model.parameters()):
                total += p.grad / scaler.scale
        scaler.update(overflow)
    # Elements of the omitted round are missing, or counted twice
    most = max((total / count - each).abs().max().item() * count / each
               for total, each in zip(applied, (c, 1)))
    assert scaler.halved == 1 and most <= 1 + 1e-3, (scaler.halved, most)
    assert state.missing or "over dblp" not in state.comm.describe()
    print(f"scaled {digest(ddp)}")


def again():
    """Process groups one after another, in the same process: nothing of a former one remains"""
    found = []
    for i in range(5):
        dist.destroy_process_group()
        # Pinned memory is freed with the communicator
        assert not FAKE or (not FAKE.nbytes and FAKE.allocated >= i), (FAKE.buffers, FAKE.allocated)
        dist.init_process_group("gloo", init_method=f"file://{os.environ['DDP_FOLDER']}/{i}",
                                rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
        ddp, opt = make()
        state = dblp.torch.register(ddp, "2%")
        train(ddp, opt)
        assert state.buckets and state.error is None
        said = digest(ddp)
        del ddp, opt, state
        gc.collect()
        found.append((len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
    print("again", said)
    # Gloo closes its own descriptors some time later, and PyTorch 2 keeps those of one group
    assert all(last - second < len(found) - 2 for second, last in zip(found[1], found[-1])), found


def alone():
    """Rank 0 makes a first pass alone, while the others wait for it in another call"""
    ddp, opt = make()
    with torch.no_grad():
        if not dist.get_rank():
            ddp.eval()(torch.ones(1, 10))
    dist.barrier()
    ddp.train()
    train(ddp, opt)
    print(digest(ddp))


def uneven():
    """As join(), by a script without dblp"""
    ddp, _ = make()
    refuses_to_divide(ddp)
    for model in ddp, copy.deepcopy(ddp):
        opt = torch.optim.SGD(model.parameters(), 0.01)
        with model.join():
            for _ in range(3 * dist.get_rank()):
                opt.zero_grad()
                model(torch.ones(4, 10), rare=True).square().mean().backward()
                opt.step()
    print(digest(ddp), digest(model))


def skewed():
    """One rank is later than the join limit of libdblp, but within the limit of the process group"""
    ddp, opt = make()
    dblp.torch.register(ddp)
    if dist.get_rank():
        time.sleep(3)
    train(ddp, opt)
    print(digest(ddp))


def interrupted():
    """Rank 1 never begins its second backward pass; rank 0 waits there for it, and is interrupted"""
    ddp, opt = make()
    state = dblp.torch.State()
    last = threading.Event()

    def noting(state, bucket):
        if bucket.is_last():
            last.set()
        return dblp.torch.hook(state, bucket)

    def interrupt():
        last.wait()
        # If rank 0 does not wait in Python, it has left Python by then
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    ddp.register_comm_hook(state, noting)
    train(ddp, opt, rounds=1)
    if dist.get_rank():
        time.sleep(1000)
    last.clear()
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        train(ddp, opt, rounds=1)
    except (KeyboardInterrupt, RuntimeError) as e:
        # PyTorch converts the exception to a RuntimeError
        assert "KeyboardInterrupt" in repr(e), e
        assert isinstance(state.error, KeyboardInterrupt), state.error
        print("interrupted", flush=True)
        os._exit(7)


def stalled():
    """Rank 1 never begins its second backward pass: others fail at the limit of operations"""
    group = dist.new_group(timeout=datetime.timedelta(seconds=600))
    # Which is that of the process group, unless it is set
    assert dblp.groups.timeout_ms(group) == 600000
    ddp, opt = make(process_group=group)
    state = dblp.torch.register(ddp, options=dict(operation_ms=6000))
    train(ddp, opt, rounds=1)
    if dist.get_rank() == 1:
        time.sleep(1000)
    try:
        train(ddp, opt, rounds=1)
    except (OSError, RuntimeError):
        print(state.error.ranks, state.error.why.partition(": ")[2], flush=True)
        os._exit(7)


def elastic():
    """Rank 1 raises in round 5 of the first start, and in round 7 of the second; torchrun restarts all"""
    start = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    rank = dist.get_rank()
    ddp, opt = make()
    state = dblp.torch.register(ddp, "2%")
    path = os.path.join(os.environ["DDP_FOLDER"], "checkpoint")
    first = 0
    if os.path.exists(path):
        kept = torch.load(path)
        ddp.load_state_dict(kept["model"])
        opt.load_state_dict(kept["opt"])
        first = kept["round"]
    for i in range(first, 10):
        if rank == 1 and (start, i) in ((0, 5), (1, 7)):
            raise ArithmeticError(f"in round {i}")
        train(ddp, opt, rounds=1)
        dist.barrier()
        if not rank:
            torch.save({"model": ddp.state_dict(), "opt": opt.state_dict(), "round": i + 1}, path + ".new")
            os.rename(path + ".new", path)
        dist.barrier()
    assert state.error is None and f"epoch {start}," in state.comm.describe(), state.comm.describe()
    print(f"from round {first} on, start {start}: {digest(ddp)}")


def lossy():
    """A model with messages of many segments: all ranks miss data, and get the same sums"""
    torch.manual_seed(1)
    ddp = DDP(nn.Linear(300, 300))
    state = dblp.torch.register(ddp, "10%", policy="eager")
    opt = torch.optim.SGD(ddp.parameters(), 0.05)
    data = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(ROUNDS):
        opt.zero_grad()
        ddp(torch.randn(4, 300, generator=data)).square().mean().backward()
        opt.step()
    assert state.error is None and 0 < state.missing <= state.asked // 10, (state.missing, state.asked)
    print(digest(ddp))


def norms():
    """The first rank of each host reports the mean norm of its own gradients every three rounds"""
    told, own = [], []
    if dist.get_rank() == 2:
        dblp.job._host = lambda: b"another "
    dblp.torch.report_norm = lambda job, norm: told.append((job, norm))
    model = Model().to(DEVICE)
    ddp = DDP(model, bucket_cap_mb=0.001)
    state = dblp.torch.register(ddp)
    data = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(7):
        x = torch.randn(4, 10, generator=data).to(DEVICE)
        with ddp.no_sync():
            ddp.zero_grad()
            ddp(x, rare=True).square().mean().backward()
        own.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item())
        ddp.zero_grad()
        ddp(x, rare=True).square().mean().backward()
    assert state.buckets > 2 * 7, state.buckets
    first = dist.get_rank() != 1
    assert len(told) == 2 * first, told
    for (job, norm), mine in zip(told, (own[:3], own[3:6])):
        assert job == 7 and abs(norm - sum(mine) / 3) < 1e-4 * norm, (norm, mine)
    told.clear()
    # A norm that is NaN is omitted, with a warning
    for scale in 1, float("nan"), 1, 1:
        ddp.zero_grad()
        (ddp(x, rare=True).square().mean() * scale).backward()
    assert len(told) == first and all(norm < float("inf") for _, norm in told), told
    print("norms")


def no_sync():
    against_gloo(lambda ddp: dblp.torch.register(ddp, BUDGET, rule="bubble", algo="ring"), accumulate=3)


def fp16():
    def register(ddp):
        state = dblp.torch.State(dblp.torch.communicator(), BUDGET)
        ddp.register_comm_hook(state, fp16_compress_wrapper(dblp.torch.hook))
        return state

    against_gloo(register, most=1e-2)


def two():
    """Two models in turn on one communicator, as in adversarial training"""
    gloo, ours = [make(), make()], [make(), make()]
    states = [dblp.torch.register(ddp, "2%") for ddp, _ in ours]
    assert states[0].comm is states[1].comm
    for pair in gloo, ours:
        for _ in range(2):
            train(*pair[0], rounds=2)
            train(*pair[1], rounds=3)
    for (a, _), (b, _) in zip(gloo, ours):
        assert apart(a, b) < 1e-5
        print(digest(b))


def group():
    """A process group of some ranks"""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = halves[dist.get_rank() // 2]
    gloo, ours = make(process_group=mine), make(process_group=mine)
    state = dblp.torch.register(ours[0])
    assert (state.comm.rank, state.comm.nranks) == (dist.get_rank() % 2, 2)
    for pair in gloo, ours:
        train(*pair)
    assert apart(gloo[0], ours[0]) < 1e-5
    print(digest(ours[0]))
    # Rank 0 has the store, by which other ranks may still find each other
    dist.barrier()


def some():
    """Ranks 0 and 1 train by a process group of their own, and then all ranks by that of all"""
    pair = dist.new_group([0, 1])
    for group in [pair, None] if dist.get_rank() < 2 else [None]:
        ddp, opt = make(process_group=group)
        dblp.torch.register(ddp)
        train(ddp, opt)
    print(digest(ddp))
    dist.barrier()


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(_ctx, x):
        return x.clone()

    @staticmethod
    def backward(_ctx, _grad):
        raise ArithmeticError("in backward")


def crash():
    """The backward pass of rank 1 raises and the rank ends; the others fail with its number"""
    ddp, opt = make()
    state = dblp.torch.register(ddp, "2%")
    train(ddp, opt)
    x = ddp(torch.ones(1, 10, requires_grad=True).to(DEVICE), rare=True)
    try:
        (Bad.apply(x) if dist.get_rank() == 1 else x).sum().backward()
    except ArithmeticError:
        os._exit(7)
    except RuntimeError as e:
        assert "rank 1 has failed" in str(e), e
    print(f"error {state.error.rank}", flush=True)
    # The launcher must see the end of rank 1 first
    time.sleep(1000)


def unbegun():
    """A lane that does not exist, on rank 1 only: the others fail at once"""
    ddp, opt = make()
    rank = dist.get_rank()
    state = dblp.torch.register(ddp, lane_of=lambda _p: rank)
    try:
        train(ddp, opt)
    except (OSError, RuntimeError):
        if rank:
            assert "no such lane" in str(state.error), state.error
            time.sleep(1000)
        print(f"error {state.error.rank}", flush=True)
        os._exit(7)


def differ():
    """Ranks with different attributes"""
    ddp, opt = make()
    state = dblp.torch.register(ddp, "2%" if dist.get_rank() else "3%")
    try:
        train(ddp, opt)
    except Exception:  # pylint: disable=broad-except
        print("error", state.error)


def refused():
    ddp, _ = make()
    comm = dblp.torch.communicator()
    for how, reason in ((dict(budget="2"), "no unit"), (dict(rule="best"), "is not one of bubble"),
                        (dict(algo="average"), "does not sum over all"), (dict(key=1), "key is set by"),
                        (dict(norms=3), "a communicator with a job"), (dict(norms=-1), "norms -1 is not within"),
                        (dict(bucket=1), "bucket")):
        try:
            dblp.torch.register(ddp, comm=comm, **how)
            print("was not refused:", how)
        except (TypeError, ValueError) as e:
            assert reason in str(e), e
    other, job, lanes = DDP(nn.Linear(2, 2)), dict(job=3), [dblp.Lane(budget=0)]
    for how, reason in ((dict(options=job), "with job None, not 3"), (dict(lanes=lanes), "with lanes"),
                        (dict(options=dict(ports="40000-40100")), "with ports None, not 40000-40100")):
        try:
            dblp.torch.register(other, **how)
            print("was not refused:", how)
        except ValueError as e:
            assert reason in str(e), e
    group = dist.new_group()
    dblp.torch.register(DDP(nn.Linear(2, 2), process_group=group), norms=3, options=job)
    dblp.torch.register(ddp, lanes=[dblp.Lane()], options=dict(epoch=0, timeout_ms=0))
    try:
        dblp.torch.register(ddp)
        print("was registered twice")
    except RuntimeError as e:
        assert "once" in str(e), e
    print("refused")


class Buffered(nn.Module):
    """With buffers of floats and of integers, and a parameter without a gradient"""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 300), nn.BatchNorm1d(300), nn.Linear(300, 1))
        self.scale = nn.Parameter(torch.randn(7).bfloat16())
        self.still = nn.Parameter(torch.randn(3), requires_grad=False)

    def forward(self, x):
        return self.layers(x) * self.scale.float().sum()


def everything(model):
    return torch.cat([t.detach().double().reshape(-1) for t in model.state_dict().values()])


def gathered(vector):
    """The values of all ranks, by Gloo"""
    every = [torch.empty_like(vector) for _ in range(dist.get_world_size())]
    dist.all_gather(every, vector)
    return every


def drift(model):
    """Maximum difference of the parameters of replicas from their mean"""
    every = torch.stack(gathered(torch.cat([p.detach().double().reshape(-1) for p in model.parameters()])))
    return (every - every.mean(0)).norm(dim=1).max().item()


def trained(groups):
    """Train replicas on data of their own; return the largest drift, and the averager, if any"""
    torch.manual_seed(1)
    model = Model()
    averager = dblp.torch.Averager(model, groups) if groups else None
    opt = torch.optim.SGD(model.parameters(), 0.002)
    data = torch.Generator().manual_seed(100 + dist.get_rank())
    most = 0
    for _ in range(40):
        opt.zero_grad()
        x = torch.randn(16, 10, generator=data)
        (model(x, rare=True) - x.sum(1, keepdim=True)).square().mean().backward()
        opt.step()
        if averager:
            averager.average()
        most = max(most, drift(model))
    return model, most, averager


def averager():
    """Four ranks: 0 and 1, 2 and 3; then 0 and 2, 1 and 3; and so on"""
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = Buffered()
    model.layers[1].num_batches_tracked.fill_(rank)
    ours = dblp.torch.Averager(model, groups=(2, 2))
    start = everything(model)
    torch.manual_seed(0)
    assert torch.equal(start, everything(Buffered()))
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(rank)
        model.layers[1].running_mean.fill_(rank)
        model.layers[1].num_batches_tracked.fill_(5 + rank)
    for turn, mean in enumerate(((0.5, 0.5, 2.5, 2.5), (1.5,) * 4, (1.5,) * 4)):
        ours.average()
        assert ours.turns == turn + 1
        for p in model.parameters():
            want = mean[rank] if p.requires_grad else rank
            assert (p == want).all(), (turn, p, want)
    assert (model.layers[1].running_mean == rank).all()
    ours.finish()
    assert (model.still == 1.5).all() and (model.layers[1].running_mean == 1.5).all()
    assert model.layers[1].num_batches_tracked == 5
    # Nothing is lost over TCP
    assert ours.asked > 0 and ours.missing == 0


def shuffled():
    """Replicas stay near each other, and are equal at the end"""
    alone = trained(None)[1]
    model, most, ours = trained((2, 2))
    every = gathered(everything(model))
    rank = dist.get_rank()
    # The last turn was over ranks that are 2 apart
    assert torch.equal(every[rank], every[rank ^ 2])
    assert not torch.equal(every[rank], every[rank ^ 1])
    assert 0 < most < alone / 3, (most, alone)
    ours.finish()
    print(hashlib.sha256(everything(model).numpy().tobytes()).hexdigest())


def averager_refused():
    comm = dblp.torch.communicator()
    model = nn.Linear(2, 2)
    for wrong, how, reason in ((DDP(model), {}, "give its module"), (nn.Linear(2, 2).to(torch.complex64), {}, "weight is torch.complex64"),
                               (nn.Linear(2, 2, device="meta"), {}, "weight is torch.strided on meta"),
                               (model, dict(groups=(2, 2)), "is not 2, the number of ranks"),
                               (model, dict(groups=()), "is not 2, the number of ranks"),
                               (model, dict(groups=(-1, -2)), "is not 2, the number of ranks"),
                               (model, dict(budget="2"), "no unit"), (model, dict(rule="bubble"), "rule")):
        try:
            dblp.torch.Averager(wrong, comm=comm, **how)
            print("was not refused:", how)
        except (TypeError, ValueError) as e:
            assert reason in str(e), e
    # No operation has begun on only some ranks
    dblp.torch.Averager(model, comm=comm).finish()
    print("refused")


def unmodified():
    """A script without dblp, which is imported above only for the other scenarios"""
    ddp, opt = make()
    train(ddp, opt)
    print(digest(ddp))


def own():
    """A script with a hook of its own"""
    def mine(_state, bucket):
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    ddp, opt = make()
    ddp.register_comm_hook(None, mine)
    train(ddp, opt)
    assert digest(ddp)
    print("own")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    for scenario in sys.argv[1:]:
        globals()[scenario]()
    assert not FAKE or FAKE.allocated
