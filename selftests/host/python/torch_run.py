# SPDX-License-Identifier: GPL-2.0-only
"""dblp-run that starts torchrun, and that torchrun starts."""

import os
import shutil
import tempfile
import unittest

from common import torchrun_options
from test_run import LAUNCH, ended, start

#: Prints on standard error, because torchrun of Debian 12 shows nothing else
SCRIPT = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
ddp(torch.full((1, 2), 1.0 + dist.get_rank())).backward()
sys.stderr.write(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}: {ddp.module.weight.grad.tolist()} "
                 f"{'dblp.torch' in sys.modules} {os.environ['DBLP_BUDGET']}\\n")
"""


class Torchrun(unittest.TestCase):
    def test_gradients_of_an_unmodified_script_go_by_it_under_torchrun(self):
        torchrun = shutil.which("torchrun")
        if not torchrun:
            self.skipTest("there is no torchrun")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        script = os.path.join(folder, "script.py")
        with open(script, "w", encoding="ascii") as f:
            f.write(SCRIPT)
        here = [*LAUNCH, "--transport", "tcp", "--budget", "1%", "--"]
        # PyTorch 1.13 with Python 3.11 fails with any other value of these two
        how, env = torchrun_options()
        torchrun = [torchrun, *how, "--nproc_per_node", "2", "--redirects", "1", "--tee", "2", "--log_dir", folder]
        for name, command in (("around", [*here, *torchrun, script]),
                              ("below", [*torchrun, "--no_python", *here, script])):
            with self.subTest(name), start(launch=command, env={**os.environ, **env}) as p:
                status, out, err = ended(p)
                self.assertEqual(status, 0, err)
                said = sorted(line.partition(":")[2] for line in err.splitlines() if "]:rank " in line)
                self.assertEqual(said, [f"rank {r} of 2: [[1.5, 1.5]] True 1%" for r in range(2)], err)


if __name__ == "__main__":
    unittest.main()
