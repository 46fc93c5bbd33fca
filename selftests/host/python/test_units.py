# SPDX-License-Identifier: GPL-2.0-only
"""Budgets and names."""

import os
import re
import unittest

import dblp
from dblp.enums import to_enum
from dblp.units import format_budget

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def shares_of_dblpctl():
    """The table of the test in C: texts with their ppm, or None if they are refused"""
    with open(os.path.join(TOP, "tools/dblpctl/units-test.c"), encoding="ascii") as f:
        table = f.read().split("shares[] = {")[1].split("};")[0]
    return [(text, None if ppm == "REFUSED" else int(ppm))
            for text, ppm in re.findall(r'\{ "([^"]*)", (\w+) \}', table)]


class Units(unittest.TestCase):
    def test_budgets_are_those_of_dblpctl(self):
        shares = shares_of_dblpctl()
        self.assertGreater(len(shares), 40)
        for text, ppm in shares:
            with self.subTest(text):
                if ppm is None or ppm > dblp.PPM:
                    with self.assertRaisesRegex(ValueError, "^budget "):
                        dblp.parse_budget(text)
                else:
                    self.assertEqual(dblp.parse_budget(text), ppm)
                    self.assertEqual(dblp.parse_budget(format_budget(ppm)), ppm)
        self.assertEqual([format_budget(ppm) for ppm in (0, 1, 8000, 20000, 100000, dblp.PPM)],
                         ["0%", "0.0001%", "0.8%", "2%", "10%", "100%"])

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
