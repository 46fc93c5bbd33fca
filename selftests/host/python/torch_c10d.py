# SPDX-License-Identifier: GPL-2.0-only
"""Training by the backend "dblp" of torch.distributed, over TCP. The scenarios of ranks are in c10d.py."""

import os
import sys
import tempfile
import unittest

import torch

from common import torchrun_options
from test_run import ended, run, start

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "c10d.py")
NEW = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6)


def ranks(n, *scenarios, **more):
    return run("-n", str(n), "--transport", "tcp", "--no-hook", SCRIPT, *scenarios, **more)


def said(lines, rank):
    return [line.split("] ", 1)[1] for line in lines if line.startswith(f"[{rank}] ")]


class Test(unittest.TestCase):
    def same(self, n, count, *scenarios):
        """All ranks print so many digests, the same ones; c10d.py compares them with Gloo's"""
        status, out, err = ranks(n, *scenarios)
        self.assertEqual(status, 0, err)
        self.assertEqual(len(said(out, 0)), count, out)
        self.assertEqual([said(out, rank) for rank in range(n)], [said(out, 0)] * n)


class Trainings(Test):
    def test_by_ddp_have_the_bits_of_gloo_with_all_options_and_types(self):
        status, out, err = ranks(2, "matrix")
        self.assertEqual((status, out), (0, ["[0] the same 64", "[1] the same 64"]), err)

    def test_by_fsdp2_with_one_optimizer_and_compiled_have_the_bits_of_gloo(self):
        self.same(2, 2 + 1 + 2 + 2, "fsdp", "zero", "compiled", "sparse")

    def test_by_hybrid_shards_have_the_sums_of_gloo(self):
        self.same(4, 1 + 2, "hsdp", "fsdp")

    def test_by_fsdp2_may_lose_gradients_and_never_parameters(self):
        status, out, err = ranks(2, "registered")
        self.assertEqual((status, out), (0, ["[0] registered", "[1] registered"]), err)

    def test_by_fsdp2_of_another_backend_have_its_own_sums(self):
        self.same(2, 1, "custom")

    def test_that_lose_a_rank_name_it(self):
        status, out, err = ranks(3, "killed")
        self.assertEqual(status, 7, err)
        self.assertIn("rank 1 has failed with exit status 7: the others are ended", err)
        self.assertTrue(out, err)
        for line in out:
            self.assertRegex(line, r"^\[[02]\] .*rank 1 has failed: Connection reset by peer")


#: Without a line of dblp, but for the name of the backend in the environment
UNMODIFIED = """
import os, torch, torch.distributed as dist
dist.init_process_group(os.environ["BACKEND"])
torch.manual_seed(1)
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 3))
if "COMPILED" in os.environ:
    ddp = torch.compile(ddp, backend="aot_eager")
opt = torch.optim.SGD(ddp.parameters(), 0.1)
data = torch.Generator().manual_seed(dist.get_rank())
for _ in range(5):
    opt.zero_grad()
    ddp(torch.randn(4, 20, generator=data)).square().mean().backward()
    opt.step()
# In one call of write(): torchrun lets both ranks write to one pipe
print(f"weights {ddp.module.weight.sum().item()} {dist.get_backend()}\\n", end="", flush=True)
dist.destroy_process_group()
"""


#: FSDP2; one line changes for the backend dblp
SHARDED = """
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(20, 9), torch.nn.Tanh(), torch.nn.Linear(9, 3))
for part in (*model, model):
    fully_shard(part)
opt = torch.optim.SGD(model.parameters(), 0.1)
data = torch.Generator().manual_seed(dist.get_rank())
for _ in range(5):
    opt.zero_grad()
    model(torch.randn(4, 20, generator=data)).square().mean().backward()
    opt.step()
weights = sum(p.full_tensor().double().sum().item() for p in model.parameters())
print(f"weights {weights:.5f} {dist.get_backend()}\\n", end="", flush=True)
dist.destroy_process_group()
"""


def alone():
    """What SHARDED prints with two ranks, by one process without communication"""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 9), torch.nn.Tanh(), torch.nn.Linear(9, 3))
    opt = torch.optim.SGD(model.parameters(), 0.1)
    data = [torch.Generator().manual_seed(rank) for rank in range(2)]
    for _ in range(5):
        opt.zero_grad()
        model(torch.cat([torch.randn(4, 20, generator=d) for d in data])).square().mean().backward()
        opt.step()
    return f"{sum(p.double().sum().item() for p in model.parameters()):.5f}"


class Unmodified(Test):
    def under_torchrun(self, text, *before, **env):
        """Two ranks of a script; returns what both print"""
        how, more = torchrun_options()
        # Without a hook of dblp-run, from the directory that has metadata of the package
        env = {**os.environ, **more, "DBLP_TRANSPORT": "tcp", "DBLP_NO_HOOK": "1",
               "PYTHONPATH": os.path.join(HERE, "../../../python/dblp/site"), **env}
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w", encoding="ascii") as f:
                f.write(text)
            with start(sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", *how, *before, script,
                       launch=("/usr/bin/env",), env=env) as p:
                status, out, err = ended(p)
        self.assertEqual((status, len(out), len(set(out))), (0, 2, 1), (out, err))
        return out[0].split()

    def test_scripts_under_torchrun_change_the_name_of_the_backend_only(self):
        results = [self.under_torchrun(UNMODIFIED, BACKEND=backend) for backend in ("dblp", "gloo")]
        self.assertEqual(results[0][:2], results[1][:2])
        self.assertEqual(results[0][2], "dblp")

    def test_scripts_of_fsdp2_under_torchrun_change_one_line(self):
        script = SHARDED.replace('"gloo"', '"dblp"')
        self.assertEqual(sum(a != b for a, b in zip(script.splitlines(), SHARDED.splitlines())), 1)
        self.assertEqual(self.under_torchrun(script, os.path.join(HERE, "../../lib/fsdp_cpu.py")), ["weights", alone(), "dblp"])

    def test_that_compile_ddp_get_the_hook_of_dblp_run_once(self):
        results = []
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w", encoding="ascii") as f:
                f.write(UNMODIFIED)
            for more in (), ("--no-hook",):
                status, out, err = run("-n", "2", "--transport", "tcp", *more, script,
                                       env={**os.environ, "BACKEND": "gloo", "COMPILED": "1"})
                self.assertEqual((status, len(out)), (0, 2), err)
                self.assertEqual("progress: operation" in err, not more, err)
                results.append([line.split()[2] for line in out])
        self.assertEqual(results[0], results[1])


def load_tests(_loader, tests, _pattern):
    """An older PyTorch has no such backends: selftests/vm/toolroot --torch has a new one"""
    return tests if NEW else unittest.TestSuite()


if __name__ == "__main__":
    unittest.main()
