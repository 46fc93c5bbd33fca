# SPDX-License-Identifier: GPL-2.0-only
"""unittest's results as TAP."""

import sys
import time
import unittest


class Tap(unittest.TestResult):
    """A line for each test."""

    def point(self, test, word, comment=""):
        name = test._testMethodName.replace("test_", "", 1).replace("_", " ")
        sys.stdout.write(f"# {1000 * (time.monotonic() - self.began):.0f} ms\n")
        sys.stdout.write(f"{word} {self.testsRun} {name}{comment}\n")
        sys.stdout.flush()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.bad = False

    def wrong(self, error):
        self.bad = True
        for line in error.splitlines():
            print("#", line)

    def addError(self, test, err):
        super().addError(test, err)
        self.wrong(self.errors[-1][1])
        if not isinstance(test, unittest.TestCase):
            print(f"Bail out! {test}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.wrong(self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            print(f"# {subtest}")
            self.wrong((self.failures + self.errors)[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.point(test, "ok", f" # SKIP {reason}")
        self.skip = True

    def stopTest(self, test):
        if not (self.skipped and self.skipped[-1][0] is test):
            self.point(test, "not ok" if self.bad else "ok")
        super().stopTest(test)

    @classmethod
    def main(cls, suite):
        """Run the suite; return the exit status"""
        print("TAP version 13")
        result = cls()
        suite.run(result)
        print(f"1..{result.testsRun}")
        return 0 if result.testsRun and result.wasSuccessful() else 1
