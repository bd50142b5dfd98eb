"""Single steps: of a program whose power depends on its input, each has what it drew, not what a step draws in the mean."""
import dataclasses
import os
import tempfile
import unittest

from support import NRG  # first: it skips where there is no numpy

import numpy as np

import judge
import simulate
from scenarios import Scenario

LONG = {"layers": 8, "shortest_s": 10e-3, "longest_s": 50e-3, "gap_s": 0.5e-3}
INPUTS = {"inputs": (0.8, 1.0, 1.1)}


def steps(changes, seed, nrg=NRG):
    """Truth and row of each step, the sum of these rows and the row of all steps, and the median that is said."""
    scenario = dataclasses.replace(Scenario("steps"), **changes)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.nrg")
        thread = simulate.write(path, scenario, seed).threads[0][0]
        single, whole = judge.attribute(nrg, path, ("--by", "step")), judge.attribute(nrg, path, ())
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
    def check(self, changes, most_error, most_off=0.03):
        truth, rows, of_all, median_j = steps({"length_s": 30, **changes}, 3)
        error, _, held = figures(truth, rows)
        self.assertLess(error, most_error)
        self.assertGreater(held, 0.95)
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


if __name__ == "__main__":
    unittest.main()
