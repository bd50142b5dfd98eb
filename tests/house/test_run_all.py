"""tests/run_all: what it makes of meson's log. A test that did not run must not look like one that passed."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile

import house


class Counting(house.Case):
    def setUp(self):
        super().setUp()
        loader = importlib.machinery.SourceFileLoader("run_all", house.path("tests/run_all"))
        self.run_all = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_all", loader))
        loader.exec_module(self.run_all)

    def count(self, stdout, result, code=0, stderr=""):
        """(passed, failed, skipped, retried) of one test program, and what is printed of it."""
        counter, out = self.run_all.Counter(), io.StringIO()
        with contextlib.redirect_stdout(out):
            self.run_all.count_test(counter, "plain", {"name": "nrg:unit / x", "stdout": stdout, "stderr": stderr,
                                                       "result": result, "returncode": code})
        return (counter.passed, counter.failed, counter.skipped, counter.retried), out.getvalue()

    def test_single_tests_are_counted(self):
        numbers, said = self.count("1..3\nok 1 - a\nok 2 - b # SKIP no root\n# why\nnot ok 3 - c\n", "ERROR", 1)
        self.assertEqual(numbers, (1, 1, 1, 0))
        self.assertIn("skipped: x (plain): b: no root\n", said)
        self.assertIn("FAILED: x (plain): c\n", said)
        self.assertIn("    # why\n", said)

    def test_all_skipped(self):
        self.assertEqual(self.count("ok 1 - a # SKIP no root\n1..1\n", "SKIP")[0], (0, 0, 1, 0))

    def test_a_file_that_skips_itself(self):
        """For want of numpy or PyTorch: was a traceback and a failure."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test_without.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write("import unittest\nraise unittest.SkipTest('numpy is not there')\n")
            done = house.run(sys.executable, house.path("tests/support/unittest_tap.py"), path)
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers, said = self.count(done.stdout, "SKIP")
        self.assertEqual(numbers, (0, 0, 1, 0))
        self.assertIn("skipped: x (plain): test_without: numpy is not there", said)

    def test_a_bad_end_is_a_failure(self):
        numbers, said = self.count("1..2\nok 1 - a\n", "ERROR", -11, "Segmentation fault\n")
        self.assertEqual(numbers, (1, 1, 0, 0))
        self.assertIn("Segmentation fault", said)
        self.assertEqual(self.count("1..2\nok 1 - a\n", "TIMEOUT", -15)[0], (1, 1, 0, 0))

    def test_no_test_at_all_is_a_failure(self):
        self.assertEqual(self.count("", "SKIP")[0], (0, 1, 0, 0))  # what meson calls it

    def test_programs_without_tap(self):
        self.assertEqual(self.count("", "OK")[0], (1, 0, 0, 0))
        numbers, said = self.count("no data here\n", "SKIP", 77)
        self.assertEqual(numbers, (0, 0, 1, 0))
        self.assertIn("skipped: x (plain): no data here", said)

    def test_repeated_measurements_are_said(self):
        numbers, said = self.count("ok 1 - a\n1..1\n", "OK", 0, "# retried: off by 2 %\n")
        self.assertEqual(numbers, (1, 0, 0, 1))
        self.assertIn("retried: x (plain): off by 2 %", said)

    def second_chance(self, again, *tests):
        """Names and results that count in the end, and how many were said to be repeated."""
        counter, out = self.run_all.Counter(), io.StringIO()
        with contextlib.redirect_stdout(out):
            kept = self.run_all.second_chance(counter, "asan", list(tests), again)
        return [(test["name"], test["result"]) for test in kept], counter.retried, out.getvalue()

    def program(self, name="cli/x", stdout="not ok 2 - t.a\n", result="FAIL", code=1, stderr=""):
        return {"name": "nrg:cli / " + name, "stdout": stdout, "stderr": stderr, "result": result, "returncode": code}

    def test_what_failed_beside_others_is_run_alone(self):
        asked = []

        def again(names):
            asked.extend(names)
            return [self.program("cli/x", "ok 1 - t.a\n", "OK", 0), self.program("cli/y")]
        fine = self.program("cli/z", "ok 1 - t.a\n", "OK", 0)
        kept, retried, said = self.second_chance(again, self.program("cli/x"), fine, self.program("cli/y"))
        self.assertEqual(asked, ["cli/x", "cli/y"])
        self.assertEqual([result for _, result in kept], ["OK", "OK", "FAIL"])
        self.assertEqual(retried, 2)
        self.assertIn("retried: cli/x (asan): failed beside others, so it was run again alone: t.a", said)

    def test_no_second_chance_for_faults_that_no_load_makes(self):
        def again(names):
            self.fail(names)
        for test in (self.program(stderr="ERROR: AddressSanitizer: heap-use-after-free"),
                     self.program(stdout="# x.c:3: runtime error: shift\nnot ok 1 - t.a\n"),
                     self.program(result="TIMEOUT", code=-15), self.program(code=-11),
                     self.program(stdout="", result="ERROR"), self.program("unit/x"), self.program("truth/x")):
            kept, retried, _ = self.second_chance(again, test)
            self.assertEqual((kept, retried), ([(test["name"], test["result"])], 0))
        many = [self.program(f"cli/{n}") for n in range(self.run_all.SECOND_CHANCES + 1)]
        self.assertEqual(self.second_chance(again, *many)[1], 0)


if __name__ == "__main__":
    house.unittest.main()
