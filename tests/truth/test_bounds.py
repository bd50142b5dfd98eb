"""No row, no single step and nothing that is divided by a count uses more than the machine did, and no interval reaches beyond
the total's or below 0: of the whole run and of a part of it."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import NRG, SOURCE, np  # noqa: F401  first: it skips where there is no numpy

SIMULATE = os.path.join(SOURCE, "tests/truth/sixth/simulate")
# Rows that can't be told apart, few readings, waits without a baseline, an estimate, lag. In the first, rows reached beyond the total.
SCENARIOS = ("part_phase", "part_nw_phase", "c_stall_nobase", "est_oth", "ina30_10", "mid10", "ticks10")
SEED = "5"


def attribution(path, by, *options):
    done = subprocess.run([NRG, "attribute", "--json", "--by", by, *options, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Bounds(unittest.TestCase):
    def assert_bounded(self, doc):
        within = 1 + 1e-9
        self.assertGreater(len(doc["rows"]), 0)
        for row in doc["rows"] + doc.get("per", []):
            if "energy_j" not in row:
                continue
            self.assertLessEqual(row["energy_j"], doc["total_j"] * within, row)
            self.assertGreaterEqual(row["energy_j"], 0, row)
            if "low_j" in row:
                self.assertLessEqual(row["high_j"], doc["total_high_j"] * within, row)
                self.assertGreaterEqual(row["low_j"], 0, row)
                self.assertLessEqual(row["low_j"], row["energy_j"] * within, row)
                self.assertLessEqual(row["energy_j"], row["high_j"] * within, row)

    def test_rows_and_steps(self):
        for name in SCENARIOS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "run.nrg")
                subprocess.run([sys.executable, SIMULATE, name, SEED, path, "--set", "run_s=8"], check=True, capture_output=True)
                for by in ("path", "step", "name"):
                    self.assert_bounded(attribution(path, by))
                for part in (("0", "4"), ("3.2", "4"), ("3.6", "3.68")):
                    self.assert_bounded(attribution(path, "path", "--from", part[0], "--to", part[1]))


if __name__ == "__main__":
    unittest.main()
