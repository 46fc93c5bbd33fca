# SPDX-License-Identifier: GPL-2.0-only
"""dblp-run: what ranks get, what becomes of what they print, and how they end."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from common import LONG, until
from dblp.progress import Line
from dblp.run import parse_hosts

LAUNCH = [sys.executable, "-m", "dblp.run"]
SUM = """
import array, dblp
v = array.array("i", [1])
with dblp.Comm() as comm:
    comm.allreduce(v).wait()
    print("sum", v[0], comm.describe().split(" at ")[0])
"""


@contextlib.contextmanager
def start(*args, launch=(), **options):
    with subprocess.Popen([*(launch or LAUNCH), *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **options) as p:
        try:
            yield p
        finally:
            p.kill()


def ended(p):
    """Its exit status, its lines, sorted, and its own messages"""
    out, err = p.communicate(timeout=LONG)
    return p.returncode, sorted(out.splitlines()), err


def run(*args, **options):
    with start(*args, **options) as p:
        return ended(p)


def python(n, code, *options, **more):
    return run("-n", str(n), "--transport", "tcp", *options, "--", sys.executable, "-c", code, **more)


def gone(pid):
    """Neither running nor about to be"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Ranks(unittest.TestCase):
    def test_ranks_have_the_variables_of_the_options(self):
        names = ("RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR DBLP_TRANSPORT DBLP_BUDGET "
                 "DBLP_RULE DBLP_ALGO DBLP_POLICY DBLP_JOB MINE").split()
        code = f"import os; print(*[os.environ.get(n) for n in {names}])\n" \
               "assert int(os.environ['DBLP_PORT']) == int(os.environ['MASTER_PORT']) + 1"
        # What another launcher has left is not meant
        env = {**os.environ, "DBLP_JOB": "9", "DBLP_RULE": "rescale", "RANK": "7", "DBLP_PORT": "1"}
        status, out, err = python(2, code, "--budget", "0.8%", "--algo", "ring", "--policy", "early",
                                  "--export", "MINE=a b", env=env)
        self.assertEqual(out, [f"[{r}] {r} 2 {r} 2 127.0.0.1 tcp 0.8% None ring early None a b"
                               for r in range(2)])
        self.assertEqual((status, err.count("\n")), (0, 1))
        self.assertIn("2 ranks of", err)
        self.assertIn("on this machine over tcp, budget 0.8%, algo ring, policy early, of which TCP "
                      "loses nothing", err)

    def test_variables_that_are_set_are_kept(self):
        code = "import os; print(*[os.environ[n] for n in ('USE_LIBUV', 'PYTHONUNBUFFERED', 'OMP_NUM_THREADS')])"
        mine = dict(USE_LIBUV="1", PYTHONUNBUFFERED="yes", OMP_NUM_THREADS="77")
        bare = {name: value for name, value in os.environ.items() if name not in mine}
        self.assertEqual(python(1, code, env={**bare, **mine})[:2], (0, ["[0] 1 yes 77"]))
        cpus = len(os.sched_getaffinity(0))
        self.assertEqual(python(1, code, env=bare)[:2], (0, [f"[0] 0 1 {cpus}"]))

    def test_ranks_find_each_other_by_what_they_are_given(self):
        status, out, err = python(3, SUM, "--require")
        self.assertEqual(out, [f"[{r}] sum 3 rank {r} of 3, epoch 0, over tcp" for r in range(3)])
        self.assertEqual(status, 0)
        self.assertEqual(err.count("dblp-run: rank 0 of 3, epoch 0, over tcp at "), 1)

    def test_a_file_of_python_is_run_by_this_python(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
            f.write("import sys; print(sys.executable, sys.argv[1:])")
            f.flush()
            self.assertEqual(run("-n", "1", "--transport", "tcp", f.name, "--budget", "x", "--")[:2],
                             (0, [f"[0] {sys.executable} ['--budget', 'x', '--']"]))

    def test_lines_have_the_number_of_their_rank(self):
        code = ("import sys; sys.stdout.write('one\\ntw\\rtwo\\r\\n\\nend');"
                "sys.stderr.write('told' + 70000 * 'x')")
        status, out, err = python(2, code)
        self.assertEqual(out, sorted(f"[{r}] {t}" for r in range(2) for t in ("one", "two", "", "end")))
        told = sorted(line for line in err.splitlines() if not line.startswith("dblp-run"))
        self.assertEqual(sum(line.count("x") for line in told), 140000)
        self.assertEqual([line[:8] for line in told if "told" in line], ["[0] told", "[1] told"])
        self.assertTrue(all(line.startswith(("[0] ", "[1] ")) for line in told))
        self.assertEqual(status, 0)


class Ends(unittest.TestCase):
    #: Prints the number of its process and of one that it has started, and waits
    WAIT = ("import os, subprocess, sys, time\n"
            "p = subprocess.Popen(['sleep', '1000'])\n"
            "print('pids', os.getpid(), p.pid)\n")

    def pids(self, p, n):
        """Of n ranks and what they have started"""
        lines = [p.stdout.readline().split() for _ in range(n)]
        self.assertEqual([line[1] for line in lines], ["pids"] * n)
        return [int(pid) for line in lines for pid in line[2:]]

    def test_all_end_with_the_first_that_fails_and_its_status(self):
        go = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "go")
        os.mkfifo(go)
        code = self.WAIT + f"if os.environ['RANK'] == '1':\n open({go!r})\n %s\ntime.sleep(1000)"
        for end, status, how in (("sys.exit(7)", 7, "has failed with exit status 7"),
                                 ("os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL")):
            with self.subTest(how), \
                    start("-n", "3", "--transport", "tcp", "--", sys.executable, "-c", code % end) as p:
                pids = self.pids(p, 3)
                with open(go, "w", encoding="ascii"):
                    got, out, err = ended(p)
                self.assertEqual(got, status)
                self.assertEqual(err.splitlines()[1:], [f"dblp-run: rank 1 {how}: the others are ended"])
                until(lambda: all(gone(pid) for pid in pids))

    def test_a_rank_that_does_not_want_to_end_is_killed(self):
        launch = [sys.executable, "-c", "import sys, dblp.ranks, dblp.run\n"
                                        "dblp.ranks.GRACE = 0.2\nsys.exit(dblp.run.main())"]
        code = "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + self.WAIT + "time.sleep(1000)"
        with start("-n", "2", "--transport", "tcp", "--", sys.executable, "-c", code, launch=launch) as p:
            pids = self.pids(p, 2)
            p.send_signal(signal.SIGTERM)
            self.assertEqual(ended(p)[0], 128 + signal.SIGTERM)
            until(lambda: all(gone(pid) for pid in pids))

    def test_a_signal_ends_all(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            with self.subTest(number), start("-n", "2", "--transport", "tcp", "--", sys.executable, "-c",
                                             self.WAIT + "time.sleep(1000)") as p:
                pids = self.pids(p, 2)
                p.send_signal(number)
                status, _, err = ended(p)
                self.assertEqual(status, 128 + number)
                self.assertIn(f"{signal.Signals(number).name}: the others are ended", err)
                until(lambda: all(gone(pid) for pid in pids))

    def test_no_rank_is_left_when_it_is_killed_itself(self):
        with start("-n", "2", "--transport", "tcp", "--", sys.executable, "-c",
                   "import os, time; print('pids', os.getpid()); time.sleep(1000)") as p:
            pids = self.pids(p, 2)
            p.kill()
            until(lambda: all(gone(pid) for pid in pids))

    def test_a_reader_that_goes_away_ends_all(self):
        with start("-n", "1", "--transport", "tcp", "--", "yes") as p:
            p.stdout.readline()
            p.stdout.close()
            p.stdout = None
            self.assertEqual(ended_without_output(p), 1)

    def test_what_a_rank_leaves_in_the_background_is_not_waited_for(self):
        code = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)"
        status, out, _ = python(1, code)
        self.assertEqual(status, 0)
        os.kill(int(out[0].split()[1]), signal.SIGKILL)

    def test_who_does_not_use_it_is_refused_if_that_is_required(self):
        code = "import os\nif os.environ['RANK'] == '1': import time; time.sleep(1000)"
        status, _, err = python(2, code, "--require")
        self.assertEqual(status, 1)
        self.assertIn("rank 0 has ended without having used dblp", err)
        self.assertEqual(python(2, "")[0], 0)


