# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""dblp-run(1): start the ranks of a program, here or on other hosts, and end them together."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import random
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import outer
from .comm import Comm
from .enums import Algo, Policy, Rule, to_enum
from .guard import LIMIT, guard
from .ranks import GRACE, Ranks
from .tune import check_budget
from .units import env_number, parse_time

#: Directory of sitecustomize.py, which registers the hook of dblp.torch
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
#: Variables by which ranks on other hosts find this package and their Python, and those on which
#: all ranks have to agree
EXPORTED = ("DBLP_LIBRARY", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX",
            "DBLP_AUTHENTICATE")
#: Variables of ranks for options of one job; inherited ones are removed
JOB = {name: "DBLP_" + name.upper()
       for name in ("transport", "budget", "rule", "algo", "policy", "job", "norms")}
#: Variables of ranks for options of a machine or a user; inherited ones stay
SITE_WIDE = {"ports": "DBLP_PORTS", "bind": "DBLP_BIND", "join_timeout": "DBLP_JOIN_MS",
             "timeout": "DBLP_TIMEOUT_MS", "operation_timeout": "DBLP_OPERATION_MS"}
VARIABLES = {**JOB, **SITE_WIDE}


class Host(NamedTuple):
    """A host of the list, and its number of ranks."""

    name: str
    ranks: int


class Node(NamedTuple):
    """The ranks of one machine: the first rank, their number, and the number on all machines."""

    first: int
    ranks: int
    total: int


class _Error(Exception):
    """An error with its reason as text"""


