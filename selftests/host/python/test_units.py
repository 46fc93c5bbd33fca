# SPDX-License-Identifier: GPL-2.0-only
"""Budgets, times and names."""

import os
import unittest

import dblp
from dblp.enums import to_enum
from dblp.units import format_budget, parse_time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def cases(kind):
    """Texts with their value, or the reason for which they are refused, of the table of all parsers"""
    with open(os.path.join(TOP, "selftests/unit/units.cases"), encoding="ascii") as f:
        lines = [line.rstrip("\n").split("\t") for line in f if line.startswith(f"{kind}\t")]
    for _, text, value in lines:
        yield (text, None, value[2:]) if value.startswith("! ") else (text, int(value), None)


class Units(unittest.TestCase):
    def parses(self, kind, name, parse):
        for text, value, reason in cases(kind):
            with self.subTest(text):
                if reason:
                    with self.assertRaises(ValueError) as e:
                        parse(text)
                    self.assertEqual(str(e.exception), f"{name} {text!r} {reason}")
                else:
                    self.assertEqual(parse(text), value)

    def test_budgets_are_shares_with_a_unit(self):
        self.assertGreater(len(list(cases("share"))), 40)
        self.parses("share", "budget", dblp.parse_budget)
        self.parses("share", "budget", lambda text: dblp.Op(budget=text).to_c(dblp.Dtype.DBLP_FLOAT32).budget)
        for text in "2%\0", "\0", "2\udc80%", "\u0662%":
            with self.assertRaisesRegex(ValueError, "^budget .* is not a share"):
                dblp.parse_budget(text)
        self.assertEqual([format_budget(ppm) for ppm in (0, 1, 8000, 20000, 100000, dblp.PPM)],
                         ["0%", "0.0001%", "0.8%", "2%", "10%", "100%"])

    def test_times_have_a_unit(self):
        self.assertGreater(len(list(cases("time"))), 30)

        def parse(text):
            # Options of dblp-run refuse times of 0
            return 0 if text in ("0ms", "0s") else parse_time(text)
        self.parses("time", "time", parse)
        for text in "0ms", "0s":
            self.assertRaisesRegex(ValueError, "is not above 0", parse_time, text)

    def test_a_budget_is_a_text_or_ppm(self):
        self.assertEqual(dblp.parse_budget(0), 0)
        self.assertEqual(dblp.parse_budget(dblp.PPM), dblp.PPM)
        for wrong in -1, dblp.PPM + 1:
            self.assertRaises(ValueError, dblp.parse_budget, wrong)
        for wrong in 0.02, None, b"2%", True:
            self.assertRaises(TypeError, dblp.parse_budget, wrong)

    def test_enumerations_are_taken_by_value_and_by_both_names(self):
        for value in "ring", "DBLP_RING", 2, dblp.Algo.DBLP_RING:
            self.assertIs(to_enum(dblp.Algo, value), dblp.Algo.DBLP_RING)
        for wrong in "Ring", "", 6, -1, None, True, 1.0:
            with self.assertRaisesRegex(ValueError, "is not one of ps, transpose, ring"):
                to_enum(dblp.Algo, wrong)
