"""Single steps: of a program whose power depends on its input, each has what it drew, not what a step draws in the mean."""
import dataclasses
import os
import sqlite3
import tempfile
import unittest

from support import NRG  # first: it skips where there is no numpy

import numpy as np

import judge
import simulate
from scenarios import Scenario

LONG = {"layers": 8, "shortest_s": 10e-3, "longest_s": 50e-3, "gap_s": 0.5e-3}
INPUTS = {"inputs": (0.8, 1.0, 1.1)}
INTEGRATE = {"arguments": ("--method", "integrate")}
NVML = {"sensor": "nvml-counter", "rate_hz": 50, "update_s": 0.1, "low_w": 50, "high_w": 350, "idle_w": 30}


def drop_processes(path):
    """As other programs' logs are: spans and energy, and nothing of who ran on the CPUs."""
    with sqlite3.connect(path) as db:
        for table, kept in (("chunk", "series"), ("series", "id"), ("channel", "series")):
            db.execute("DELETE FROM %s WHERE %s NOT IN (SELECT id FROM series WHERE kind = 'spans' UNION "
                       "SELECT series FROM channel WHERE quantity IN ('energy', 'power'))" % (table, kept))
        db.execute("DELETE FROM process")
        db.execute("UPDATE span_track SET kind = 'log', pid = 0, tid = 0")


def split_run(path):
    """Two runs, one after the other."""
    with sqlite3.connect(path) as db:
        run, begin_ns, end_ns = db.execute("SELECT id, begin_ns, end_ns FROM run WHERE kind != 'baseline'").fetchone()
        middle_ns = (begin_ns + end_ns) // 2
        db.execute("UPDATE run SET end_ns = ? WHERE id = ?", (middle_ns, run))
        db.execute("INSERT INTO run SELECT ?, kind, ?, ?, exit_code FROM run WHERE id = ?", (run + 100, middle_ns, end_ns, run))


def steps(changes, seed, nrg=NRG, change=None):
    """Truth and row of each step, the sum of these rows and the row of all steps, and the median that is said."""
    scenario = dataclasses.replace(Scenario("steps"), **changes)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.nrg")
        thread = simulate.write(path, scenario, seed).threads[0][0]
        if change:
            change(path)
        whole = judge.attribute(nrg, path, scenario.arguments)
        single = judge.attribute(nrg, path, (*scenario.arguments, "--by", "step"))
    rows = {r["number"]: r for r in single["rows"] if r.get("number") is not None}
    truth = thread.call_j.sum(1)
    of_all = next(r for r in whole["rows"] if r["kind"] == "step")
    median_j = next(u for u in whole["per"] if u["kind"] == "step")["median_j"]
    return truth, [rows[i] for i in range(len(truth))], of_all, median_j


def figures(truth, rows):
    """Median error, median half width, and the part of the steps that intervals hold."""
    said, low, high = (np.array([r[k] for r in rows]) for k in ("energy_j", "low_j", "high_j"))
    return np.median(abs(said / truth - 1)), np.median((high - low) / 2 / truth), np.mean((low <= truth) & (truth <= high))


class Steps(unittest.TestCase):
    def check(self, changes, most_error, most_off=0.03, **more):
        truth, rows, of_all, median_j = steps({"length_s": 30, **changes}, 3, **more)
        error, _, held = figures(truth, rows)
        self.assertLess(error, most_error)
        self.assertGreater(held, 0.95)
        self.assertGreaterEqual(min(r["low_j"] for r in rows), 0)
        self.assertAlmostEqual(sum(r["energy_j"] for r in rows) / of_all["energy_j"], 1, delta=1e-6)
        self.assertAlmostEqual(median_j / np.median(truth), 1, delta=most_off)

    def test_steps_that_hold_readings_have_what_these_measured(self):
        self.check({**LONG, **INPUTS}, 0.015)

    def test_steps_that_hold_some_are_between_them_and_the_model(self):
        self.check(INPUTS, 0.05)

    def test_steps_shorter_than_readings_have_intervals_that_say_so(self):
        self.check({"rate_hz": 10, **INPUTS}, 0.2, most_off=0.2)

    def test_steps_of_equal_power_stay_as_certain_as_the_model(self):
        self.check({}, 0.002)

    def test_calls_count_as_in_rows_of_all_steps(self):
        """Calls that wait: spans that rows of steps hold are calls of their classes, and the sums are the same."""
        self.check({"stalls": 0.3}, 0.03)

    def test_steps_of_a_recording_without_processes(self):
        """Readings that a regression has without idle power must not lose it once more: 3.4 J were 0 to 16 J."""
        self.check({**LONG, "rate_hz": 10}, 0.002, change=drop_processes)
        self.check({**LONG, **INPUTS}, 0.02, change=drop_processes)

    def test_steps_of_two_runs(self):
        """Their readings are taken without idle power, too."""
        self.check({**LONG, "rate_hz": 10}, 0.002, change=split_run)
        self.check({**LONG, **INPUTS}, 0.02, change=split_run)

    def test_integrated_counters_that_stand_still_between_readings(self):
        """Energy was used while NVML's counter stood still, too: most steps had less than nothing, phases 5 % too little."""
        self.check({**NVML, **INTEGRATE, "layers": 3, "shortest_s": 0.2, "longest_s": 0.6, "gap_s": 0.1}, 0.01)
        _, rows, of_all, _ = steps({**NVML, **INTEGRATE, "length_s": 30, "layers": 2, "shortest_s": 5e-3, "longest_s": 20e-3, "gap_s": 20e-3}, 3)
        self.assertGreater(min(r["energy_j"] for r in rows), 0.2 * of_all["energy_j"] / len(rows))

    def test_no_step_has_less_than_nothing(self):
        """Others that are taken off by a rule: what that leaves below 0 is the other steps', and the sum stays."""
        short = {"layers": 2, "shortest_s": 2e-3, "longest_s": 4e-3, "low_w": 2, "high_w": 10, "gap_s": 5e-3}
        truth, rows, of_all, median_j = steps({"length_s": 30, **INTEGRATE, **short, "others": 0.6, "others_w": 40, "others_s": 0.02}, 3)
        self.assertGreaterEqual(min(min(r["energy_j"], r["low_j"]) for r in rows), 0)
        self.assertAlmostEqual(sum(r["energy_j"] for r in rows) / of_all["energy_j"], 1, delta=1e-6)
        self.assertAlmostEqual(median_j / np.median([r["energy_j"] for r in rows]), 1, delta=1e-6)
        self.assertGreater(figures(truth, rows)[2], 0.95)


if __name__ == "__main__":
    unittest.main()
