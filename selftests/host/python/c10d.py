# SPDX-License-Identifier: GPL-2.0-only
"""
A rank of torch_c10d.py and torch-dblp.py, under dblp-run: c10d.py SCENARIO... The default process
group has the backend dblp; Gloo is for comparison. With two ranks each sum is that of two numbers,
and has the bits of Gloo.
"""

import contextlib
import hashlib
import itertools
import os
import signal
import sys
import threading
import unittest.mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

import dblp.torch
from common import until

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from fsdp_cpu import patched

ROUNDS = 4


class Model(nn.Module):
    """Parameters whose sizes the number of ranks does not divide"""

    def __init__(self, dtype=torch.float32, width=31):
        super().__init__()
        self.front, self.back, self.rare = nn.Linear(10, width), nn.Linear(width, 1), nn.Linear(10, 1)
        self.to(dtype)

    def forward(self, x, rare=False):
        y = self.back(self.front(x).tanh())
        return y + self.rare(x) if rare else y


def trained(wrap, model=Model, rounds=ROUNDS, rare=None, make_opt=None):
    """Train a model that `wrap` distributes; returns its parameters"""
    torch.manual_seed(1)
    inner = model()
    dtype = next(inner.parameters()).dtype
    wrapped = wrap(inner)
    opt = (make_opt or (lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)))(wrapped.parameters())
    data = torch.Generator().manual_seed(100 + dist.get_rank())
    for i in range(rounds):
        opt.zero_grad()
        x = torch.randn(8, 10, generator=data).to(dtype)
        wrapped(x, rare=rare is None or bool(rare(i))).square().mean().backward()
        opt.step()
    return torch.cat([full(p).detach().reshape(-1) for p in wrapped.parameters()])


def full(p):
    return p.full_tensor() if hasattr(p, "full_tensor") else p


