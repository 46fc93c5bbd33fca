# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""
C declarations of libdblp. selftests/host/python/test_layout.py compares them with the headers,
by the compiler.
"""

from __future__ import annotations

import ctypes as c
import os
from typing import Any

LEVELS_MAX = 16
LANES_MAX = 8
BLOCK_MAX = 1 << 20
PHASES = 8
ABSENT_RANKS = 12
VALUE_TEXT = 40
RANK_ENV = -1

KV_SET = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_void_p, c.c_size_t)
KV_GET = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_void_p, c.POINTER(c.c_size_t))


class Lane(c.Structure):
    """struct dblp_lane"""

    _fields_ = [(name, c.c_uint32) for name in (
        "flags", "budget", "policy", "priority", "tos", "large", "rest", "reserved")]


class LanePart(c.Structure):
    """struct dblp_lane_part"""

    _fields_ = [("first", c.c_uint64), ("end", c.c_uint64), ("lane", c.c_uint32),
                ("reserved", c.c_uint32)]


class LaneResult(c.Structure):
    """struct dblp_lane_result"""

    _fields_ = [(name, c.c_uint64) for name in ("asked", "missing", "ns")]


class CommAttr(c.Structure):
    """struct dblp_comm_attr"""

    _fields_ = [
        ("size", c.c_uint32), ("rank", c.c_int32), ("nranks", c.c_int32),
        ("epoch", c.c_uint32), ("rendezvous", c.c_char_p), ("transport", c.c_char_p),
        ("devices", c.c_char_p), ("kv_set", KV_SET), ("kv_get", KV_GET),
        ("kv", c.c_void_p), ("job", c.c_uint32), ("join_ms", c.c_uint32),
        ("timeout_ms", c.c_uint32), ("keepalive_ms", c.c_uint32),
        ("message_bytes", c.c_uint32), ("lanes", c.c_uint32), ("lane", c.POINTER(Lane)),
        ("secret", c.c_char_p), ("ports", c.c_char_p), ("bind", c.c_char_p),
        ("operation_ms", c.c_uint32), ("authenticate", c.c_uint32),
    ]


class CommStats(c.Structure):
    """struct dblp_comm_stats"""

    _fields_ = [(name, c.c_uint64) for name in ("strangers", "versions", "stale", "late")]


class Op(c.Structure):
    """struct dblp_op"""

    _fields_ = [(name, c.c_uint32) for name in (
        "size", "flags", "algo", "rule", "dtype", "budget", "policy", "phase", "wait_ms",
        "plan_flags", "root", "fanin", "turn", "levels")] + [
        ("radix", c.c_uint32 * LEVELS_MAX), ("key", c.c_uint64), ("prune", c.c_uint32),
        ("block", c.c_uint32), ("parts", c.c_uint32), ("limit_ms", c.c_uint32),
        ("part", c.POINTER(LanePart))]


class Result(c.Structure):
    """struct dblp_result"""

    _fields_ = [(name, c.c_uint64) for name in ("asked", "missing", "lost", "none", "ns")] + [
        ("least", c.c_uint32), ("late_ranks", c.c_uint32), ("failed_rank", c.c_int32),
        ("error", c.c_int32), ("budget_least", c.c_uint32), ("budget_most", c.c_uint32),
        ("sent", c.c_uint64), ("pruned", c.c_uint64), ("lane", LaneResult * LANES_MAX)] + [
        (name, c.c_double) for name in ("energy_sent", "energy_lost", "energy_mean")]


class Energy(c.Structure):
    """struct dblp_energy"""

    _fields_ = [("contributions", c.c_uint32), ("rule", c.c_uint32), ("sent", c.c_double), ("lost", c.c_double),
                ("mean", c.c_double), ("missing", c.c_uint64), ("bytes", c.c_uint64)]


class Tune(c.Structure):
    """struct dblp_tune"""

    _fields_ = [("target", c.c_uint32), ("rounds", c.c_uint32), ("saved", c.c_double), ("common", c.c_double),
                ("most", c.c_double), ("agreement", c.c_double), ("contributions", c.c_uint32), ("rule", c.c_uint32)]


class Span(c.Structure):
    """struct dblp_span"""

    _fields_ = [("first", c.c_uint64), ("end", c.c_uint64)]


STRUCTS = {
    "dblp_comm_attr": CommAttr, "dblp_comm_stats": CommStats, "dblp_op": Op,
    "dblp_result": Result, "dblp_span": Span, "dblp_lane": Lane, "dblp_lane_part": LanePart,
    "dblp_lane_result": LaneResult, "dblp_energy": Energy, "dblp_tune": Tune,
}

#: Functions by name: C types of the return value and of the arguments
FUNCTIONS = {
    "dblp_comm_open": ("int", "struct dblp_comm **", "const struct dblp_comm_attr *"),
    "dblp_comm_close": ("void", "struct dblp_comm *"),
    "dblp_comm_abort": ("void", "struct dblp_comm *", "int"),
    "dblp_comm_rank": ("uint32_t", "const struct dblp_comm *"),
    "dblp_comm_nranks": ("uint32_t", "const struct dblp_comm *"),
    "dblp_comm_describe": ("const char *", "const struct dblp_comm *"),
    "dblp_comm_error": ("int", "struct dblp_comm *", "int32_t *"),
    "dblp_comm_absent": ("int", "struct dblp_comm *", "uint32_t *", "size_t"),
    "dblp_comm_why": ("const char *", "struct dblp_comm *"),
    "dblp_comm_fd": ("int", "const struct dblp_comm *"),
    "dblp_comm_stats": ("void", "struct dblp_comm *", "struct dblp_comm_stats *", "size_t"),
    "dblp_barrier": ("int", "struct dblp_comm *", "struct dblp_req **"),
    "dblp_comm_send": ("int", "struct dblp_comm *", "const void *", "uint64_t", "uint32_t", "uint32_t",
                       "struct dblp_req **"),
    "dblp_comm_recv": ("int", "struct dblp_comm *", "void *", "uint64_t", "uint32_t", "uint32_t",
                       "struct dblp_req **"),
    "dblp_comm_owned": ("int", "struct dblp_comm *", "uint64_t", "const struct dblp_op *",
                        "struct dblp_span *", "size_t"),
    "dblp_key_forget": ("int", "struct dblp_comm *", "uint64_t"),
    "dblp_residual_get": ("int", "struct dblp_comm *", "uint64_t", "uint32_t", "void *", "uint64_t"),
    "dblp_residual_set": ("int", "struct dblp_comm *", "uint64_t", "uint32_t", "const void *", "uint64_t"),
    "dblp_job_norm": ("int", "uint32_t", "double"),
    "dblp_share_parse": ("const char *", "const char *", "uint32_t *"),
    "dblp_share_format": ("void", "uint32_t", "char *"),
    "dblp_time_parse": ("const char *", "const char *", "uint32_t *"),
    "dblp_plan_radix": ("int", "uint32_t", "uint32_t", "uint32_t *"),
    "dblp_tune_budget": ("uint32_t", "const struct dblp_tune *", "uint32_t"),
    "dblp_tune_round": ("void", "struct dblp_tune *", "const struct dblp_energy *"),
    "dblp_wait": ("int", "struct dblp_req *", "int", "struct dblp_result *", "size_t"),
}
FUNCTIONS.update((name, ("int", "struct dblp_comm *", "void *", "uint64_t",
                         "const struct dblp_op *", "struct dblp_req **"))
                 for name in ("dblp_allreduce", "dblp_reduce_scatter", "dblp_allgather", "dblp_reduce",
                              "dblp_broadcast"))

_TYPES = {"void": None, "int": c.c_int, "uint32_t": c.c_uint32, "uint64_t": c.c_uint64,
          "size_t": c.c_size_t, "double": c.c_double, "const char *": c.c_char_p}


def _library() -> Any:
    """
    The library that DBLP_LIBRARY names, else that of a wheel, else an installed one, also of this
    prefix without ldconfig(8).
    """
    here = os.path.dirname(os.path.abspath(__file__))
    of_wheel = os.path.join(here, "libdblp.so.0")
    if "DBLP_LIBRARY" in os.environ:
        return c.CDLL(os.environ["DBLP_LIBRARY"])
    if os.path.exists(of_wheel):
        return c.CDLL(of_wheel)
    try:
        return c.CDLL("libdblp.so.0")
    except OSError:
        of_prefix = os.path.abspath(os.path.join(here, "../../../libdblp.so.0"))
        if not os.path.exists(of_prefix):
            raise
        return c.CDLL(of_prefix)


def _load() -> Any:
    try:
        library = _library()
        for function, (returns, *arguments) in FUNCTIONS.items():
            f = getattr(library, function)
            f.restype = _TYPES[returns]
            f.argtypes = [_TYPES.get(a, c.c_void_p) for a in arguments]
    except (OSError, AttributeError) as e:
        raise ImportError(f"no libdblp ({e}): install it, or set DBLP_LIBRARY to its path") from e
    return library


lib = _load()
