"""Joules per layer through files: a power log and layer times of the simulated machine, whose truth is known.

tests/simulator is a program of its own; the library's bars are in tests/unit/test_regress_bars.c. Here the
whole way of a user is gone: files, import, the choice of a method, idle power, rows and their intervals.
"""
import json
import statistics
import unittest

from support import *

SIMULATOR = os.path.join(TOOLS, "layer-simulator")


class Files(Case):
    def simulate(self, **options):
        subprocess.run([SIMULATOR, self.dir, *(f"{name}={value}" for name, value in options.items())], check=True,
                       timeout=LIMIT_S)
        with open(self.path("truth.json")) as f:
            return json.load(f)

    def attribute(self, log, *options):
        done = self.nrg("attribute", "-q", "--json", "--by", "name", *options, "--power-log", self.path(log),
                        "--layers", self.path("layers.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def compare(self, found, truth, key):
        """Relative errors of layers with 1 % of the energy and more, and whether intervals hold the truth."""
        self.assertAlmostEqual(found["total_j"] / truth["total_j"], 1, delta=0.005)
        rows = {row["name"]: row for row in found["rows"]}
        self.assertEqual(set(rows), {layer["name"] for layer in truth["layers"]})
        whole = sum(row["energy_self_j"] for row in rows.values()) + found["unattributed_j"] + found.get("idle_j", 0)
        self.assertAlmostEqual(whole, found["total_j"], delta=1e-6 * found["total_j"])
        errors, inside = [], []
        for layer in truth["layers"]:
            row = rows[layer["name"]]
            if layer[key] > 0.01 * truth["total_j"]:
                errors.append(abs(row["energy_j"] / layer[key] - 1))
            inside.append(row["low_j"] <= layer[key] <= row["high_j"])
        return errors, inside

    def check(self, idle, key, **options):
        errors, inside = [], []
        for seed in (1, 2, 3):
            truth = self.simulate(seed=seed, layers=6, steps=2500, sensor="counter", **options)
            found = self.attribute("power.csv", "--idle", idle)
            domain, = found["domains"]
            self.assertEqual((domain["method"], domain["idle_source"]), ("regress", "fitted"), domain)
            self.assertAlmostEqual(domain["idle_w"] / truth["idle_w"], 1, delta=0.01)
            more_errors, more_inside = self.compare(found, truth, key)
            errors += more_errors
            inside += more_inside
        self.assertLess(statistics.median(errors), 0.01, errors)
        # 95 % on average; one seed of few layers may have some less.
        self.assertGreaterEqual(sum(inside), 0.8 * len(inside), inside)

    def test_idle_apart(self):
        self.check("apart", "energy_j", period_s=0.001)
        self.check("apart", "energy_j", period_s=0.02)

    def test_idle_shared(self):
        """Power that is steady over a tenth of a second is not the same for layers of a thousandth."""
        self.check("share", "energy_with_idle_j", period_s=0.001)
        self.check("share", "energy_with_idle_j", period_s=0.02)

    def test_power_log_of_a_jetson(self):
        truth = self.simulate(seed=4, layers=4, steps=2500, sensor="mean", period_s=0.02, quantum=0.04)
        found = self.attribute("power.log", "--lag", "none", "--idle", "apart")
        self.assertEqual(found["domains"][0]["method"], "regress", found["domains"])
        errors, _ = self.compare(found, truth, "energy_j")
        self.assertLess(statistics.median(errors), 0.05, errors)


if __name__ == "__main__":
    unittest.main()
