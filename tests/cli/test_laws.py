"""Laws of the shares: parts add up to the whole, never more; twice the CPU time is twice the
energy; and the same numbers come out of the recording again."""
import json
import unittest

from support import *

SCENARIO = "domain package-0\n power 10\n per-busy-cpu 20\ndomain dram-0\n power 4\n"
# One process that starts two: the second is busy three times as long.
PAIR = """
import os, time
for part_s in (0.4, 1.2):
    if os.fork() == 0:
        end = time.process_time() + part_s
        while time.process_time() < end: pass
        os._exit(0)
os.wait(); os.wait()
"""


class Laws(Case):
    def run_pair(self, *options):
        path = self.scenario(SCENARIO)
        return self.run_json("--sensor", f"simulate:{path}", "--sensor", "machine", "-f", "-o",
                             self.path("l.nrg"), *options, "--", PYTHON, "-c", PAIR)[0]

    def assert_adds_up(self, r):
        cpu = sum(p["energy_j"].get("cpu", 0) for p in r["processes"])
        whole = r["cpu_domain_j"]
        self.assertAlmostEqual((cpu + r["other_processes_j"] + r.get("idle_j", 0)) / whole, 1,
                               places=6)
        self.assertLessEqual(cpu, whole * (1 + 1e-9))
        self.assertAlmostEqual(whole / domains(r)["package-0"]["energy_j"], 1, delta=1e-6)
        self.assertGreaterEqual(r["other_processes_j"], 0)
        dram = sum(p["energy_j"].get("dram", 0) for p in r["processes"])
        self.assertLessEqual(dram, domains(r)["dram-0"]["energy_j"] * (1 + 1e-9))
        total = sum(domains(r)[n]["energy_j"] for n in r["total"]["domains"])
        self.assertAlmostEqual(r["total"]["energy_j"], total, places=6)

    def shares(self, r):
        return sorted(((p["cpu_time_s"], p["energy_j"]["cpu"]) for p in r["processes"]),
                      reverse=True)[:2]

    def test_parts_add_up_to_the_whole(self):
        for options in ((), ("--baseline", "0.5s"), ("--split", "busy-time"),
                        ("--baseline", "0.5s", "--split", "busy-time")):
            r = self.run_pair(*options)
            self.assert_adds_up(r)
            self.assertEqual(r["split"], "busy-time" if "busy-time" in options else "active")
            if "--baseline" in options and "busy-time" not in options:
                self.assertEqual(r["idle_method"], "baseline")
            # The longer one runs alone part of the time, where the idle part of the power is
            # spread over fewer: per CPU second the two differ a little, not by much.
            (long_s, long_j), (short_s, short_j) = self.shares(r)
            self.assertAlmostEqual(long_s / short_s, 3, delta=0.3)

    def test_energy_goes_with_cpu_time(self):
        # Power that is only that of busy CPUs: 1:3 in time is 1:3 in energy.
        path = self.scenario("domain package-0\n per-busy-cpu 20\n")
        r, _ = self.run_json("--sensor", f"simulate:{path}", "--sensor", "machine", "-o",
                             self.path("e.nrg"), "--split", "busy-time", "--", PYTHON, "-c", PAIR)
        (long_s, long_j), (short_s, short_j) = self.shares(r)
        self.assertAlmostEqual((long_j / short_j) / (long_s / short_s), 1, delta=0.1)
        self.assertGreater(long_j, 0)

    def test_report_gives_the_same_numbers(self):
        r = self.run_pair("--baseline", "0.3s")
        again = json.loads(self.nrg("report", "--json", self.path("l.nrg")).stdout)
        self.assertEqual(r, again)
        other = json.loads(self.nrg("report", "--json", "--split", "busy-time",
                                    self.path("l.nrg")).stdout)
        self.assert_adds_up(other)
        self.assertNotIn("idle_j", other)
        self.assertGreater(sum(p["energy_j"]["cpu"] for p in other["processes"]),
                           sum(p["energy_j"]["cpu"] for p in r["processes"]))

    def test_without_busy_time_nothing_is_guessed(self):
        path = self.scenario(SCENARIO)
        r, _ = self.run_json("--sensor", f"simulate:{path}", "-o", self.path("n.nrg"), "--",
                             "sleep", "0.6")
        self.assertNotIn("other_processes_j", r)
        self.assertNotIn("cpu", r["processes"][0]["energy_j"])
        self.assertTrue(self.missing(r, "energy per process"))


if __name__ == "__main__":
    unittest.main()
