#!/usr/bin/env python3
"""Runs the unittest cases of one file and prints a TAP line for each: unittest_tap.py FILE.

tests/run_all counts these lines, so that a Python test weighs as much as one in C.
"""
import importlib.util
import os
import sys
import unittest


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = self.bad = 0
        self.subtests = {}

    def _line(self, ok, test, directive="", detail=""):
        self.n += 1
        self.bad += not ok
        for text in detail.splitlines():
            print("# " + text)
        print(f"{'ok' if ok else 'not ok'} {self.n} - {test.id()}{directive}", flush=True)

    def addSuccess(self, test):
        if not self.subtests.pop(test, False):
            self._line(True, test)

    def addFailure(self, test, err):
        self._line(False, test, detail=self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self._line(False, test, detail=self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.subtests[test] = True
            self._line(False, subtest, detail=self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self._line(True, test, f" # SKIP {reason}")

    def addExpectedFailure(self, test, err):
        self._line(True, test)

    def addUnexpectedSuccess(self, test):
        self._line(False, test, detail="was expected to fail")


def main():
    path = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(path))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    result = Tap()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{result.n}")
    return 1 if result.bad else 0


sys.exit(main())
