# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""dblp-run(1): start the ranks of a program, here or on other hosts, and end them together."""

from __future__ import annotations

import argparse
import os
import random
import shlex
import socket
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .comm import Comm
from .enums import Algo, Policy, Rule, to_enum
from .ranks import Ranks, say
from .units import parse_budget

#: Where the first host of a list listens, if it is not told: as torchrun has it
PORT = 29500
#: Where Python finds what registers the hook of dblp.torch
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
#: What ranks on other hosts need to find this package
EXPORTED = ("DBLP_LIBRARY", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")
#: Options that are variables of ranks
VARIABLES = ("transport", "budget", "rule", "algo", "policy", "job", "norms")


class Host(NamedTuple):
    """A line of the list of hosts."""

    name: str
    ranks: int


class Node(NamedTuple):
    """The ranks of one machine: the first one's number, how many, and how many on all."""

    first: int
    ranks: int
    total: int


class _Error(Exception):
    """What cannot be, said by its text"""


def parse_hosts(text: str, name: str) -> List[Host]:
    """
    Lines with the name of a host, as ssh takes it, and how many ranks it has (1 if
    nothing is said); # begins a comment. Raises ValueError with the line that is wrong.
    """
    hosts = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        ranks = words[1] if len(words) > 1 else "1"
        if len(words) > 2 or not ranks.isdecimal() or not 0 < int(ranks) <= 65536 or \
                words[0].startswith("-"):
            raise ValueError(f"{name}:{number}: {line.strip()!r} is not HOST [RANKS]")
        hosts.append(Host(words[0], int(ranks)))
    if not hosts:
        raise ValueError(f"{name}: there are no hosts in it")
    return hosts


def _checked(parse: Any) -> Any:
    """For argparse, which prints the reason of this exception only"""
    def check(text: str) -> str:
        try:
            parse(text)
        except ValueError as e:
            raise argparse.ArgumentTypeError(str(e)) from e
        return text
    return check


def _number(least: int, most: int) -> Any:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number within {least} ... {most}")
        return int(text)
    return parse


def _transport(text: str) -> str:
    if text not in ("dblp", "tcp") and not (text.startswith("tcp:") and text != "tcp:"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither dblp, tcp nor tcp:CC")
    return text


def _node(text: str) -> Node:
    return Node(*(int(word) for word in text.split(":")))


def _export(text: str) -> Tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals and name not in os.environ:
        raise argparse.ArgumentTypeError(f"the environment has no {name}")
    return name, value if equals else os.environ[name]


def _enum(kind: Any) -> Any:
    return _checked(lambda text: to_enum(kind, text))


def parser() -> argparse.ArgumentParser:
    """The options, see dblp-run(1)."""
    p = argparse.ArgumentParser(
        "dblp-run", allow_abbrev=False, usage="dblp-run {-n N | --hosts FILE} [options] [--] PROGRAM [ARG...]",
        description="Start the ranks of a program, and end all when one fails. PROGRAM ending in .py is run "
                    "by this Python. See dblp-run(1).")
    p.add_argument("-n", dest="n", metavar="N", type=_number(1, 65536), help="ranks, on this machine")
    p.add_argument("--hosts", metavar="FILE", help="hosts by ssh, in lines: HOST [RANKS]")
    p.add_argument("--ssh", metavar="COMMAND", default="ssh -o BatchMode=yes",
                   help="instead of '%(default)s'; is given the host and a command")
    p.add_argument("--export", metavar="NAME[=VALUE]", type=_export, action="append", default=[],
                   help="a variable for ranks on all hosts")
    p.add_argument("--master-addr", metavar="ADDRESS", help="where rank 0 is found (the first host)")
    p.add_argument("--master-port", metavar="PORT", type=_number(1, 65534),
                   help="its port, and the one behind it (29500; on this machine two that are free)")
    p.add_argument("--transport", metavar="NAME", type=_transport, help="dblp (default), tcp or tcp:CC")
    p.add_argument("--budget", metavar="SHARE", type=_checked(parse_budget), help="that may be lost: 2%%, 8000ppm")
    p.add_argument("--rule", metavar="NAME", type=_enum(Rule), help="bubble, rescale or feedback")
    p.add_argument("--algo", metavar="NAME", type=_enum(Algo), help="ps, transpose, ring, tree or average")
    p.add_argument("--policy", metavar="NAME", type=_enum(Policy), help="full, eager or early")
    p.add_argument("--job", metavar="NUMBER", type=_number(1, 0xffffffff), help="that sockets are in")
    p.add_argument("--norms", metavar="ROUNDS", type=_number(1, 0xffffffff),
                   help="each so many, PyTorch tells the job's detector the norm of gradients")
    p.add_argument("--no-hook", action="store_true",
                   help="leave PyTorch's DistributedDataParallel as it is")
    p.add_argument("--require", action="store_true",
                   help="fail if a rank ends without having opened a communicator")
    p.add_argument("--node", type=_node, help=argparse.SUPPRESS)
    p.add_argument("program", metavar="PROGRAM")
    p.add_argument("args", metavar="ARG", nargs=argparse.REMAINDER)
    return p


def free_ports() -> int:
    """A port of this machine that is free, as is the one behind it; none that others are given"""
    for _ in range(1000):
        port = random.randrange(20000, 32000, 2)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("", port))
                second.bind(("", port + 1))
                return port
            except OSError:
                pass
    raise _Error("no two ports are free: give one by --master-port")


def check_transport(name: str) -> None:
    """Raises OSError with the reason if this machine does not have it."""
    try:
        Comm(0, 1, (lambda key, value: None, lambda key: None), transport=name).close()
    except OSError as e:
        raise _Error(f"{name} does not work here: {e.strerror}") from e


def command_of(o: argparse.Namespace) -> List[str]:
    """The program and its arguments."""
    python = [sys.executable] if o.program.endswith(".py") else []
    return python + [o.program] + o.args


def environment(o: argparse.Namespace, node: Node, local: int) -> Dict[str, str]:
    """Variables of a rank, the `local`th one of its machine."""
    env = {**os.environ, **dict(o.export)}
    # Not what another launcher has said
    for name in ["DBLP_" + variable.upper() for variable in VARIABLES]:
        env.pop(name, None)
    env.update(RANK=str(node.first + local), WORLD_SIZE=str(node.total), LOCAL_RANK=str(local),
               LOCAL_WORLD_SIZE=str(node.ranks), MASTER_ADDR=o.master_addr,
               MASTER_PORT=str(o.master_port), DBLP_PORT=str(o.master_port + 1))
    for name in VARIABLES:
        if getattr(o, name) is not None:
            env["DBLP_" + name.upper()] = str(getattr(o, name))
    if not o.no_hook:
        env["PYTHONPATH"] = ":".join(filter(None, [SITE, env.get("PYTHONPATH")]))
    env.setdefault("PYTHONUNBUFFERED", "1")
    # PyTorch 2.4 and later: Debian builds it without libuv, and by default it wants that
    env.setdefault("USE_LIBUV", "0")
    # Else each rank has a thread for each processor, which wait for each other
    cpus = len(os.sched_getaffinity(0))
    env.setdefault("OMP_NUM_THREADS", str(max(1, cpus // node.ranks)))
    return env


def what_is_used(o: argparse.Namespace, n: int, where: str) -> str:
    """One line for people."""
    transport = o.transport or "dblp"
    said = [f"{name} {getattr(o, name)}" for name in VARIABLES[1:] if getattr(o, name) is not None]
    if transport != "dblp" and o.budget is not None:
        said.append("of which TCP loses nothing")
    return ", ".join([f"{n} ranks of {o.program} on {where} over {transport}", *said])


def start_here(o: argparse.Namespace, ranks: Ranks, node: Node) -> None:
    check_transport(o.transport or "dblp")
    for local in range(node.ranks):
        number = node.first + local
        try:
            ranks.start(f"rank {number}", command_of(o),
                        {**environment(o, node, local), **ranks.environment}, number)
        except OSError as e:
            ranks.fail(127, f"cannot start {e.filename or o.program!r}: {e.strerror}")
            return


def node_command(o: argparse.Namespace, node: Node) -> str:
    """For a shell of another host: this program, for the ranks of that."""
    words = [sys.executable, "-m", "dblp.run", "--node", ":".join(map(str, node)),
             "--master-addr", o.master_addr, "--master-port", str(o.master_port)]
    for name in VARIABLES:
        if getattr(o, name) is not None:
            words += ["--" + name, str(getattr(o, name))]
    for name, value in o.export:
        words += ["--export", f"{name}={value}"]
    words += ["--no-hook"] * o.no_hook + ["--require"] * o.require + ["--", o.program, *o.args]
    exported = [f"{name}={os.environ[name]}" for name in EXPORTED if name in os.environ]
    return f"cd {shlex.quote(os.getcwd())} && exec env {shlex.join(exported + words)}"


def start_there(o: argparse.Namespace, ranks: Ranks, hosts: Sequence[Host], total: int) -> None:
    first = 0
    for host in hosts:
        command = node_command(o, Node(first, host.ranks, total))
        try:
            ranks.start(f"host {host.name}", shlex.split(o.ssh) + [host.name, command], os.environ,
                        stdin=subprocess.PIPE)
        except OSError as e:
            ranks.fail(127, f"cannot start {o.ssh!r}: {e.strerror}")
            return
        first += host.ranks


def launch(o: argparse.Namespace) -> int:
    """Start and wait; the exit status."""
    if o.node:
        ranks = Ranks(o.require, watch=sys.stdin.fileno())
        start_here(o, ranks, o.node)
        return ranks.run()
    if not o.hosts:
        o.master_addr = o.master_addr or "127.0.0.1"
        o.master_port = o.master_port or free_ports()
        ranks = Ranks(o.require)
        say(what_is_used(o, o.n, "this machine"))
        start_here(o, ranks, Node(0, o.n, o.n))
        return ranks.run()
    with open(o.hosts, encoding="utf-8") as f:
        hosts = parse_hosts(f.read(), o.hosts)
    o.master_addr = o.master_addr or hosts[0].name.rpartition("@")[2]
    o.master_port = o.master_port or PORT
    total = sum(host.ranks for host in hosts)
    ranks = Ranks()
    say(what_is_used(o, total, f"{len(hosts)} hosts"))
    start_there(o, ranks, hosts, total)
    return ranks.run()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The program dblp-run; returns its exit status."""
    p = parser()
    o = p.parse_args(arguments)
    if not o.node and (o.n is None) == (o.hosts is None):
        p.error("either -n or --hosts has to be given")
    if o.norms and not o.job:
        p.error("--norms needs --job: its detector is told")
    try:
        return launch(o)
    except (_Error, OSError, ValueError) as e:
        say(str(e))
        return 1


if __name__ == "__main__":
    sys.exit(main())