#: Five operations, of which each is told
FIVE = """
import array, dblp, dblp.progress
dblp.progress.EVERY = 0
with dblp.Comm() as comm:
    for _ in range(5):
        comm.allreduce(array.array("i", [1]) * 1000).wait()
"""


def progress(err):
    """Numbers of operations, and budgets, of what was said how a run gets on"""
    lines = [line[len(Line.BEGIN):] for line in err.splitlines() if line.startswith(Line.BEGIN)]
    return [(int(line.split()[1].rstrip(",")), line.rpartition("budget ")[2]) for line in lines]


class Progress(unittest.TestCase):
    def setUp(self):
        self.stderr = self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def test_of_rank_0_is_one_line_not_told_again_and_again(self):
        status, _, err = python(3, FIVE)
        self.assertEqual((status, progress(err)), (0, [(1, "0%"), (5, "0%")]), err)
        self.assertRegex(err, r"operation 5, the last 1 took [0-9.]+ ms each, 0.00% missing, budget 0%\n")

    def test_is_told_at_the_end_if_it_was_not_before(self):
        status, _, err = python(2, FIVE.replace("EVERY = 0", "EVERY = 1000"))
        self.assertEqual((status, progress(err)), (0, [(5, "0%")]), err)
        self.assertIn("the last 5 took", err)

    def test_is_printed_anew_when_budgets_change(self):
        line = Line()
        for text in "1, budget 1%", "2, budget 1%", "3, budget 1% ... 2%", "4, budget 2%", "5, budget 2%":
            line.show(text)
        line.end()
        line.end()
        self.assertEqual(self.stderr.getvalue().replace(Line.BEGIN, "").splitlines(),
                         ["1, budget 1%", "3, budget 1% ... 2%", "4, budget 2%", "5, budget 2%"])

    def test_is_written_over_on_a_terminal_and_makes_room_for_lines(self):
        reader, writer = os.openpty()
        with open(writer, "w", encoding="ascii") as terminal, contextlib.redirect_stderr(terminal):
            line = Line()
            for text in "1, budget 1%", "2, budget 1%" + 1000 * "x":
                line.show(text)
            line.clear()
            line.clear()
            print("end", end="", file=terminal, flush=True)
            shown = b""
            while not shown.endswith(b"end"):
                shown += os.read(reader, 4096)
        os.close(reader)
        shown = shown.decode().split("\r\x1b[K")
        self.assertEqual((shown[0], shown[2:]), (Line.BEGIN + "1, budget 1%", ["end"]))
        self.assertLess(len(shown[1]), 1000)