def digest(t):
    return hashlib.sha256(t.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def same(ours, gloos, most=0.0):
    """Print the digest of replicas, which are those of Gloo"""
    off = (ours.double() - gloos.double()).abs().max().item()
    assert off <= most and ours.isfinite().all(), off
    print(digest(ours))


def held():
    """Sockets of this process, and threads of dblp"""
    found = {thread for thread in threading.enumerate() if thread.name.startswith("dblp")}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{fd}"))
    return {one for one in found if not isinstance(one, str) or one.startswith("socket:")}


def gloo():
    return dist.new_group(backend="gloo")


def matrix():
    """Options of DDP, and types"""
    other, runs = gloo(), 0
    for dtype in torch.float32, torch.float64, torch.float16, torch.bfloat16:
        for static, unused, view, small in itertools.product((False, True), repeat=4):
            how = dict(static_graph=static, find_unused_parameters=unused, gradient_as_bucket_view=view,
                       **(dict(bucket_cap_mb=0.001) if small else {}))
            # A static graph always uses the same branches; without `unused` all branches are used
            rare = (lambda i: (i + dist.get_rank()) % 2) if unused and not static else lambda i: True
            ours, theirs = (trained(lambda m, g=g: DDP(m, process_group=g, **how), lambda d=dtype: Model(d), rare=rare)
                            for g in (None, other))
            assert torch.equal(ours, theirs), (dtype, how)
            runs += 1
    print("the same", runs)


def sharded(mesh, **how):
    fully_shard = patched()

    def wrap(model):
        for part in model.front, model.back:
            fully_shard(part, mesh=mesh, **how)
        return fully_shard(model, mesh=mesh, **how)
    return wrap


def fsdp():
    """FSDP2, with and without freeing parameters after the forward pass, has the sums of DDP"""
    n, other = dist.get_world_size(), gloo()
    ddp = trained(lambda m: DDP(m, process_group=other))
    for reshard in True, False:
        same(trained(sharded(init_device_mesh("cpu", (n,)), reshard_after_forward=reshard)), ddp, 0 if n == 2 else 1e-6)


def registered():
    """The budget of FSDP2 is for gradients only"""
    n, budgets = dist.get_world_size(), []
    group = dist.group.WORLD
    begin = group.comm._begin

    def note(function, address, count, how, keep):
        budgets.append((function.__name__, how.budget))
        return begin(function, address, count, how, keep)

    def wrap(model):
        module = sharded(init_device_mesh("cpu", (n,)))(model)
        assert dblp.torch.register(module, "2%").budget == "2%"
        return module

    group.comm._begin = note
    trained(wrap, rounds=1)
    assert set(budgets) == {("dblp_reduce_scatter", 20000), ("dblp_allgather", 0)}, budgets
    for how, why in ((dict(budget="2"), "no unit"), (dict(budget="auto"), "'auto' is for the hook of a DDP"),
                     (dict(rule="feedback"), "which vectors belong together"), (dict(norms=3), "norms")):
        try:
            dblp.torch.register(wrap(Model()), **how)
            print("was not refused:", how)
        except (TypeError, ValueError) as e:
            assert why in str(e), e
    try:
        dblp.torch.register(sharded(DeviceMesh.from_group(gloo(), "cpu"))(Model()), "2%")
        print("was not refused: gloo")
    except TypeError as e:
        assert "backend gloo, and this PyTorch has no set_custom_reduce_scatter()" in str(e), e
    print("registered")


def custom():
    """
    Gradients of a module whose process group has another backend go by set_custom_reduce_scatter(), which
    a later PyTorch has: these stand for it
    """
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives

    other, scatters, before = gloo(), {}, set()

    def reduce_scatter_tensor(output, input, group, op, **_how):
        [scatter] = set(scatters.values())
        like = scatter.allocate((output.numel(),), dtype=output.dtype, device=output.device)
        assert (like.shape, like.dtype, like.device) == (output.shape, output.dtype, output.device)
        assert group is other
        scatter(output_tensor=output, input_tensor=input, group=group, op=dist.ReduceOp.AVG)

    def wrap(model):
        module = sharded(DeviceMesh.from_group(other, "cpu"))(model)
        before.update(held())
        dblp.torch.register(module, "0%")
        return module

    FSDPModule.set_custom_reduce_scatter = lambda self, scatter: scatters.__setitem__(self, scatter)
    with unittest.mock.patch.object(collectives.dist, "reduce_scatter_tensor", reduce_scatter_tensor):
        same(trained(wrap), trained(lambda m: DDP(m, process_group=other)))
    # Those of the model, and of its parts that are sharded
    assert len(scatters) == 3, scatters
    opened = held() - before
    assert opened
    dist.destroy_process_group(other)
    until(lambda: not opened & held())


def hsdp():
    """Shards over two ranks, replicas over the others"""
    n, other = dist.get_world_size(), gloo()
    mesh = init_device_mesh("cpu", (n // 2, 2), mesh_dim_names=("replicate", "shard"))
    assert {dist.get_backend(mesh.get_group(i)) for i in range(2)} == {"dblp"}
    same(trained(sharded(mesh)), trained(lambda m: DDP(m, process_group=other)), 1e-6)


def zero():
    """ZeRO-1: each rank has a part of the optimiser's state"""
    other = gloo()
    ours, gloos = (trained(lambda m, g=g: DDP(m, process_group=g),
                           make_opt=lambda p, g=g: ZeroRedundancyOptimizer(p, torch.optim.Adam, process_group=g, lr=0.01))
                   for g in (dist.group.WORLD, other))
    same(ours, gloos, 0 if dist.get_world_size() == 2 else 1e-6)


def sparse():
    """Gradients of an embedding are sparse tensors"""
    class Words(Model):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(50, 10, sparse=True)

        def forward(self, x, rare=False):
            return super().forward(self.words((x[:, 0] * 10).long() % 50) + x, rare)

    other = gloo()
    for view in False, True:
        same(*(trained(lambda m, g=g, view=view: DDP(m, process_group=g, gradient_as_bucket_view=view), Words,
                       make_opt=lambda p: torch.optim.SGD(p, 0.05)) for g in (None, other)))


def compiled():
    """torch.compile(), without a compiler of C"""
    other = gloo()
    for wrap in (lambda m, g: torch.compile(DDP(m, process_group=g), backend="aot_eager"),
                 lambda m, g: DDP(torch.compile(m, backend="aot_eager"), process_group=g)):
        same(*(trained(lambda m, g=g, wrap=wrap: wrap(m, g)) for g in (None, other)), 0)


def lossy():
    """Sums lose contributions where a block of code allows it, the same ones for all ranks, and nothing else does"""
    n, rank, count = dist.get_world_size(), dist.get_rank(), 300000

    def total(t):
        one = t.double().sum().reshape(1)
        dist.all_reduce(one)
        return one.item()

    lost = 0
    for allowed in "10%", None, "0%", "10%":
        with dblp.torch.lossy(allowed, "bubble", policy="eager") if allowed else contextlib.nullcontext():
            summed, part = torch.ones(count), torch.zeros(count // n)
            dist.all_reduce(summed)
            dist.reduce_scatter_tensor(part, torch.ones(part.numel() * n))
            every = torch.zeros(count)
            dist.all_gather_into_tensor(every, torch.full((count // n,), rank + 1.0))
        assert every.tolist() == [r + 1.0 for r in range(n) for _ in range(count // n)]
        missing = [n * count - summed.double().sum().item(), n * count - total(part)]
        # The contributions that are received: all but each rank's own
        most = 0.1 * (n - 1) * count if allowed == "10%" else 0
        assert all(0 <= m <= most for m in missing), (allowed, missing, most)
        assert not most or all(missing), missing
        lost += sum(missing)
        print(digest(summed))
    assert lost


def killed():
    """Rank 1 ends in the third round; the others name it"""
    # The launcher ends the others, which may not have failed by then
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        trained(lambda m: DDP(m), rounds=10, rare=lambda i: os._exit(7) if (dist.get_rank(), i) == (1, 3) else True)
    except RuntimeError as e:
        print(next(line for line in str(e).splitlines() if "failed" in line), flush=True)
    # The launcher must see the end of rank 1 first
    ended.wait()


if __name__ == "__main__":
    dist.init_process_group("dblp")
    for scenario in sys.argv[1:]:
        globals()[scenario]()
    dist.destroy_process_group()
