"""The judges of the second, third and fifth simulator, briefly: that they run as HACKING.md says, and that nrg finds every row of what they draw."""
import os
import re
import subprocess
import sys
import unittest

from support import NRG, SOURCE, np  # noqa: F401  first: it skips where there is no numpy

import judge as first_judge
import table
from scenarios import SCENARIOS


def judge(which, *arguments):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "tests/truth", which, "judge"), "--nrg", NRG, "--seeds", "1", *arguments],
                          capture_output=True, text=True)


class Judges(unittest.TestCase):
    def test_third(self):
        """A scenario for each sensor and each way to run a program."""
        names = ("default-net", "stat-sampled-rev1", "nocpu", "phases-flat", "pool-mix", "threads2", "others-base", "two-pkg-migrate-dram", "ina",
                 "inabox", "wall-layers", "gpu-counter", "gpu-25-unsaid")
        done = judge("third", *names, "--set", "run_s=5", "--set", "base_s=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines()}
        self.assertEqual(set(lines), set(names), done.stdout)
        for name, line in lines.items():
            self.assertIn(" miss0 ", line, name)

    def test_third_holds_what_the_recorder_uses(self):
        """Ticks that ask who runs do not see the recorder, whose energy is in the counter's: recorded (own), or not."""
        words = ("--set", "run_s=25", "--set", "base_s=5", "--first", "62021", "--seeds", "4")
        done = judge("third", "stat-sampled-own", "cgticks", *words)
        self.assertEqual(len(done.stdout.splitlines()), 2, done.stderr)
        for line in done.stdout.splitlines():
            self.assertNotRegex(line, "STEP|PART|RES|ALL")

    def test_third_holds_where_power_does_not_add_up(self):
        """Watts that a package draws once, that fall as more CPUs run, and that two threads of a core share."""
        done = judge("third", "turbo2", "uncore2", "smt2", "--set", "run_s=25", "--set", "base_s=5", "--first", "66021", "--seeds", "2")
        self.assertEqual(len(done.stdout.splitlines()), 3, done.stderr)
        for line in done.stdout.splitlines():
            self.assertNotRegex(line, "STEP|PART|RES|ALL")

    def test_third_shows_rows_and_passes_options_on(self):
        done = judge("third", "default-flat", "--set", "run_s=3", "--verbose", "--method", "integrate")
        self.assertIn("{'integrate': 1}", done.stdout, done.stderr)
        self.assertRegex(done.stdout, r"leaf +conv1 +\d+ truth +[0-9.]+ +got")

    def test_third_knows_its_words_and_scenarios(self):
        self.assertIn("no scenario is called nonsense", judge("third", "nonsense").stderr)
        self.assertIn("'nonsense'", judge("third", "default-net", "--set", "nonsense=1").stderr)

    def test_second_knows_idle_power_of_a_program_that_never_rests(self):
        """When in a cell its thread began and ended is not known, and tells nothing of idle power: rows and steps hold."""
        done = judge("second", "plain12", "--seeds", "8", "--first", "63001")
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = re.search(r"plain12 .*\| +([0-9.]+) +([0-9.]+) .*\| +([0-9.]+) +[0-9.]+ +(\d+) \| .*\|", done.stdout)
        error, held, step_error, steps_held = (float(x) for x in figures.groups())
        self.assertGreaterEqual(min(held, steps_held), 95, done.stdout)
        self.assertLess(max(error, step_error), 1, done.stdout)

    def test_third_knows_when_others_ran(self):
        """These two were 1 and 2 % off, and no row of them held."""
        for seed in ("64005", "64012"):
            done = judge("third", "sec-300-1hz-others", "--first", seed)
            self.assertRegex(done.stdout, r"leaf e0\.\d+ w[0-9.]+ h(80|100)/", done.stdout + done.stderr)

    def test_second_knows_when_a_thread_began(self):
        """A quarter of the rows did not hold: those after a first cell that the run's begin cut short told idle power."""
        done = judge("second", "irregular", "--first", "64160", "--seeds", "6")
        self.assertNotRegex(done.stdout, "ROWS|STEP", done.stdout + done.stderr)

    def test_second_finds_the_clock_of_a_counter(self):
        """One row hid it: that of a thread's begin, or one by which others' CPU time, which is rounding elsewhere, was far too late."""
        done = judge("second", "rate10", "unit15", "partial", "late-heavy", "--first", "74101")
        widths = re.findall(r"(?m)^[\w-]+ .*?\|.* ([0-9.]+) \| .*\| .*\|", done.stdout)
        self.assertEqual(len(widths), 4, done.stdout + done.stderr)
        self.assertLess(max(float(width) for width in widths), 15, done.stdout)

    def test_fifth(self):
        """A scenario for each sensor, workers and threads are read; one without anything else going on holds, too."""
        names = ("plain", "short5", "gil", "jetson", "loader", "gpu_counter")
        done = judge("fifth", *names, "--set", "seconds=5", "--off", "ckpt")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines()}
        self.assertEqual(set(lines), set(names), done.stdout)
        for name, line in lines.items():
            self.assertRegex(line, r"\| total e.* miss0 ", name)
        self.assertRegex(lines["plain"], r"leaf e[0-9.]+ w[0-9.]+ h100/100 r100 ")
        self.assertNotRegex(lines["plain"], "RES|ALL|PART|STEP|EACH|TOTAL")

    def test_fifth_knows_its_words_and_scenarios(self):
        for arguments, why in ((["nonsense"], "no scenario is called nonsense"), (["plain", "--set", "nonsense=1"], "no word is called 'nonsense'"),
                               (["plain", "--off", "nonsense"], "no mechanism is called nonsense")):
            self.assertIn(why, judge("fifth", *arguments).stderr)

    def test_second(self):
        done = judge("second", "T5", "nv-mean100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^T5 .*regress")
        self.assertRegex(done.stdout, r"(?m)^nv-mean100 .*regress")
        self.assertNotIn("FAIL", done.stdout)


