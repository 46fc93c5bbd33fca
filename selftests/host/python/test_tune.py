# SPDX-License-Identifier: GPL-2.0-only
"""Budgets that are found, by ranks over TCP, which loses nothing; selftests/unit/test_tune.c has the law."""

import array
import random
import unittest

import dblp
from common import LONG, good, with_ranks
from dblp.tune import CAP, Tuner, parse_auto

SIZE = 1000


def budgets(comm, cap, rounds, equal=False, after=lambda tuner: tuner):
    """Budgets of some rounds of two vectors each; all ranks have equal vectors, or their own"""
    numbers = random.Random(1 if equal else comm.rank)
    tuner, found = Tuner("feedback", cap), []
    for _ in range(rounds):
        tuner = after(tuner)
        found.append(tuner.next_round(comm))
        for key in range(2):
            vector = array.array("f", [numbers.gauss(0.5, 1) for _ in range(SIZE)])
            op = dblp.Op(budget=found[-1], rule="feedback", key=key, average=True, energy=True)
            tuner.add(comm.allreduce(vector, op=op), 4 * SIZE)
    agreement = tuner.agreement
    # The operations of the last round end, too
    tuner.next_round(comm)
    tuner.next_round(comm)
    return found, agreement


class Budgets(unittest.TestCase):
    def test_are_found_and_equal_on_all_ranks(self):
        outcome = good(with_ranks(4, lambda comm: budgets(comm, CAP, 8)))
        self.assertEqual(outcome, outcome[:1] * 4)
        found, agreement = outcome[0]
        # The mean of the products is 0.25 of a mean square of 1.25
        self.assertAlmostEqual(agreement, 0.2, delta=0.05)
        # The third round may lose 1.1 times the target, because the first one has lost nothing
        self.assertEqual((found[:2], found), ([0, 0], sorted(found)))
        self.assertAlmostEqual(found[2], 122000, delta=12000)

    def test_are_at_most_the_cap(self):
        for outcome in good(with_ranks(3, lambda comm: budgets(comm, 5000, 4))):
            self.assertEqual(outcome[0], [0, 0, 5000, 5000])

    def test_are_nothing_where_ranks_are_equal(self):
        for outcome in good(with_ranks(3, lambda comm: budgets(comm, CAP, 4, equal=True))):
            self.assertEqual(outcome[0], [0] * 4)
            self.assertAlmostEqual(outcome[1], 1)

    def test_continue_from_a_checkpoint(self):
        # Operations of the last round are not in a checkpoint
        def restart(tuner):
            again = Tuner("feedback", CAP)
            again.set(tuner.get())
            again._round, again._bytes, again._exchange = tuner._round, tuner._bytes, tuner._exchange
            return again

        self.assertEqual(good(with_ranks(2, lambda comm: budgets(comm, CAP, 5, after=restart))),
                         good(with_ranks(2, lambda comm: budgets(comm, CAP, 5))))
        with self.assertRaisesRegex(ValueError, "another version"):
            Tuner("feedback", CAP).set(b"1")

    def test_as_text_have_a_cap(self):
        self.assertEqual([parse_auto(text) for text in ("auto", "auto:40%", "2%", 7, "automatic")],
                         [CAP, 400000, None, None, None])
        for text in "auto:", "auto:x", "auto:101%":
            with self.assertRaises(ValueError):
                parse_auto(text)


class Energies(unittest.TestCase):
    def test_are_measured_if_an_op_says_so(self):
        def run(comm):
            return [comm.allreduce(array.array("f", [3, 4]), op=dblp.Op(energy=energy)).wait(LONG)
                    for energy in (True, False)]

        for measured, other in good(with_ranks(2, run)):
            self.assertEqual((measured.energy_sent, measured.energy_mean, measured.energy_lost), (25, 25, 0))
            self.assertEqual((other.energy_sent, other.energy_mean), (0, 0))
        with self.assertRaises(TypeError):
            dblp.Op(energy=1)


if __name__ == "__main__":
    unittest.main()