def ended_without_output(p):
    p.stderr.read()
    return p.wait(LONG)


class Options(unittest.TestCase):
    def test_what_cannot_be_is_refused_and_nothing_is_started(self):
        tcp = ["--transport", "tcp"]
        wrong = [
            ([], 2, "either -n or --hosts"),
            (["-n", "1", "--hosts", "/dev/null"], 2, "either -n or --hosts"),
            (["-n", "0"], 2, "'0' is not a number within 1"),
            (["-n", "1", "--budget", "2"], 2, "budget '2' has no unit"),
            (["-n", "1", "--rule", "best"], 2, "rule 'best' is none of bubble, rescale"),
            (["-n", "1", "--transport", "udp"], 2, "'udp' is neither dblp, tcp nor tcp:CC"),
            (["-n", "1", "--transport", "tcp:none"], 1, "tcp:none does not work here: "),
            (["-n", "1", "--norms", "4"], 2, "--norms needs --job"),
            (["-n", "1", "--export", "NOT_THERE"], 2, "the environment has no NOT_THERE"),
            (["--hosts", "/dev/null"], 1, "/dev/null: there are no hosts in it"),
            (["--hosts", "/not/there"], 1, "/not/there"),
        ]
        for args, status, reason in wrong:
            with self.subTest(args):
                more = [] if "--transport" in args else tcp
                got = run(*args, *more, "--", "echo", "started")
                self.assertEqual(got[:2], (status, []))
                self.assertIn(reason, got[2])

    def test_a_program_that_is_not_there_is_named(self):
        status, out, err = run("-n", "2", "--transport", "tcp", "/not/there")
        self.assertEqual((status, out), (127, []))
        self.assertIn("cannot start '/not/there': No such file", err)

    def test_hosts_are_lines_with_numbers(self):
        text = "# ours\na 2\n\n  user@b   # one\n2001:db8::1 1\n"
        self.assertEqual(parse_hosts(text, "f"), [("a", 2), ("user@b", 1), ("2001:db8::1", 1)])
        for line in "a 0", "a x", "a 1 2", "-oProxyCommand=x", "a -1":
            with self.assertRaisesRegex(ValueError, f"f:2: '{line}' is not HOST"):
                parse_hosts("b\n" + line, "f")


