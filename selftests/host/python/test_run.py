# SPDX-License-Identifier: GPL-2.0-only
"""dblp-run: variables, output and end of ranks."""

import contextlib
import ctypes
import io
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import dblp
from common import LONG, until
from dblp.progress import Line
from dblp.run import Node, _reserved, environment, free_ports, node_command, parse_hosts, parser, reserve

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
    with subprocess.Popen([*(launch or LAUNCH), *args], text=True,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}) as p:
        try:
            yield p
        finally:
            p.kill()


def ended(p):
    """Run dblp-run; return its exit status, its sorted lines of output, and its messages"""
    out, err = p.communicate(timeout=LONG)
    return p.returncode, sorted(out.splitlines()), err


def run(*args, **options):
    with start(*args, **options) as p:
        return ended(p)


def python(n, code, *options, **more):
    return run("-n", str(n), "--transport", "tcp", *options, "--", sys.executable, "-c", code, **more)


def gone(pid):
    """Has the process ended, or is it a zombie?"""
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
        # Variables of another launcher do not apply
        env = {**os.environ, "DBLP_JOB": "none", "DBLP_RULE": "rescale", "RANK": "7", "DBLP_PORT": "1"}
        status, out, err = python(2, code, "--budget", "0.8%", "--algo", "ring", "--policy", "early",
                                  "--export", "MINE=a b", env=env)
        self.assertEqual(out, [f"[{r}] {r} 2 {r} 2 127.0.0.1 tcp 0.8% None ring early None a b"
                               for r in range(2)])
        self.assertEqual((status, err.count("\n")), (0, 1))
        self.assertIn("2 ranks of", err)
        self.assertIn("on this machine over tcp, budget 0.8%, algo ring, policy early, of which TCP "
                      "loses nothing", err)

    def test_limits_and_ports_are_those_of_the_options_or_of_the_environment(self):
        names = ("DBLP_PORTS", "DBLP_BIND", "DBLP_JOIN_MS", "DBLP_TIMEOUT_MS", "DBLP_OPERATION_MS")
        code = f"import os; print(*[os.environ.get(n) for n in {names}])"
        options = ("--ports", "40000-40100", "--bind", "::1", "--join-timeout", "10min", "--timeout", "1.5s",
                   "--operation-timeout", "30s")
        self.assertEqual(python(1, code, *options)[1], ["[0] 40000-40100 ::1 600000 1500 30000"])
        env = {**os.environ, "DBLP_PORTS": "1-2", "DBLP_JOIN_MS": "7"}
        self.assertEqual(python(1, code, "--join-timeout", "500ms", env=env)[1], ["[0] 1-2 None 500 None None"])

    def test_ranks_share_a_secret_that_other_users_cannot_read(self):
        code = ("import os; path = os.environ.get('DBLP_SECRET_FILE')\n"
                "print(path and (oct(os.stat(path).st_mode), open(path).read(), path), sep='')")
        env = {**os.environ, "DBLP_SECRET_FILE": "/none"}
        _, out, _ = python(2, code, env=env)
        self.assertRegex(out[0], r"^\[0\] \('0o100600', '[0-9a-f]{32}\\n', '.*'\)$")
        self.assertEqual(out[0][4:], out[1][4:])
        self.assertFalse(os.path.exists(out[0].split("'")[-2]))
        self.assertNotEqual(python(1, code)[1][0].split("'")[3], out[0].split("'")[3])
        self.assertEqual(python(1, code, "--no-secret", env=env)[1], ["[0] None"])

    def test_data_is_authenticated_if_that_is_asked_for(self):
        code = "import os; print(os.environ.get('DBLP_AUTHENTICATE'))"
        self.assertEqual(python(1, code)[1], ["[0] None"])
        o = parser().parse_args(["-n", "1", "--authenticate", "train.py"])
        o.master_addr, o.master_port = "127.0.0.1", 29500
        self.assertEqual(environment(o, Node(0, 1, 1), 0)["DBLP_AUTHENTICATE"], "1")
        self.assertIn(" --authenticate -- train.py", node_command(o, Node(1, 1, 2)))
        with unittest.mock.patch.dict(os.environ, DBLP_AUTHENTICATE="1"):
            self.assertIn(" DBLP_AUTHENTICATE=1 ", node_command(o, Node(1, 1, 2)))
        status, _, err = python(1, code, env={**os.environ, "DBLP_AUTHENTICATE": "1"})
        self.assertEqual((status, err.count("data can be authenticated only over transport dblp")), (1, 1))
        for wrong in (("--no-secret",), ("--transport", "tcp")):
            status, _, err = python(1, code, "--authenticate", *wrong)
            self.assertEqual(status, 2)
            self.assertIn("--authenticate needs the secret of the run, and transport dblp", err)

    def test_a_file_of_python_is_run_by_the_python_of_the_active_environment(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=LONG)
        script = os.path.join(folder, "script.py")
        with open(script, "w", encoding="ascii") as f:
            f.write("import sys, dblp; print(sys.prefix, dblp.__file__)")
        # As when installed: only the Python of the system has the package, not that of the environment
        code = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(dblp.__file__))!r})\n" \
               "from dblp.run import main; sys.exit(main())"
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for name in "VIRTUAL_ENV", "CONDA_PREFIX":
            with start("-n", "1", "--transport", "tcp", "--no-hook", "--", script, env={**env, name: folder},
                       launch=[sys.executable, "-c", code]) as p:
                self.assertEqual(ended(p)[:2], (0, [f"[0] {folder} {dblp.__file__}"]))

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


    def test_a_rank_that_prints_without_end_delays_nothing(self):
        go = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "go")
        os.mkfifo(go)
        code = f'[ $RANK = 0 ] || {{ echo here; read word < {go}; exit 7; }}; exec yes'
        with start("-n", "2", "--transport", "tcp", "--", "sh", "-c", code) as p:
            # Output of both ranks is printed
            while p.stdout.readline() != "[1] here\n":
                pass
            p.send_signal(signal.SIGTERM)
            self.assertEqual(ended(p)[0], 143)
        for end, status in (lambda p: open(go, "w", encoding="ascii").close(), 7), \
                (lambda p: p.send_signal(signal.SIGINT), 130), (lambda p: p.send_signal(signal.SIGTERM), 143):
            # The rank prints at full speed
            with self.subTest(status), \
                    start("-n", "2", "--transport", "tcp", "--", "sh", "-c", code, stdout=subprocess.DEVNULL) as p:
                p.stderr.readline()
                end(p)
                self.assertEqual(p.wait(LONG), status)

    def test_a_reader_that_does_not_read_holds_back_the_rank_and_nothing_else(self):
        with tempfile.NamedTemporaryFile() as f:
            f.truncate(8)
            code = (f"import mmap, os, time\nm = mmap.mmap(os.open({f.name!r}, os.O_RDWR), 8)\n"
                    "if os.environ['RANK'] == '1': print('go'); time.sleep(1000)\n"
                    "for i in range(2000):\n    os.write(1, b'y' * 99999 + b'\\n')\n"
                    "    m[:8] = (i + 1).to_bytes(8, 'little')")
            with start("-n", "2", "--transport", "tcp", "--", sys.executable, "-c", code) as p, \
                    mmap.mmap(f.fileno(), 8) as m:
                seen = []
                # The rank has printed nothing for a second
                while len(seen) < 100 or not seen[-100] == seen[-1] > 0:
                    seen.append(int.from_bytes(m[:8], "little"))
                    time.sleep(0.01)
                self.assertLess(seen[-1], 100)
                p.send_signal(signal.SIGTERM)
                self.assertEqual(p.wait(LONG), 128 + signal.SIGTERM)
                self.assertLess(int.from_bytes(m[:8], "little"), 100)

    def test_what_was_printed_before_the_end_is_printed_whatever_holds_the_pipe(self):
        code = ("import subprocess, sys\nsubprocess.Popen(['yes'])\n"
                "sys.stdout.write('x' * 30000 + '\\n')\nsys.exit(3)")
        with start("-n", "1", "--transport", "tcp", "--", sys.executable, "-c", code) as p:
            status, out, err = ended(p)
        self.assertEqual(status, 3)
        self.assertEqual(sum(line.count("x") for line in out), 30000)

    def test_each_rank_has_a_file_if_that_is_asked_for(self):
        folder = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "a/b")
        code = "import os, sys; print('out'); print('err', file=sys.stderr); sys.exit(os.environ['RANK'] == '1')"
        status, out, err = python(2, code, "--output", folder)
        self.assertEqual((status, out), (1, []))
        self.assertIn(f"rank 1 has failed with exit status 1 (see {folder}/rank-1.log)", err)
        with open(f"{folder}/rank-1.log", encoding="ascii") as f:
            self.assertEqual(sorted(f.read().split()), ["err", "out"])

    def test_a_long_tmpdir_will_do(self):
        folder = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "x" * 120)
        os.mkdir(folder)
        self.assertEqual(python(2, SUM, "--require", env={**os.environ, "TMPDIR": folder})[0], 0)


