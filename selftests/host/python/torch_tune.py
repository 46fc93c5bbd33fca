# SPDX-License-Identifier: GPL-2.0-only
"""The hook of DDP with a budget that is found."""

import os
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

import torch

import dblp.torch
from common import LONG, good, with_ranks
from torch_ddp import Bucket

#: Two buckets of gradients; prints the budgets of rounds, and a digest of the replica
SCRIPT = """
import hashlib, sys, torch, torch.distributed as dist, dblp.torch
dist.init_process_group("gloo")
torch.manual_seed(1)
ddp = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(64, 3000), torch.nn.Linear(3000, 128)), bucket_cap_mb=0.5)
state = dblp.torch.register(ddp, *sys.argv[1:])
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
torch.manual_seed(2 + dist.get_rank())
found = []
for _ in range(8):
    optimizer.zero_grad()
    # Gradients of two passes, as one round
    with ddp.no_sync():
        ddp(torch.randn(16, 64)).square().mean().backward()
    ddp(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    found.append(state.how["budget"])
replica = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in ddp.parameters())).hexdigest()
print(f"budgets {found}, {state.buckets} buckets, policy {state.how['policy']}, replica {replica}\\n", end="")
"""

#: The last bucket is sparse, which libdblp does not sum
SPARSE = """
import torch, torch.distributed as dist, dblp.torch
dist.init_process_group("gloo")
torch.manual_seed(1)
ddp = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Embedding(50, 64, sparse=True), torch.nn.Linear(64, 3000)), find_unused_parameters=True)
state = dblp.torch.register(ddp, "auto")
torch.manual_seed(2 + dist.get_rank())
for _ in range(6):
    ddp.zero_grad()
    ddp(torch.randint(50, (16,))).square().mean().backward()
print(f"budgets {state.how['budget']}, {state.buckets} sums, {len(state._tuner._round)} in the round\\n", end="")
"""


def train(*budget, how=(), text=SCRIPT):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(text)
        script.flush()
        done = subprocess.run([sys.executable, "-m", "dblp.run", "-n", "3", "--transport", "tcp", *how, script.name,
                               *budget], text=True, timeout=4 * LONG, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return [line.partition("budgets ")[2] for line in done.stdout.splitlines()]


class Found(unittest.TestCase):
    def test_budgets_are_equal_on_all_ranks_and_rise_from_0(self):
        for how, budget in ((), ("auto",)), (("--budget", "auto"), ()):
            said = train(*budget, how=how)
            self.assertEqual(said, said[:1] * 3)
            found = list(map(int, re.findall(r"\d+", said[0].partition("]")[0])))
            self.assertEqual((found[:2], len(found)), ([0, 0], 8))
            self.assertGreater(found[-1], 0)
            self.assertIn("policy early", said[0])
            self.assertGreater(int(re.search(r"(\d+) buckets", said[0])[1]), 8)

    def test_budgets_are_at_most_the_cap(self):
        self.assertIn("[0, 0, 3000, 3000,", train("auto:0.3%")[0])

    def test_a_round_begins_though_its_last_bucket_is_not_summed(self):
        said = train(text=SPARSE)
        self.assertEqual(said, said[:1] * 3)
        self.assertRegex(said[0], "^[1-9][0-9]*, 6 sums, 1 in the round$")

    def test_a_round_begins_though_its_buckets_have_larger_numbers(self):
        def run(comm):
            state, done = dblp.torch.State(comm, "auto"), torch.futures.Future()
            done.set_result([])
            state._begin_other = lambda tensor: done
            # A DDP makes its buckets anew after the first round, and Gloo sums complex numbers
            for bucket in Bucket(torch.ones(9)), Bucket(torch.ones(3, dtype=torch.complex64)), Bucket(torch.ones(9), index=1):
                dblp.torch.hook(state, bucket).wait()
            return len(state._tuner._round)
        self.assertEqual(good(with_ranks(2, run)), [1] * 2)

    def test_the_state_is_pickled_with_its_controller(self):
        state = dblp.torch.State(None, "auto:10%")
        state._tuner._tune.rounds = 7
        again = pickle.loads(pickle.dumps(state))
        self.assertEqual((again._tuner._tune.rounds, again._tuner._cap), (7, 100000))
        self.assertNotIn("tuner", dblp.torch.State(None, "10%").state_dict())

    def test_all_ranks_go_on_from_the_state_of_rank_0(self):
        fresh, found = dblp.torch.State(None, "auto"), dblp.torch.State(None, "auto")
        found._tuner._tune.rounds, found._tuner._tune.contributions = 7, 2

        def run(comm, loads):
            state, budgets, parameter = dblp.torch.State(comm, "auto"), [], torch.ones(100)
            # Before the first round, where a rank may have no state, and after it
            for load in loads, (1 - loads[0], 1 - loads[1]):
                if load[comm.rank] or budgets:
                    state.load_state_dict((found if load[comm.rank] else fresh).state_dict())
                dblp.torch.hook(state, Bucket(parameter)).wait()
                budgets.append(state.how["budget"])
            return budgets

        for loads, budgets in ((1, 0), [50000, 0]), ((0, 1), [0, 50000]):
            self.assertEqual(good(with_ranks(2, lambda comm, loads=loads: run(comm, loads))), [budgets] * 2)

    def test_a_job_is_refused(self):
        with self.assertRaisesRegex(ValueError, "exclude each other"):
            dblp.torch.State(None, "auto", options={"job": 7})

    def test_a_cap_that_is_no_share_is_refused(self):
        for budget in "auto:", "auto:x":
            with self.assertRaises(ValueError):
                dblp.torch.State(None, budget)


if __name__ == "__main__":
    unittest.main()
