"""What follows from a baseline that is believed: others' load spoils one, so this file runs alone."""
import unittest

from retries import in_quiet
from support import *

BURN = (PYTHON, "-c", "import time\nwhile time.process_time() < 0.8: pass")
MACHINE = "domain package-0\n power 10\n per-busy-cpu 20\ndomain dram-0\n power 4\n"


class Baseline(Case):
    def measure(self, *options, command=BURN):
        path = self.scenario(MACHINE)
        return in_quiet(self, lambda: self.run_json("-f", "-o", self.path("b.nrg"), "--sensor", f"simulate:{path}", "--sensor", "machine",
                                                    *options, "--", *command))[0]

    def test_the_program_s_energy_is_above_idle(self):
        r = self.measure("--baseline", "0.5s")
        self.assertIn("baseline", r["program"]["share_method"])
        text = self.nrg("report", self.path("b.nrg")).stdout.decode()
        lines = [line for line in text.splitlines() if line]
        self.assertRegex(lines[2], r"^this program: \S+ m?J of the machine's \S+ J \(others \S+ m?J, idle \S+ m?J")
        self.assertRegex(lines[3], r"^\S+ m?J \.\. \S+ m?J; shared out by CPU time above idle \(baseline\); dram by memory")

    def test_at_both_ends(self):
        r = self.measure("--baseline", "0.3s", "--repeat", "2", command=("sleep", "0.2"))
        runs = query(self.path("b.nrg"), "SELECT kind, begin_ns, end_ns, exit_code FROM run ORDER BY id")
        self.assertEqual([kind for kind, *_ in runs], ["baseline", "run", "run", "baseline"])
        self.assertEqual([run[3] for run in runs], [None, 0, 0, None])
        for before, after in zip(runs, runs[1:]):
            self.assertLessEqual(before[2], after[1])
        self.assertEqual((len(r["runs"]), r["idle_method"]), (2, "baseline"))


if __name__ == "__main__":
    unittest.main()