class Ends(unittest.TestCase):
    #: Prints its process ID and that of a child, and waits
    WAIT = ("import os, subprocess, sys, time\n"
            "p = subprocess.Popen(['sleep', '1000'])\n"
            "print('pids', os.getpid(), p.pid)\n")

    def pids(self, p, n):
        """Process IDs of n ranks and of their children"""
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
        code = "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + self.WAIT + "time.sleep(1000)"
        with start("-n", "2", "--grace", "200ms", "--transport", "tcp", "--", sys.executable, "-c", code) as p:
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

    #: As WAIT, but both processes ignore SIGTERM, and the child has a session of its own
    STUBBORN = ("import os, signal, subprocess, sys, time\n"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "p = subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=2)\n"
                "print('pids', os.getpid(), p.pid)\n")

    def test_sessions_of_their_own_end_too(self):
        go = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "go")
        os.mkfifo(go)
        code = self.STUBBORN + f"if os.environ['RANK'] == '1':\n open({go!r})\n sys.exit(7)\ntime.sleep(1000)"
        with start("-n", "2", "--grace", "200ms", "--transport", "tcp", "--", sys.executable, "-c", code) as p:
            pids = self.pids(p, 2)
            with open(go, "w", encoding="ascii"):
                self.assertEqual(p.wait(LONG), 7)
            self.assertEqual([pid for pid in pids if not gone(pid)], [])

    def test_nothing_is_left_when_either_of_its_processes_is_killed(self):
        for which in "the one that was called", "the one that has started ranks":
            with self.subTest(which), tempfile.TemporaryDirectory() as folder, \
                    start("-n", "2", "--grace", "200ms", "--transport", "tcp", "--", sys.executable, "-c",
                          self.STUBBORN + "time.sleep(1000)", env={**os.environ, "TMPDIR": folder}) as p:
                pids = self.pids(p, 2)
                self.assertEqual(len(os.listdir(folder)), 1)
                with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
                    child = int(f.read())
                os.kill(p.pid if which.endswith("called") else child, signal.SIGKILL)
                until(lambda: all(gone(pid) for pid in [*pids, child]))
                self.assertEqual(p.wait(LONG), -9 if which.endswith("called") else 137)
                # The directory with the secret
                until(lambda: not os.listdir(folder))

    def test_all_end_where_proc_shows_the_processes_of_the_host(self):
        go = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "go")
        os.mkfifo(go)
        code = (f"import os, signal, sys, time\nif os.environ['RANK'] == '1': open({go!r}); sys.exit(7)\n"
                f"signal.signal(15, lambda *_: (print('told'), os._exit(0)))\nopen({go!r}, 'w')\ntime.sleep(1000)")
        enter = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "sh", "-c",
                 "true; \"$@\"; exit $?", "sh"]
        if subprocess.run([*enter, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no namespace for processes can be made here")
        with start("-n", "2", "--transport", "tcp", "--", sys.executable, "-c", code, launch=[*enter, *LAUNCH]) as p:
            self.assertEqual(ended(p)[:2], (7, ["[0] told"]))

    def test_what_sigkill_does_not_end_is_named_and_left(self):
        launch = [sys.executable, "-c", "import sys, dblp.guard, dblp.run\n"
                                        "dblp.guard.LIMIT = 0.2\nsys.exit(dblp.run.main())"]
        with start("-n", "1", "--grace", "200ms", "--transport", "tcp", "--", sys.executable, "-c",
                   "import os, time; print('pids', os.getpid()); time.sleep(1000)", launch=launch) as p:
            pid, = self.pids(p, 1)
            # A traced process remains until its tracer has waited for it
            ptrace = ctypes.CDLL(None, use_errno=True).ptrace
            if ptrace(0x4206, ctypes.c_long(pid), None, None):
                self.skipTest("no process may be traced here")
            p.send_signal(signal.SIGTERM)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT | 0x40000000)
            status, _, err = ended(p)
            os.waitpid(pid, 0x40000000)
            self.assertEqual(status, 128 + signal.SIGTERM)
            self.assertRegex(err, rf"process {pid} \(python3[^ ]*, state [ZDtT]\) has not ended 0.2 s after SIGKILL")

    def test_signals_go_to_ranks(self):
        code = ("import os, signal, time\n"
                "for s in signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT:\n"
                "    signal.signal(s, lambda n, f: (print(signal.Signals(n).name), n == 2 and os._exit(0)))\n"
                "print('ready')\nwhile True: time.sleep(1000)")
        with start("-n", "2", "--transport", "tcp", "--", sys.executable, "-c", code) as p:
            for number, said in (0, "ready"), (signal.SIGUSR1, "SIGUSR1"), (signal.SIGUSR2, "SIGUSR2"):
                p.send_signal(number)
                self.assertEqual(sorted(p.stdout.readline() for _ in range(2)),
                                 [f"[{r}] {said}\n" for r in range(2)])
            p.send_signal(signal.SIGINT)
            self.assertEqual(ended(p)[:2], (130, ["[0] SIGINT", "[1] SIGINT"]))

    def test_it_stops_and_continues_with_its_ranks(self):
        def state(pid):
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                return f.read().rpartition(")")[2].split()[0]

        with start("-n", "2", "--grace", "200ms", "--transport", "tcp", "--", sys.executable, "-c",
                   self.STUBBORN + "time.sleep(1000)") as p:
            pids = [p.pid, *self.pids(p, 2)]
            p.send_signal(signal.SIGTSTP)
            until(lambda: all(state(pid) == "T" for pid in pids))
            p.send_signal(signal.SIGCONT)
            until(lambda: all(state(pid) == "S" for pid in pids))
            p.send_signal(signal.SIGTSTP)
            until(lambda: all(state(pid) == "T" for pid in pids))
            p.kill()
            until(lambda: all(gone(pid) for pid in pids[1:]))

    def test_a_signal_that_is_sent_twice_leaves_time_to_end(self):
        code = ("import os, signal, time\n"
                "signal.signal(15, lambda *_: (time.sleep(0.3), print('saved'), os._exit(0)))\n"
                "print('ready')\ntime.sleep(1000)")
        with start("-n", "1", "--transport", "tcp", "--", sys.executable, "-c", code) as p:
            p.stdout.readline()
            # timeout(1) sends each signal twice
            p.send_signal(signal.SIGTERM)
            p.send_signal(signal.SIGTERM)
            self.assertEqual(ended(p)[:2], (143, ["[0] saved"]))

    def test_a_signal_that_is_sent_again_later_ends_all_at_once(self):
        code = "import signal, time\nsignal.signal(15, lambda *_: print('no'))\nprint('ready')\n" \
               "while True: time.sleep(1000)"
        with start("-n", "1", "--grace", "1h", "--transport", "tcp", "--", sys.executable, "-c", code) as p:
            p.stdout.readline()
            p.send_signal(signal.SIGTERM)
            p.stdout.readline()
            time.sleep(1.1)
            p.send_signal(signal.SIGTERM)
            self.assertEqual(ended(p)[0], 143)

    def test_a_signal_that_is_ignored_stays_so(self):
        code = ("import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: print('got it'))\n"
                "print('ready')\nwhile True: time.sleep(1000)")
        with start("-n", "1", "--transport", "tcp", "--", sys.executable, "-c", code,
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as p:
            for number, said in (0, "ready"), (signal.SIGHUP, ""), (signal.SIGUSR1, "got it"):
                p.send_signal(number)
                self.assertTrue(not said or p.stdout.readline() == f"[0] {said}\n")
            p.send_signal(signal.SIGTERM)
            self.assertEqual(ended(p)[0], 128 + signal.SIGTERM)

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
        # A launcher that is itself a rank has only tried the transport
        status, _, err = run("-n", "1", "--transport", "tcp", "--require", "--", *LAUNCH, "--", "true")
        self.assertEqual(status, 1, err)
        self.assertIn("rank 0 has ended without having used dblp", err)


#: Five operations, with a progress report for each
FIVE = """
import array, dblp, dblp.progress
dblp.progress.EVERY = 0
with dblp.Comm() as comm:
    for _ in range(5):
        comm.allreduce(array.array("i", [1]) * 1000).wait()
"""


def progress(err):
    """Numbers of operations, and budgets, of the progress lines in `err`"""
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
        line = Line(self.stderr.write)
        for text in "1, budget 1%", "2, budget 1%", "3, budget 1% ... 2%", "4, budget 2%", "5, budget 2%":
            line.show(text)
        line.end()
        line.end()
        self.assertEqual(self.stderr.getvalue().replace(Line.BEGIN, "").splitlines(),
                         ["1, budget 1%", "3, budget 1% ... 2%", "4, budget 2%", "5, budget 2%"])

    def test_is_written_over_on_a_terminal_and_makes_room_for_lines(self):
        reader, writer = os.openpty()
        with open(writer, "w", encoding="ascii") as terminal, contextlib.redirect_stderr(terminal):
            line = Line(terminal.write)
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
            (["--require"], 2, "--require and --output need -n or --hosts"),
            (["-n", "1", "--ports", "2-1"], 2, "'2-1' is not a range of ports"),
            (["-n", "1", "--timeout", "5d"], 2, "time '5d' is not a time such as"),
            (["-n", "1", "--timeout", "5"], 2, "time '5' has no unit: ms, s, min or h"),
            (["-n", "1", "--grace", "0s"], 2, "time '0s' is not above 0"),
            (["-n", "1", "--hosts", "/dev/null"], 2, "-n and --hosts exclude each other"),
            (["-n", "0"], 2, "'0' is not a number within 1"),
            (["-n", "1", "--budget", "2"], 2, "budget '2' has no unit"),
            (["-n", "1", "--rule", "best"], 2, "rule 'best' is not one of bubble, rescale"),
            (["-n", "1", "--transport", "udp"], 2, "'udp' is neither dblp, tcp nor tcp:CC"),
            (["-n", "1", "--transport", "tcp:none"], 1, "tcp:none does not work here: "),
            (["-n", "1", "--norms", "4"], 2, "--norms needs --job"),
            (["-n", "1", "--export", "NOT_THERE"], 2, "the environment has no NOT_THERE"),
            (["--hosts", "/dev/null"], 1, "/dev/null has no hosts"),
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

    def test_two_runs_that_start_at_once_have_ports_of_their_own(self):
        ports = []
        for _ in range(2):
            random.seed(1)
            ports.append(free_ports())
        self.assertNotEqual(*ports)
        kept = len(_reserved)
        self.assertRaises(OSError, reserve, ports[0])
        self.assertEqual(len(_reserved), kept)

    def test_hosts_are_lines_with_numbers(self):
        text = "# ours\na 2\n\n  user@b   # one\n2001:db8::1 1\n"
        self.assertEqual(parse_hosts(text, "f"), [("a", 2), ("user@b", 1), ("2001:db8::1", 1)])
        for line in "a 0", "a x", "a 1 2", "-oProxyCommand=x", "a -1":
            with self.assertRaisesRegex(ValueError, f"f:2: '{line}' is not HOST"):
                parse_hosts("b\n" + line, "f")


class Hosts(unittest.TestCase):
    """With a shell instead of ssh, which first prints its arguments"""

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.hosts, self.ssh = os.path.join(folder, "hosts"), os.path.join(folder, "ssh")
        with open(self.hosts, "w", encoding="ascii") as f:
            f.write("localhost 1\nuser@other 2\n")
        with open(self.ssh, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\necho "to $1" >&2\necho "$2" >> "$0.commands"\nexec env -i HOME=/ sh -c "$2"\n')
        os.chmod(self.ssh, 0o755)

    def args(self, *more):
        return ["--hosts", self.hosts, "--ssh", self.ssh, "--transport", "tcp", "--master-port",
                str(free_ports()), *more, "--", sys.executable, "-c"]

    def test_ranks_of_several_hosts_find_each_other(self):
        code = SUM + "import os; print(os.environ['LOCAL_RANK'], os.environ['A'], os.getcwd())"
        status, out, err = run(*self.args("--require", "--export", "A=it's"), code, cwd="/usr")
        self.assertEqual(out, sorted(
            [f"[{r}] sum 3 rank {r} of 3, epoch 0, over tcp" for r in range(3)] +
            [f"[{r}] {local} it's /usr" for r, local in enumerate((0, 0, 1))]), err)
        self.assertEqual(status, 0)
        self.assertIn("to localhost\n", err)
        self.assertIn("to user@other\n", err)

    def test_what_no_other_user_may_see_is_on_no_command_line(self):
        code = ("import os; print(os.environ['KEY'], open(os.environ['DBLP_SECRET_FILE']).read().strip(),"
                " *[open(f'/proc/{pid}/cmdline').read().count('hush7' + 'hush')"
                " for pid in (os.getpid(), os.getppid())])")
        status, out, err = run(*self.args("--export", "KEY"), code, env={**os.environ, "KEY": "hush7hush"})
        self.assertEqual(status, 0, err)
        self.assertEqual([line[4:].split()[0::2] for line in out], [["hush7hush", "0"]] * 3)
        secret, = {line.split()[2] for line in out}
        with open(self.ssh + ".commands", encoding="ascii") as f:
            commands = f.read()
        self.assertEqual([commands.count(word) for word in ("hush7hush", secret, "--node")], [0, 0, 2])

    def test_signals_go_to_ranks_of_other_hosts(self):
        code = ("import os, signal, time\n"
                "for s in signal.SIGUSR1, signal.SIGINT:\n"
                "    signal.signal(s, lambda n, f: (print(signal.Signals(n).name), n == 2 and os._exit(0)))\n"
                "print('ready')\nwhile True: time.sleep(1000)")
        with start(*self.args(), code) as p:
            for number, said in (0, "ready"), (signal.SIGUSR1, "SIGUSR1"):
                p.send_signal(number)
                self.assertEqual(sorted(p.stdout.readline() for _ in range(3)), [f"[{r}] {said}\n" for r in range(3)])
            p.send_signal(signal.SIGINT)
            status, out, err = ended(p)
            self.assertEqual((status, out), (130, [f"[{r}] SIGINT" for r in range(3)]))
            self.assertEqual(err.count("the others are ended"), 1)

    def test_a_loopback_address_of_rank_0_is_named(self):
        _, _, err = run(*self.args(), "")
        self.assertRegex(err, r"dblp-run: .*: localhost is (127.0.0.1|::1).* here: rank 1 reaches rank 0 only on the "
                              "same host; otherwise set --master-addr\n")

    def test_how_a_run_gets_on_is_told_by_the_host_of_rank_0(self):
        status, _, err = run(*self.args(), FIVE)
        self.assertEqual((status, progress(err)), (0, [(1, "0%"), (5, "0%")]), err)
        # Here dblp-run prints each progress line: the dblp-run that started it chooses
        node = ["--node", "0:1:1", "--master-addr", "localhost", "--master-port", "1", "--transport", "tcp"]
        with start(*node, "--", sys.executable, "-c", FIVE.replace("Comm()", "Comm(0, 1, ({}.get, {}.get))"),
                   stdin=subprocess.PIPE) as p:
            p.stdin.write("{}\n")
            p.stdin.flush()
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
            p.stdin.write("{}\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), "[0] runs\n")
            status, _, err = ended(p)
            self.assertEqual(status, 128 + signal.SIGHUP)
            self.assertIn("the connection to the host that started this has ended", err)


#: Variables of ranks 0 and 1 of a launcher, and the address of rank 0
OTHERS = {
    "torchrun": ("RANK={} WORLD_SIZE=2 LOCAL_RANK={} LOCAL_WORLD_SIZE=2 MASTER_ADDR=alpha MASTER_PORT=77",
                 "alpha 77 None"),
    "mpirun": ("OMPI_COMM_WORLD_RANK={} OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK={} "
               "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=9", "127.0.0.1 25418 None"),
    "srun": ("SLURM_PROCID={} SLURM_NTASKS=2 SLURM_LOCALID={} SLURM_STEP_TASKS_PER_NODE=2(x1) SLURM_JOB_ID=5 "
             "SLURM_STEP_ID=0 SLURM_STEP_NODELIST=node[07-09,11],other", "node07 29070 None"),
}


class Thin(unittest.TestCase):
    """dblp-run that starts a launcher, or that a launcher starts"""

    NAMES = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT DBLP_PORT DBLP_BUDGET".split()
    CODE = f"import os; print(*[os.environ.get(n) for n in {NAMES}])"
    TCP = ("--transport", "tcp", "--budget", "1%", "--", sys.executable, "-c")

    def setUp(self):
        self.bare = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}

    def test_ranks_of_other_launchers_find_each_other(self):
        for launcher, (variables, where) in OTHERS.items():
            for rank in "01":
                env = dict(word.split("=", 1) for word in variables.format(rank, rank).split())
                with self.subTest(launcher, rank=rank):
                    status, out, err = run(*self.TCP, self.CODE, env={**self.bare, **env})
                    self.assertEqual((status, out), (0, [f"{rank} 2 {rank} 2 {where} 1%"]), err)
                    self.assertEqual(err.count("2 ranks of"), int(rank == "0"))

    def test_the_processes_of_a_launcher_have_the_options(self):
        _, out, err = run(*self.TCP, self.CODE, env=self.bare)
        self.assertRegex(out[0], r"^None None None None 127.0.0.1 \d+ None 1%$")
        self.assertIn("starts over tcp, budget 1%", err)
        # A script of sbatch(1) is not a rank, but its job has a list of hosts
        env = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "a[1-2]"}
        _, out, _ = run(*self.TCP, self.CODE, env={**self.bare, **env})
        self.assertRegex(out[0], r"^None None None None a1 \d+ None 1%$")

    def test_it_becomes_the_program(self):
        with start(*self.TCP, "import os; print(os.getpid()); input()", env=self.bare, stdin=subprocess.PIPE) as p:
            self.assertEqual(int(p.stdout.readline()), p.pid)
            p.stdin.close()
            self.assertEqual(p.wait(LONG), 1)

    def test_where_rank_0_is_has_to_be_known(self):
        env = {"PMI_RANK": "1", "PMI_SIZE": "2"}
        self.assertEqual(run(*self.TCP, self.CODE, env={**self.bare, **env})[:2], (1, []))
        _, out, _ = run("--master-addr", "b", *self.TCP, self.CODE, env={**self.bare, **env})
        self.assertEqual(out, ["1 2 None None b 29500 None 1%"])

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun (openmpi-bin)")
    def test_open_mpi_on_either_side(self):
        mpirun = ["mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root"]
        here = [*LAUNCH, "--transport", "tcp", "--"]
        # Print whole lines, because mpirun(1) prints pieces as they arrive
        program = [sys.executable, "-c", SUM.replace("print(", "import os; os.write(1, b'%s %d %s\\n' % (b").replace(
            "[0])", "[0].encode()))")]
        for command in [*here, *mpirun, *program], [*mpirun, *here, *program]:
            with start(launch=command, env=self.bare) as p:
                status, out, err = ended(p)
            self.assertEqual((status, out), (0, [f"sum 2 rank {r} of 2, epoch 0, over tcp" for r in range(2)]), err)


if __name__ == "__main__":
    unittest.main()
