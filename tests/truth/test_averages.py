"""Gauges that average, of logs without processes: what was drawn before the first span, between spans and at unknown ages must not go to layers."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import NRG, SOURCE, np  # first: it skips where there is no numpy

import judge

SIMULATE = os.path.join(SOURCE, "tests/truth/seventh/simulate")


def attribute(name, seed):
    """Errors of layers, whether their intervals hold, whether the total's does, and what is said of the domain."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.nrg")
        truth = json.loads(subprocess.run([sys.executable, SIMULATE, name, str(seed), path], capture_output=True, text=True, check=True).stdout)
        result = judge.attribute(NRG, path, ())
    true_j = {row["path"][-1][1]: row["energy_j"] for row in truth["rows"]}
    layers = [row for row in result["rows"] if row["kind"] == "layer"]
    off = [abs(row["energy_j"] / true_j[row["name"]] - 1) for row in layers]
    held = [row["low_j"] <= true_j[row["name"]] <= row["high_j"] for row in layers]
    return np.median(off), np.mean(held), result["total_low_j"] <= truth["total_j"] <= result["total_high_j"], result["domains"][0]


class Averages(unittest.TestCase):
    def check(self, name, seed, most, lag_s):
        with self.subTest((name, seed)):
            off, held, total, domain = attribute(name, seed)
            self.assertEqual(domain["method"], "regress")
            self.assertLess(off, most)
            self.assertGreaterEqual(held, 0.8)
            self.assertTrue(total)
            self.assertAlmostEqual(domain["lag_s"] / lag_s, 1, delta=0.2)

    def test_what_was_drawn_before_the_first_span(self):
        """0.3 s of imports, of a minute: 33 % off before they were left out."""
        self.check("10-jetson-baseline", 6, 0.06, 0.255)
        self.check("10-jetson-baseline", 2, 0.08, 0.255)

    def test_time_between_spans_without_a_baseline(self):
        """Readings of cells without spans counted as none, so that no lag was found, nor any layer."""
        self.check("10-jetson-log-30s", 3, 0.08, 0.405)
        self.check("10-jetson-log-30s", 4, 0.08, 0.405)

    def test_ages_that_differ(self):
        """Conversions every 10 ms, read every 20: one age for all is close, at another time constant, and 20 % off."""
        self.check("10-ina-short-lag", 2, 0.03, 0.055)
        self.check("10-ina-short-lag", 3, 0.03, 0.055)

    def test_a_lag_that_leaves_less_than_a_step(self):
        """Steps of 40 mW, of which readings are off by 12 in the mean: 25 left by no lag at all are no rounding."""
        self.check("10-jetson-baseline", 35, 0.1, 0.255)


if __name__ == "__main__":
    unittest.main()
