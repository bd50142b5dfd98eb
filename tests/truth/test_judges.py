"""The judges of the second, third, fifth, sixth and seventh simulator, briefly: that they run as HACKING.md says, and that nrg finds every row of what they draw."""
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
        self.assertGreaterEqual(held, 93, done.stdout)
        self.assertGreaterEqual(steps_held, 87, done.stdout)  # 7 of 8: seed 63001 takes noise for a drift, 5.2 % off at 4.7
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

    def test_fifth_holds_at_1_khz(self):
        """The recorder wakes an idle machine in the baseline, and finds it awake in the run: steps were 0.5 % off at 0.4, and half of them held."""
        done = judge("fifth", "rate1k", "--seeds", "2", "--first", "41002", "--set", "seconds=30")
        self.assertRegex(done.stdout, r"step e0\.[0-4]", done.stdout + done.stderr)
        self.assertNotRegex(done.stdout, "RES|ALL|PART|STEP|EACH|TOTAL")

    def test_fifth_holds_where_only_long_calls_tell_idle_power(self):
        """When in a checkpoint its thread waited is not known. Rows left more than their weights said, and were believed as if they did not."""
        done = judge("fifth", "nobase_wait", "--first", "41001")
        self.assertIn("| step e", done.stdout, done.stderr)
        self.assertNotRegex(done.stdout, "RES|ALL|PART|STEP|EACH|TOTAL")

    def test_fifth_knows_cores_that_are_not_alike(self):
        """E cores take longer and draw less; a program on the other hyperthread slows ours down. Steps were 19 % off, idle power had the difference."""
        done = judge("fifth", "hybrid", "ht", "--set", "seconds=20", "--set", "blocks=3", "--first", "131101", "--seeds", "2")
        self.assertRegex(done.stdout, r"(?m)^hybrid .*\| step e0\.", done.stdout + done.stderr)
        self.assertNotRegex(done.stdout, "RES|ALL|PART|STEP|EACH|TOTAL")

    def test_fifth_calls_no_load_idle_power(self):
        """A desktop in use: idle power was twice that of its baselines, and half of the steps held."""
        done = judge("fifth", "busyhost", "--set", "seconds=25", "--set", "blocks=3", "--first", "131101", "--seeds", "4")
        self.assertNotRegex(done.stdout, "RES|ALL|PART|STEP|EACH|TOTAL")

    def test_fifth_knows_its_words_and_scenarios(self):
        for arguments, why in ((["nonsense"], "no scenario is called nonsense"), (["plain", "--set", "nonsense=1"], "no word is called 'nonsense'"),
                               (["plain", "--off", "nonsense"], "no mechanism is called nonsense")):
            self.assertIn(why, judge("fifth", *arguments).stderr)

    def test_sixth(self):
        """A thread with workers, and one beside a GPU, are read, with every row. One of six modules may well not hold in a single seed (MOD83)."""
        done = judge("sixth", "w_free", "both_nvml", "--set", "run_s=8", "--set", "base=2,2", "--first", "11")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
        self.assertEqual(set(lines), {"w_free", "both_nvml"}, done.stdout)
        for name, line in lines.items():
            self.assertIn("; regress", line, name)
            self.assertNotRegex(line, "FAIL|split/none|RES|ALL|STEP|TOTAL", name)

    def test_sixth_keeps_the_energy_of_layers_that_are_known_together(self):
        """Steps in step with a GPU's updates: layers that can't be told from the time between steps had a third of their energy, at 0.1 %."""
        done = judge("sixth", "nvml_sync", "--first", "6")
        self.assertRegex(done.stdout, r"(?m)^nvml_sync .*\| +100 +0\.0\d+ .*\| +100 .*\|", done.stderr)

    def test_sixth_holds_layers_of_a_gauge_that_is_a_few_ms_old(self):
        """An INA3221 converts every 4 ms, and is read every 10: layers had their neighbours' energy, and 44 % of the resolved ones held."""
        done = judge("sixth", "ina", "--first", "3201", "--seeds", "2")
        self.assertIn("\nina ", done.stdout, done.stderr)
        self.assertNotRegex(done.stdout, "RES|ALL|TOTAL")

    def test_sixth_finds_the_age_that_all_readings_have(self):
        """A clock that explains much is not yet the right one: layers were 1.7 % off at 0.4, and a quarter of them held."""
        done = judge("sixth", "r_rare", "--first", "88001")
        self.assertRegex(done.stdout, r"(?m)^r_rare +r +0\.0", done.stderr)
        self.assertNotRegex(done.stdout, "RES|ALL|STEP|TOTAL")

    def test_sixth_knows_its_words_and_scenarios(self):
        self.assertIn("no scenario is called nonsense", judge("sixth", "nonsense").stderr)
        self.assertIn("no word is called 'nonsense'", judge("sixth", "plain", "--set", "nonsense=1").stderr)

    def test_sixth_knows_what_readings_tell(self):
        """Least squares on the true times, where nothing else goes on."""
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "tests/truth/sixth/known"), "plain", "11"], capture_output=True, text=True)
        self.assertRegex(done.stdout, r"median error of layers 0\.0", done.stderr)

    def test_seventh_holds_layers_whose_workers_end_one_after_the_other(self):
        """PyTorch on processors with a wait for data in each step: hot layers were 3 % too large and cool ones up to 45 % too small, and 60 % held."""
        done = judge("seventh", "o-infer-data", "--seeds", "11-12")
        cells = done.stdout.splitlines()[-1].split(" | ")
        self.assertEqual((cells[0], cells[-1]), ("o-infer-data", "0"), done.stdout + done.stderr)
        self.assertGreaterEqual(float(cells[3]), 90, done.stdout)

    def test_seventh_takes_no_bend_that_can_not_be(self):
        """Four threads that never rest: a bend of more than all power, which the run's ends made up, gave rows two and a half times the total."""
        done = judge("seventh", "3-threads4", "--seeds", "21-21")
        cells = done.stdout.splitlines()[-1].split(" | ")
        self.assertEqual((cells[0], cells[3], cells[-1]), ("3-threads4", "100", "0"), done.stdout + done.stderr)
        self.assertLess(float(cells[1]), 3, done.stdout)

    def test_seventh_knows_its_scenarios(self):
        self.assertIn("no scenario is called nonsense", judge("seventh", "nonsense", "--seeds", "1-1").stderr)

    def test_seventh_leaves_the_energy_of_calls_to_the_layers(self):
        """Microseconds between the layers, which each step has as many of, count steps as well: they are no explanation at a kilowatt."""
        done = judge("seventh", "4-call-10hz", "--seeds", "4-5")
        names, figures = ([cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()[:2])
        row = dict(zip(names, figures))
        self.assertLess(float(row["err res %"]), 5, done.stderr)
        self.assertGreaterEqual(float(row["cover all"]), 90)
        self.assertGreaterEqual(float(row["own"]), 90)

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
