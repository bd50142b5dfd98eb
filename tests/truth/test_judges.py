"""The judges of the second and third simulator, briefly: that they run as HACKING.md says, and that nrg finds every row of what they draw."""
import os
import subprocess
import sys
import unittest

from support import NRG, SOURCE, np  # noqa: F401  first: it skips where there is no numpy


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

    def test_third_shows_rows_and_passes_options_on(self):
        done = judge("third", "default-flat", "--set", "run_s=3", "--verbose", "--method", "integrate")
        self.assertIn("{'integrate': 1}", done.stdout, done.stderr)
        self.assertRegex(done.stdout, r"leaf +conv1 +\d+ truth +[0-9.]+ +got")

    def test_third_knows_its_words_and_scenarios(self):
        self.assertIn("no scenario is called nonsense", judge("third", "nonsense").stderr)
        self.assertIn("'nonsense'", judge("third", "default-net", "--set", "nonsense=1").stderr)

    def test_second(self):
        done = judge("second", "T5", "nv-mean100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^T5 .*regress")
        self.assertRegex(done.stdout, r"(?m)^nv-mean100 .*regress")
        self.assertNotIn("FAIL", done.stdout)


if __name__ == "__main__":
    unittest.main()
