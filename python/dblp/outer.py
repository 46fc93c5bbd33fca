# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The rank of this process according to its launcher: for dblp.run."""

from __future__ import annotations

import re
import zlib
from typing import Callable, Dict, Mapping, Optional

#: Default port of rank 0, the same as torchrun's
PORT = 29500
#: Names of RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE in the environments of launchers
NAMES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)
#: Variables that identify a job, with the same values for all its ranks
JOBS = ("SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "PMI_JOBID")


def _is_step(env: Mapping[str, str]) -> bool:
    """Did srun(1) start this process? sbatch(1) sets SLURM_PROCID too, and salloc(1) has a special step."""
    step = env.get("SLURM_STEP_ID", "")
    return step.isdecimal() and int(step) < 0xfffffff0


def rank_of(env: Mapping[str, str]) -> Dict[str, str]:
    """RANK, WORLD_SIZE, and if known LOCAL_RANK and LOCAL_WORLD_SIZE; empty if this process is not a rank."""
    for names in NAMES:
        if names[0] in env and names[1] in env and (names[0] != "SLURM_PROCID" or _is_step(env)):
            # Slurm may set "2(x3)": two on each of three hosts
            values = [re.sub(r"\(x[0-9]+\)$", "", env.get(name, "")) for name in names]
            return {ours: value for ours, value in zip(NAMES[0], values) if value.isdecimal()}
    return {}


def _first_host(hosts: str) -> str:
    """The first host of a list such as node[01-03,07],other"""
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", hosts).partition(",")[0]


def _where(env: Mapping[str, str], rank: Mapping[str, str]) -> Optional[str]:
    """The host of rank 0, None: unknown"""
    for name in "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST":
        if env.get(name) and (not rank or _is_step(env)):
            return _first_host(env[name])
    if not rank or rank.get("LOCAL_WORLD_SIZE") == rank["WORLD_SIZE"]:
        return "127.0.0.1"
    return None


def variables(env: Mapping[str, str], address: Optional[str], port: Optional[int],
              free_port: Callable[[], int]) -> Dict[str, str]:
    """
    Variables by which ranks of another launcher find each other. They include RANK only if this
    process is a rank.

    address, port: those of rank 0, or None.
    free_port: returns a free port; called if a launcher below this process starts all ranks.

    Raises LookupError if the address of rank 0 is unknown.
    """
    rank = rank_of(env)
    address = address or env.get("MASTER_ADDR") or _where(env, rank)
    if address is None:
        raise LookupError("the launcher of this rank does not provide the address of rank 0: set --master-addr")
    job = " ".join(env[name] for name in JOBS if name in env)
    if not port and "MASTER_PORT" in env:
        return {**rank, "MASTER_ADDR": address}
    if not port:
        # All ranks must compute the same port
        port = 20000 + zlib.crc32(job.encode()) % 6000 * 2 if job else PORT if rank else free_port()
    return {**rank, "MASTER_ADDR": address, "MASTER_PORT": str(port)}