def figures(**changes):
    part = {"error": 0.01, "half_width": 0.03, "cover": 1.0, "resolved": 1.0, "cover_resolved": 1.0}
    return {"layers": {**part, **changes.get("layers", {})}, "step": {**part, **changes.get("step", {})}, "total": {**part, **changes.get("total", {})}}


class Bars(unittest.TestCase):
    def test_what_is_missed_is_named(self):
        short_of = first_judge.short_of
        self.assertEqual(short_of(figures()), [])
        self.assertEqual(short_of(figures(layers={"cover": 0.84, "cover_resolved": 0.89})), ["RESOLVED", "ALL"])
        self.assertEqual(short_of(figures(layers={"cover_resolved": float("nan")})), [])
        self.assertEqual(short_of(figures(step={"cover": 0.8}, total={"cover": 0.8})), ["STEP", "TOTAL"])
        self.assertEqual(short_of(figures(layers={"half_width": 0.041})), ["WIDE-LAYERS"])
        self.assertEqual(short_of(figures(step={"half_width": 0.041, "cover": 0.98})), [])
        self.assertEqual(short_of(figures(layers={"half_width": 1.5e-4, "error": 0})), [])


class Table(unittest.TestCase):
    def test_figures_are_replaced_and_the_rest_stays(self):
        lines = ["text\n", table.HEAD + " ... |\n", "|---|\n", "| a | 9 % | 0.1.0 |\n", "\n", "more\n"]
        found = table.rewritten(lines, {"a": figures(), "b": figures(layers={"error": 1e-6, "cover_resolved": float("nan")})})
        self.assertEqual(found[:3] + found[5:], lines[:3] + lines[4:])
        self.assertEqual(found[3], "| a | 1 % | 100 % | 100 % | 100 % | 3 % | 1 %, 3 %, 100 % | 100 % | 0.1.0 |\n")
        self.assertEqual(found[4], "| b | < 0.005 % | - | 100 % | 100 % | 3 % | 1 %, 3 %, 100 % | 100 % | - |\n")

    def test_the_document_has_each_scenario_once(self):
        with open(table.DOCUMENT, encoding="utf-8") as f:
            self.assertEqual(table.names(f.readlines()), [scenario.name for scenario in SCENARIOS])


if __name__ == "__main__":
    unittest.main()
