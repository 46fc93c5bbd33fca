# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What a process group of the backend "dblp" may lose: options of a group, and of a block of code."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Dict, Iterator, List, Mapping, Union

from .enums import Algo, Dtype, Policy, Rule, to_enum
from .op import make_op
from .tune import parse_auto

__all__ = ["Options", "lossy"]


@dataclasses.dataclass(frozen=True)
class Options:
    """
    Options of a process group, the same on all its ranks:

        group = dist.new_group(backend="dblp", pg_options=dblp.torch.Options(budget="2%"))

    budget: share of all contributions that sums and averages of floating point may lose: "2%",
        "8000ppm" or an int (ppm). 0: nothing. All other operations lose nothing.
    rule: "rescale" (the sum is divided by the share of contributions that arrived) or "bubble"
        (lost contributions count as zero). "feedback" needs to know which vectors belong
        together: see dblp.torch.register().
    algo: "transpose", "ring", "ps", "tree" or "bcube", for all_reduce().
    policy, wait_ms: see dblp.Op.
    comm: other keywords of dblp.Comm, such as devices, lanes, job or ports.

    Raises ValueError or TypeError for invalid values.
    """

    budget: Union[str, int] = 0
    rule: Union[Rule, int, str] = "rescale"
    algo: Union[Algo, int, str] = "transpose"
    policy: Union[Policy, int, str, None] = None
    wait_ms: int = 0
    comm: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if to_enum(Rule, self.rule) == Rule.DBLP_FEEDBACK:
            raise ValueError("rule 'feedback' needs to know which vectors belong together, as dblp.torch.register() does")
        if to_enum(Algo, self.algo) == Algo.DBLP_AVERAGE:
            raise ValueError("algo 'average' does not sum over all ranks")
        if parse_auto(self.budget) is not None:
            raise ValueError(f"budget {self.budget!r} is for the hook of a DDP, which has rounds of gradients: FSDP and "
                             "process groups need a share, such as '2%'")
        make_op(Dtype.DBLP_FLOAT32, **self.how())

    def how(self) -> Dict[str, Any]:
        """Fields of dblp.Op."""
        return {name: getattr(self, name) for name in ("budget", "rule", "algo", "policy", "wait_ms")}


#: Options of the blocks that are being executed
_blocks: List[Options] = []


@contextlib.contextmanager
def lossy(budget: Union[str, int], rule: Union[Rule, int, str] = "rescale", **how: Any) -> Iterator[Options]:
    """
    A block of code in which sums and averages of floating point may lose contributions, in all
    process groups of the backend "dblp" and in all threads, such as those of backward():

        with dblp.torch.lossy("2%"):
            loss.backward()

    All ranks execute the same operations in it. It replaces the options of the groups, except
    `comm`; in nested blocks, the inner one counts.

    budget, rule, how: see Options.
    """
    options = Options(budget, rule, **how)
    if options.comm:
        raise TypeError("comm is an option of groups")
    _blocks.append(options)
    try:
        yield options
    finally:
        # Blocks of two threads may end in any order
        at = max(i for i, block in enumerate(_blocks) if block is options)
        del _blocks[at]


def current(options: Options) -> Options:
    """The options in use now by a group with these options."""
    return _blocks[-1] if _blocks else options
