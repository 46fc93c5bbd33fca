# SPDX-License-Identifier: GPL-2.0-only
"""Ranks for the tests: threads of this process, or processes."""

import array
import gc
import os
import subprocess
import sys
import threading
import time

import dblp

#: Seconds after which a test fails that still waits
LONG = 60


class Store:
    """A key-value store of a program."""

    def __init__(self):
        self.values = {}

    def kv(self):
        return self.values.__setitem__, self.values.get


class Folder:
    """A key-value store that processes share."""

    def __init__(self, path):
        self.path = path

    def put(self, key, value):
        name = os.path.join(self.path, key.replace("/", "-"))
        with open(name + ".new", "wb") as f:
            f.write(value)
        os.rename(name + ".new", name)

    def get(self, key):
        try:
            with open(os.path.join(self.path, key.replace("/", "-")), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def kv(self):
        return self.put, self.get


def attributes(**more):
    return {"transport": "tcp", "join_ms": LONG * 1000, **more}


def with_ranks(n, function, **attr):
    """Call function(comm) in n threads, one for each rank; return their results or exceptions"""
    store = Store()
    outcome = [None] * n

    def run(rank):
        try:
            with dblp.Comm(rank, n, store.kv(), **attributes(**attr)) as comm:
                outcome[rank] = function(comm)
        except BaseException as e:
            outcome[rank] = e

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a rank has not ended"
    return outcome


def good(outcome):
    """Return the results of all ranks; raise the first exception among them"""
    for o in outcome:
        if isinstance(o, BaseException):
            raise o
    return outcome


def torchrun_options():
    """
    Options of torchrun by which ranks of this machine find each other, and its environment. That of
    Debian 13 has no libuv, which the store of --standalone needs.
    """
    from importlib import metadata  # not in the VM, as PyTorch is not

    if tuple(map(int, metadata.version("torch").split(".")[:2])) < (2, 6):
        return ["--standalone"], {}
    return (["--rdzv_backend", "c10d", "--rdzv_conf", "store_type=file", "--local-addr", "127.0.0.1"],
            {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "USE_LIBUV": "0"})


def until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.01)


def process(code, *args, first="", **options):
    """A Python process that runs `code`, with the names of common.py"""
    return subprocess.Popen([sys.executable, "-c", first + "from common import *\n" + code, *args],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