class Hosts(unittest.TestCase):
    """With a shell instead of ssh, which says what it was given first"""

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.hosts, self.ssh = os.path.join(folder, "hosts"), os.path.join(folder, "ssh")
        with open(self.hosts, "w", encoding="ascii") as f:
            f.write("localhost 1\nuser@other 2\n")
        with open(self.ssh, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\necho "to $1" >&2\nexec env -i HOME=/ sh -c "$2"\n')
        os.chmod(self.ssh, 0o755)

    def args(self, *more):
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        return ["--hosts", self.hosts, "--ssh", self.ssh, "--transport", "tcp", "--master-port",
                str(port), *more, "--", sys.executable, "-c"]

    def test_ranks_of_several_hosts_find_each_other(self):
        code = SUM + "import os; print(os.environ['LOCAL_RANK'], os.environ['A'], os.getcwd())"
        status, out, err = run(*self.args("--require", "--export", "A=it's"), code, cwd="/usr")
        self.assertEqual(out, sorted(
            [f"[{r}] sum 3 rank {r} of 3, epoch 0, over tcp" for r in range(3)] +
            [f"[{r}] {local} it's /usr" for r, local in enumerate((0, 0, 1))]), err)
        self.assertEqual(status, 0)
        self.assertIn("to localhost\n", err)
        self.assertIn("to user@other\n", err)

    def test_how_a_run_gets_on_is_told_by_the_host_of_rank_0(self):
        status, _, err = run(*self.args(), FIVE)
        self.assertEqual((status, progress(err)), (0, [(1, "0%"), (5, "0%")]), err)
        # That leaves it to who started it what of it is printed
        node = ["--node", "0:1:1", "--master-addr", "localhost", "--master-port", "1", "--transport", "tcp"]
        with start(*node, "--", sys.executable, "-c", FIVE.replace("Comm()", "Comm(0, 1, ({}.get, {}.get))"),
                   stdin=subprocess.PIPE) as p:
            self.assertEqual(progress(p.stderr.read()), [(i, "0%") for i in range(1, 6)])

    def test_all_end_with_a_rank_of_another_host(self):
        code = Ends.WAIT + "if os.environ['RANK'] == '2': sys.exit(7)\ntime.sleep(1000)"
        status, out, err = run(*self.args(), code)
        self.assertEqual(status, 7)
        self.assertIn("dblp-run: rank 2 has failed with exit status 7", err)
        self.assertIn("dblp-run: host user@other has failed with exit status 7", err)
        until(lambda: all(gone(int(pid)) for line in out for pid in line.split()[2:]))

    def test_ranks_end_when_the_connection_to_their_host_ends(self):
        node = ["--node", "0:1:1", "--master-addr", "localhost", "--master-port", "1", "--transport", "tcp"]
        code = "import time; print('runs'); time.sleep(1000)"
        with start(*node, "--", sys.executable, "-c", code, stdin=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), "[0] runs\n")
            status, _, err = ended(p)
            self.assertEqual(status, 128 + signal.SIGHUP)
            self.assertIn("who started this has ended", err)


if __name__ == "__main__":
    unittest.main()