def parse_hosts(text: str, name: str) -> List[Host]:
    """
    Parse lines of the name of a host, as for ssh(1), and its number of ranks (default 1); # begins
    a comment. `name` is that of the file. Raises ValueError with the number of the wrong line.
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
        raise ValueError(f"{name} has no hosts")
    return hosts


def _checked(parse: Any) -> Any:
    """`parse` as a type for argparse, which prints the reason only of ArgumentTypeError"""
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


def _time(text: str) -> str:
    try:
        return f"{parse_time(text)}ms"
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from e


def _ports(text: str) -> str:
    first, dash, last = text.partition("-")
    if not dash or not first.isdecimal() or not last.isdecimal() or not 0 < int(first) <= int(last) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of ports such as 40000-40100")
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
    """The parser of the options, see dblp-run(1)."""
    p = argparse.ArgumentParser(
        "dblp-run", allow_abbrev=False, usage="dblp-run [-n N | --hosts FILE] [options] [--] PROGRAM [ARG...]",
        description="Start the ranks of a program, and end all when one fails. Without -n and --hosts, set "
                    "variables and execute PROGRAM, a launcher such as torchrun or a rank of one. A PROGRAM "
                    "that ends in .py is run by Python. See dblp-run(1).")
    p.add_argument("-n", dest="n", metavar="N", type=_number(1, 65536), help="number of ranks, on this machine")
    p.add_argument("--hosts", metavar="FILE", help="file with lines of HOST [RANKS], which are reached by ssh")
    p.add_argument("--ssh", metavar="COMMAND", default="ssh -o BatchMode=yes",
                   help="command to reach a host (%(default)s); gets the host and a shell command")
    p.add_argument("--export", metavar="NAME[=VALUE]", type=_export, action="append", default=[],
                   help="environment variable for ranks on all hosts")
    p.add_argument("--output", metavar="DIR", help="write the output of rank N to DIR/rank-N.log")
    p.add_argument("--grace", metavar="TIME", type=_time, default=f"{GRACE:g}s",
                   help="time between SIGTERM and SIGKILL (%(default)s)")
    p.add_argument("--master-addr", metavar="ADDRESS", help="address of rank 0 (that of the first host)")
    p.add_argument("--master-port", metavar="PORT", type=_number(1, 65534),
                   help="port of rank 0; the next one is used too (29500; with -n two free ports)")
    p.add_argument("--transport", metavar="NAME", type=_transport,
                   help="dblp (default), tcp, or tcp:CC with congestion control CC")
    p.add_argument("--budget", metavar="SHARE", type=_checked(check_budget),
                   help="share of contributions that may be lost: 2%%, 8000ppm, or auto[:CAP]: found")
    p.add_argument("--rule", metavar="NAME", type=_enum(Rule), help="bubble, rescale or feedback")
    p.add_argument("--algo", metavar="NAME", type=_enum(Algo), help="ps, transpose, ring, tree, bcube or average")
    p.add_argument("--policy", metavar="NAME", type=_enum(Policy), help="full, eager or early")
    p.add_argument("--job", metavar="NUMBER", type=_number(1, 0xffffffff), help="job of the sockets")
    p.add_argument("--norms", metavar="ROUNDS", type=_number(1, 0xffffffff),
                   help="report the mean norm of PyTorch's gradients to the job's detector every ROUNDS rounds")
    p.add_argument("--ports", metavar="FIRST-LAST", type=_ports, help="range of ports for data, for firewalls")
    p.add_argument("--bind", metavar="ADDRESS", help="address that rank 0 listens at (all)")
    p.add_argument("--join-timeout", metavar="TIME", type=_time,
                   help="time limit until all ranks have joined: 90s, 10min")
    p.add_argument("--timeout", metavar="TIME", type=_time,
                   help="time that a host may be silent until its ranks have failed")
    p.add_argument("--operation-timeout", metavar="TIME", type=_time, help="time limit of one operation")
    p.add_argument("--no-secret", action="store_true",
                   help="let processes join without the secret of this run")
    p.add_argument("--authenticate", action="store_true",
                   help="authenticate each packet of data, not only joins and connections")
    p.add_argument("--no-hook", action="store_true",
                   help="do not register the hook of PyTorch's DistributedDataParallel")
    p.add_argument("--require", action="store_true",
                   help="fail if a rank ends without having opened a communicator of the Python package dblp")
    p.add_argument("--node", type=_node, help=argparse.SUPPRESS)
    p.add_argument("program", metavar="PROGRAM")
    p.add_argument("args", metavar="ARG", nargs=argparse.REMAINDER)
    return p


#: Sockets whose abstract names reserve ports until this process ends
_reserved: List[socket.socket] = []


def reserve(port: int) -> None:
    """Reserve a port. Raises OSError if another dblp-run of this network namespace has reserved it."""
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind(f"\0dblp-run-port-{port}")
    except OSError:
        s.close()
        raise
    _reserved.append(s)


def free_ports() -> int:
    """A port that is free, as is the next one, and that no other dblp-run has reserved"""
    for _ in range(1000):
        port = random.randrange(20000, 32000, 2)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("", port))
                second.bind(("", port + 1))
                reserve(port)
                return port
            except OSError:
                pass
    raise _Error("no two adjacent ports are free: set --master-port")


def check_transport(name: str, job: int) -> None:
    """Raise an _Error with the reason if a transport, or the job, does not work on this machine."""
    # This communicator is a test: a launcher that waits for those of the program must not count it, and the
    # secret of the run may not exist yet
    os.environ.pop("DBLP_RUN_SOCKET", None)
    try:
        Comm(0, 1, (lambda key, value: None, lambda key: None), transport=name, job=job,
             secret=secrets.token_hex(16)).close()
    except OSError as e:
        raise _Error(f"{name} does not work here: {e.strerror}") from e


def python_of() -> str:
    """The Python of the active environment; this Python if there is none, or it is in an environment itself."""
    if sys.prefix == sys.base_prefix:
        for name in "VIRTUAL_ENV", "CONDA_PREFIX":
            python = os.path.join(os.environ.get(name, ""), "bin/python")
            if os.environ.get(name) and os.access(python, os.X_OK):
                return python
    return sys.executable


def command_of(o: argparse.Namespace) -> List[str]:
    """The command line of a rank."""
    python = [python_of()] if o.program.endswith(".py") else []
    return [*python, o.program, *o.args]


def set_options(o: argparse.Namespace, env: Dict[str, str]) -> None:
    """Set variables for options in `env`."""
    env.update(o.export)
    for name, variable in VARIABLES.items():
        value = getattr(o, name)
        if value is not None:
            env[variable] = value[:-2] if variable.endswith("_MS") else str(value)
    env["PYTHONPATH"] = ":".join(filter(None, [SITE, env.get("PYTHONPATH")]))
    env.pop("DBLP_NO_HOOK", None)
    if o.no_hook:
        env["DBLP_NO_HOOK"] = "1"
    if o.authenticate:
        env["DBLP_AUTHENTICATE"] = "1"
    # PyTorch 2.4 and later needs libuv by default, but Debian builds it without
    env.setdefault("USE_LIBUV", "0")


def environment(o: argparse.Namespace, node: Node, local: int) -> Dict[str, str]:
    """Environment of a rank, number `local` of its machine."""
    env = dict(os.environ)
    # Options of an outer dblp-run do not apply
    for variable in JOB.values():
        env.pop(variable, None)
    set_options(o, env)
    env.update(RANK=str(node.first + local), WORLD_SIZE=str(node.total), LOCAL_RANK=str(local),
               LOCAL_WORLD_SIZE=str(node.ranks), MASTER_ADDR=o.master_addr,
               MASTER_PORT=str(o.master_port), DBLP_PORT=str(o.master_port + 1))
    env.setdefault("PYTHONUNBUFFERED", "1")
    # By default each rank starts a thread for each processor, and all compete
    cpus = len(os.sched_getaffinity(0))
    env.setdefault("OMP_NUM_THREADS", str(max(1, cpus // node.ranks)))
    return env


def what_is_used(o: argparse.Namespace, what: str) -> str:
    """One line with the options in use."""
    transport = o.transport or "dblp"
    said = [f"{name.replace('_', ' ')} {getattr(o, name)}" for name in VARIABLES
            if name != "transport" and getattr(o, name) is not None]
    if o.authenticate:
        said.append("authenticated")
    if transport != "dblp" and o.budget is not None:
        said.append("of which TCP loses nothing")
    return ", ".join([f"{what} over {transport}", *said])


def write_secret(folder: str, secret: str) -> Dict[str, str]:
    """Write a file that only this user can read; return the variable that names it."""
    path = os.path.join(folder, "secret")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as f:
        f.write(secret + "\n")
    return {"DBLP_SECRET_FILE": path}


def warn_of_loopback(o: argparse.Namespace, ranks: Ranks, node: Node) -> None:
    """Warn if the address of rank 0 is a loopback one here: PyTorch reports only that it cannot connect."""
    try:
        found = {a[4][0] for a in socket.getaddrinfo(os.fsencode(o.master_addr), None)}
    except OSError as e:
        ranks.say(f"{socket.gethostname()}: cannot resolve {o.master_addr}, the host of rank 0: {e.strerror}")
        return
    if all(ipaddress.ip_address(str(a).partition("%")[0]).is_loopback for a in found):
        ranks.say(f"{socket.gethostname()}: {o.master_addr} is {', '.join(map(str, sorted(found)))} here: rank "
                  f"{node.first} reaches rank 0 only on the same host; otherwise set --master-addr")


async def start_here(o: argparse.Namespace, ranks: Ranks, node: Node, secret: Dict[str, str]) -> None:
    check_transport(o.transport or "dblp", o.job or 0)
    if o.output:
        os.makedirs(o.output, exist_ok=True)
    for local in range(node.ranks):
        number = node.first + local
        # Let the event loop handle signals
        await asyncio.sleep(0)
        if ranks.failed:
            return
        env = {**environment(o, node, local), **ranks.environment, **secret}
        try:
            await ranks.start(f"rank {number}", command_of(o), env, number,
                              log=os.path.join(o.output, f"rank-{number}.log") if o.output else None)
        except OSError as e:
            ranks.fail(127, f"cannot start {e.filename or o.program!r}: {e.strerror}")


def node_command(o: argparse.Namespace, node: Node) -> str:
    """The shell command that starts dblp-run for the ranks of another host."""
    words = [sys.executable, "-m", "dblp.run", "--node", ":".join(map(str, node)),
             "--master-addr", o.master_addr, "--master-port", str(o.master_port), "--grace", o.grace]
    for name in [*VARIABLES, "output"]:
        if getattr(o, name) is not None:
            words += ["--" + name.replace("_", "-"), str(getattr(o, name))]
    for option in ("authenticate", "no_hook", "require"):
        words += ["--" + option.replace("_", "-")] * getattr(o, option)
    words += ["--", o.program, *o.args]
    exported = [f"{name}={os.environ[name]}" for name in EXPORTED if name in os.environ]
    return f"cd {shlex.quote(os.getcwd())} && exec env {shlex.join(exported + words)}"


async def start_there(o: argparse.Namespace, ranks: Ranks, hosts: Sequence[Host], total: int) -> None:
    first = 0
    # Other users can read command lines, so secrets are sent on standard input
    setup = {"export": o.export, "secret": None if o.no_secret else secrets.token_hex(16)}
    for host in hosts:
        command = node_command(o, Node(first, host.ranks, total))
        try:
            await ranks.start(f"host {host.name}", shlex.split(o.ssh) + [host.name, command], os.environ,
                              setup=setup)
        except OSError as e:
            ranks.fail(127, f"cannot start {o.ssh!r}: {e.strerror}")
        if ranks.failed:
            return
        first += host.ranks


async def be_node(o: argparse.Namespace, folder: str) -> int:
    """Start the ranks of this machine, for a dblp-run on another machine."""
    ranks = Ranks(folder, o.require, parse_time(o.grace) / 1000, everything=True)
    setup = await ranks.receive_setup()
    o.export = setup.get("export", [])
    if o.node.first:
        warn_of_loopback(o, ranks, o.node)
    secret = setup.get("secret")
    await start_here(o, ranks, o.node, write_secret(folder, secret) if secret else {})
    return await ranks.run()


async def be_alone(o: argparse.Namespace, folder: str) -> int:
    """Start all ranks on this machine."""
    o.master_addr = o.master_addr or "127.0.0.1"
    o.master_port = o.master_port or free_ports()
    ranks = Ranks(folder, o.require, parse_time(o.grace) / 1000)
    ranks.say(what_is_used(o, f"{o.n} ranks of {o.program} on this machine"))
    secret = {} if o.no_secret else write_secret(folder, secrets.token_hex(16))
    await start_here(o, ranks, Node(0, o.n, o.n), secret)
    return await ranks.run()


async def be_first(o: argparse.Namespace, folder: str) -> int:
    """Start ranks on other machines."""
    with open(o.hosts, encoding="utf-8") as f:
        hosts = parse_hosts(f.read(), o.hosts)
    o.master_addr = o.master_addr or hosts[0].name.rpartition("@")[2]
    o.master_port = o.master_port or outer.PORT
    total = sum(host.ranks for host in hosts)
    # The grace period of the other hosts, and their time to report processes that remain after SIGKILL
    ranks = Ranks(folder, grace=parse_time(o.grace) / 1000 + 2 * LIMIT)
    ranks.say(what_is_used(o, f"{total} ranks of {o.program} on {len(hosts)} hosts"))
    await start_there(o, ranks, hosts, total)
    return await ranks.run()


def become(o: argparse.Namespace) -> None:
    """
    Execute the program in this process, with the variables of the options, and those by which
    ranks of another launcher find each other. Raises an _Error.
    """
    env = dict(os.environ)
    try:
        found = outer.variables(env, o.master_addr, o.master_port, free_ports)
    except LookupError as e:
        raise _Error(str(e)) from e
    env.update(found)
    if o.no_secret:
        env.pop("DBLP_SECRET_FILE", None)
    if o.master_port:
        # libdblp uses the port after --master-port
        env.pop("DBLP_PORT", None)
    set_options(o, env)
    rank = found.get("RANK")
    if rank is not None:
        check_transport(o.transport or env.get("DBLP_TRANSPORT", "dblp"), env_number("DBLP_JOB", env))
    if rank in (None, "0"):
        say(what_is_used(o, f"no -n, --hosts or variables of a launcher: ranks that {o.program} starts" if rank is None
                         else f"{found['WORLD_SIZE']} ranks of {o.program}, which a launcher has started,"))
    command = command_of(o)
    try:
        os.execvpe(command[0], command, env)
    except OSError as e:
        raise _Error(f"cannot start {command[0]!r}: {e.strerror}") from e


def say(text: str) -> None:
    """Print a message of dblp-run, while no rank can print."""
    sys.stderr.write(f"dblp-run: {text}\n")


def private_folder() -> str:
    """A new directory for a socket, in TMPDIR if its path is short enough for sun_path, else in /tmp."""
    most = len("/dblp-run-12345678/socket")
    parent = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="dblp-run-", dir=parent if len(os.fsencode(parent)) + most < 108 else "/tmp")


def launch(o: argparse.Namespace) -> int:
    """Start the ranks and wait for their end; return the exit status."""
    if not (o.node or o.n or o.hosts):
        become(o)
    # The secret of another job does not apply
    os.environ.pop("DBLP_SECRET_FILE", None)
    folder = private_folder()
    try:
        # Processes that ssh leaves in the background may serve other users of it
        status = None if o.hosts else guard(parse_time(o.grace) / 1000)
        if status is None:
            status = asyncio.run((be_node if o.node else be_first if o.hosts else be_alone)(o, folder))
        return status
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The program dblp-run; returns its exit status."""
    p = parser()
    o = p.parse_args(arguments)
    if o.n and o.hosts:
        p.error("-n and --hosts exclude each other")
    if not (o.node or o.n or o.hosts) and (o.require or o.output):
        p.error("--require and --output need -n or --hosts: dblp-run does not wait for ranks of other launchers")
    if o.authenticate and (o.no_secret or (o.transport or "dblp") != "dblp"):
        p.error("--authenticate needs the secret of the run, and transport dblp")
    if o.norms and not o.job:
        p.error("--norms needs --job: norms are reported to its detector")
    try:
        return launch(o)
    except (_Error, OSError, ValueError) as e:
        say(str(e))
        return 1


if __name__ == "__main__":
    sys.exit(main())
