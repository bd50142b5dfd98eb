"""Counters that stand still while their domain draws power: what was used then is in every interval, the time is named, and a
counter that is dead is opened again. Truths are in closed form; tests/unit/test_still.c has more machines."""
import json
import os
import threading
import unittest

from support import *


class Simulated(Case):
    """Of two packages and memory, one package stops counting: a socket that went off-line."""
    SCENARIO = ("domain package-0\n power 30\n limit 1000\n fault %s\n"
                "domain package-1\n power 20\n limit 1000\ndomain dram-1\n power 4\n")

    def run_it(self, fault, seconds):
        scenario = self.scenario(self.SCENARIO % fault)
        out = self.path("s.nrg")
        r = self.run_json("--sensor", f"simulate:{scenario}", "-f", "-o", out, "--", "sleep", str(seconds))[0]
        return r, out

    def holds(self, low_j, high_j, power_w, r, what):
        truth_j = power_w * r["duration_s"]
        self.assertLessEqual(low_j, truth_j, what)
        self.assertGreaterEqual(high_j, truth_j, what)

    def test_domain_total_program_and_the_report(self):
        r, out = self.run_it("0.5s freeze 1s", 2)
        d = domains(r)
        self.holds(d["package-0"]["low_j"], d["package-0"]["high_j"], 30, r, d["package-0"])
        self.holds(r["total"]["low_j"], r["total"]["high_j"], 54, r, r["total"])
        self.assertLess(d["package-0"]["covered"], 0.6)
        self.assertEqual(d["package-1"]["covered"], 1)
        self.assertLess(d["package-1"]["uncertainty_j"], 0.1)
        self.assertRegex(self.missing(r, "package-0"), r"stood still from \S+ to \S+ s of the run")
        again = json.loads(self.nrg("report", "--json", out).stdout)
        again = again[0] if isinstance(again, list) else again
        found = again.get("executions", [again])[0]
        self.assertEqual(domains(found)["package-0"]["high_j"], d["package-0"]["high_j"])

    def test_dead_from_the_begin_to_the_end(self):
        r = self.run_it("0s freeze", 1)[0]
        self.assertNotIn("package-0", domains(r))
        self.assertIn("stood still", self.missing(r, "package-0"))
        # package-1 drew 20 W: as much is taken to be possible of its like.
        self.assertGreaterEqual(r["total"]["high_j"], 44 * r["duration_s"])
        self.assertAlmostEqual(r["total"]["energy_j"] / (24 * r["duration_s"]), 1, delta=0.02)

    def test_one_that_was_stuck_and_caught_up_loses_nothing(self):
        r = self.run_it("0.5s stuck 1s", 2)[0]
        d = domains(r)["package-0"]
        self.assertEqual(d["covered"], 1)
        self.assertAlmostEqual(d["energy_j"] / (30 * r["duration_s"]), 1, delta=0.02)
        self.assertLess(d["uncertainty_j"], 0.2)


class OpenedAgain(Case):
    """A file that another one took the place of stands still for whoever has it open, like a perf event whose CPU was off-line."""
    ZONE = "root/sys/class/powercap/intel-rapl:0/"
    POWER_W = 30

    def setUp(self):
        super().setUp()
        self.write(self.ZONE + "name", "package-0\n")
        self.write(self.ZONE + "max_energy_range_uj", "262143328850\n")
        self.begin_s = time.monotonic()
        self.count()
        self.over = threading.Event()
        self.counting = threading.Thread(target=self.keep_counting)
        self.counting.start()

    def tearDown(self):
        self.over.set()
        self.counting.join()
        super().tearDown()

    def count(self):
        """Whole, at the name's present file: its length is always the same."""
        uj = int((time.monotonic() - self.begin_s) * self.POWER_W * 1e6)
        path = self.path(self.ZONE + "energy_uj")
        if not os.path.exists(path):
            self.write(self.ZONE + "energy_uj", "0" * 15 + "\n")
        with open(path, "r+b", buffering=0) as f:
            f.write(b"%015d\n" % uj)

    def keep_counting(self):
        while not self.over.wait(0.005):
            self.count()

    def test_a_dead_counter_is_opened_again(self):
        out, result = self.path("a.nrg"), self.path("a.json")
        p = self.start("run", "-q", f"--json={result}", "--root", self.path("root"), "-o", out, "--", "sleep", "60")
        sleeper = eventually(lambda: [pid for pid in children_of(p.pid) if name_of(pid) == "sleep"], "the child")[0]
        time.sleep(0.5)
        energy = self.path(self.ZONE + "energy_uj")
        os.rename(energy, energy + ".old")
        eventually(lambda: query(out, "SELECT count(*) FROM event WHERE kind='back'")[0][0], "an open counter")
        time.sleep(0.5)
        os.kill(sleeper, signal.SIGTERM)
        self.finish(p)
        with open(result) as f:
            r = json.load(f)
        d = domains(r)["package-0"]
        truth_j = self.POWER_W * r["duration_s"]
        # The file is the package's own register: it went on, and the first value of the new one has what was used meanwhile.
        self.assertLessEqual(d["low_j"], truth_j * 1.01)
        self.assertGreaterEqual(d["high_j"], truth_j * 0.99)
        self.assertIn("opened again", self.missing(r, "powercap") + self.missing(r, "intel-rapl:0"))


if __name__ == "__main__":
    unittest.main()
