# SPDX-License-Identifier: GPL-2.0-only
"""Compares the declarations in dblp._c with the headers of libdblp, by the compiler."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import dblp
from dblp import _c

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
ENUMS = {dblp.Dtype: "DBLP_DTYPES", dblp.Rule: "DBLP_RULES", dblp.Algo: "DBLP_ALGOS"}


def header(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


def fields():
    for name, struct in _c.STRUCTS.items():
        yield f"sizeof(struct {name}) == {ctypes.sizeof(struct)}"
        for field, kind in struct._fields_:
            at, one = getattr(struct, field), f"((struct {name} *)0)->{field}"
            yield f"offsetof(struct {name}, {field}) == {at.offset}"
            yield f"sizeof({one}) == {ctypes.sizeof(kind)}"
            if issubclass(kind, (ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64)):
                sign = "<" if kind is ctypes.c_int32 else ">"
                yield f"(__typeof__({one}))-1 {sign} 0"


def functions():
    for name, (returns, *arguments) in _c.FUNCTIONS.items():
        yield (f"__builtin_types_compatible_p(__typeof__({name}), "
               f"{returns} ({', '.join(arguments)}))")


def values():
    for enum in dblp.Dtype, dblp.Rule, dblp.Algo, dblp.Policy, dblp.OpFlags, dblp.PlanFlags, dblp.LaneFlags:
        for member in enum:
            yield f"{member.name} == {int(member)}"
    for enum, end in ENUMS.items():
        yield f"{end} == {len(enum)}"
    yield f"DBLP_PPM == {dblp.PPM}"
    yield f"DBLP_LEVELS_MAX == {_c.LEVELS_MAX}"
    yield f"DBLP_LANES_MAX == {_c.LANES_MAX}"
    yield f"DBLP_ABSENT_RANKS == {_c.ABSENT_RANKS}"
    yield f"DBLP_VALUE_TEXT == {_c.VALUE_TEXT}"
    yield f"DBLP_BLOCK_MAX == {_c.BLOCK_MAX}"
    yield f"DBLP_PHASES == {_c.PHASES}"
    yield f"DBLP_COMM_RANK_ENV == {_c.RANK_ENV}"


def refused(claims):
    """The claims that the compiler refutes"""
    text = "#include <stddef.h>\n#include <linux/dblp.h>\n#include <comm.h>\n#include <tune.h>\n#include <libdblp.h>\n"
    text += "".join(f'_Static_assert({claim}, "claim {i}");\n' for i, claim in enumerate(claims))
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write(text)
        f.flush()
        cc = subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-fsyntax-only",
                             "-I", f"{TOP}/uapi", "-I", f"{TOP}/tools/libdblp", f.name],
                            stderr=subprocess.PIPE, text=True, check=False)
    wrong = [claims[int(i)] for i in dict.fromkeys(re.findall(r'"claim (\d+)"', cc.stderr))]
    return wrong or ([cc.stderr] if cc.returncode else [])


@unittest.skipUnless(shutil.which(os.environ.get("CC", "gcc")), "there is no compiler")
class Layout(unittest.TestCase):
    def test_structures_are_those_of_the_headers(self):
        claims = list(fields())
        self.assertGreater(len(claims), 120)
        self.assertEqual(refused(claims), [])

    def test_functions_are_those_of_the_headers(self):
        self.assertEqual(refused(list(functions())), [])

    def test_enumerations_are_those_of_the_headers(self):
        self.assertEqual(refused(list(values())), [])

    def test_a_wrong_claim_is_found(self):
        self.assertEqual(refused(["sizeof(struct dblp_op) == 7", "1"]), ["sizeof(struct dblp_op) == 7"])

    def test_no_field_or_flag_of_the_headers_is_forgotten(self):
        text = header("tools/libdblp/comm.h") + header("tools/libdblp/plan.h") + header("tools/libdblp/tune.h")
        for name, struct in _c.STRUCTS.items():
            body = re.search(rf"^struct {name} {{\n(.*?)^}};", text, re.M | re.S).group(1)
            found = re.findall(r"\(\*(\w+)\)|(\w+)(?:\[\w+\])?;", re.sub(r"\)\([^;]*;", ");", body))
            self.assertEqual([a or b for a, b in found], [f for f, _ in struct._fields_])
        for enum, name in ((dblp.OpFlags, "dblp_op_flags"), (dblp.PlanFlags, "dblp_plan_flags"),
                           (dblp.LaneFlags, "dblp_lane_flags"),
                           (dblp.Policy, "dblp_policy")):
            body = re.search(rf"^enum {name} {{\n(.*?)^}};", text + header("uapi/linux/dblp.h"),
                             re.M | re.S).group(1)
            self.assertEqual(re.findall(r"^\t(DBLP_\w+)", body, re.M), [m.name for m in enum])
