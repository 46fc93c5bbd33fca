# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
Sums of vectors over ranks, with a loss budget: libdblp's communicators (dblp_comm(3)).

    import array, dblp

    gradient = array.array("f", [1.0] * 1000000)
    with dblp.Comm() as comm:           # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
        result = comm.allreduce(gradient, op=dblp.Op(budget="2%", average=True)).wait()
        print(comm.describe(), result.missing, "of", result.asked, "bytes are missing")

It needs libdblp.so.0, from the path in DBLP_LIBRARY of the environment, else from the wheel,
else from the directories of the dynamic linker. It needs no compiler and no other package. dblp.torch is for
PyTorch, and dblp-run(1) starts ranks.
"""

from .comm import Comm, RankError, Request, Result, Stats
from .enums import Algo, Dtype, LaneFlags, OpFlags, PlanFlags, Policy, Rule
from .job import report_norm
from .lanes import Lane, LaneResult
from .op import Op
from .units import PPM, parse_budget

__all__ = [
    "Algo", "Comm", "Dtype", "Lane", "LaneFlags", "LaneResult", "Op", "OpFlags", "PPM", "PlanFlags",
    "Policy", "RankError", "Request", "Result", "Rule", "Stats", "parse_budget", "report_norm",
]
