#!/usr/bin/env python3
"""Runs the unittest cases of one file and prints a TAP line for each: unittest_tap.py FILE.

Meson reads these lines and tests/run_all counts them, so that a Python test weighs as much as one in
C. Whatever else the tests and their children print goes to stderr.
"""
import importlib.util
import os
import sys
import unittest


class Tap(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.n = self.bad = 0
        self.subtests = {}

    def _line(self, ok, name, directive="", detail=""):
        self.n += 1
        self.bad += not ok
        for text in detail.splitlines():
            print("# " + text, file=self.out)
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}{directive}", file=self.out, flush=True)

    def addSuccess(self, test):
        if not self.subtests.pop(test, False):
            self._line(True, test.id())

    def addFailure(self, test, err):
        self._line(False, test.id(), detail=self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self._line(False, test.id(), detail=self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.subtests[test] = True
            self._line(False, subtest.id(), detail=self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self._line(True, test.id(), f" # SKIP {reason}")

    def skip_file(self, name, reason):
        self._line(True, name, f" # SKIP {reason}")

    def addExpectedFailure(self, test, err):
        self._line(True, test.id())

    def addUnexpectedSuccess(self, test):
        self._line(False, test.id(), detail="was expected to fail")


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    path = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(path))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    result = Tap(out)
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as why:  # the whole file, for what is not installed
        result.skip_file(spec.name, why)
    else:
        unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{result.n}\n# {sum(os.times()[:4]):.1f} s of CPU", file=out, flush=True)
    return 1 if result.bad else 0


sys.exit(main())
