"""Laws of the shares: parts add up to the whole, never more; twice the CPU time is twice the
energy; and the same numbers come out of the recording again."""
import csv
import io
import json
import shlex
import unittest

from retries import steadily
from support import *

SCENARIO = "domain package-0\n power 10\n per-busy-cpu 20\ndomain dram-0\n power 4\n"
# One process that starts two: the second is busy three times as long. They linger before they
# exit, so that a machine too slow to be told of the exit in time has still read all they used.
PAIR = """
import os, time
for part_s in (0.4, 1.2):
    if os.fork() == 0:
        end = time.process_time() + part_s
        while time.process_time() < end: pass
        time.sleep(0.6)
        os._exit(0)
os.wait(); os.wait()
"""
BURN = (PYTHON, "-c", "import time\nwhile time.process_time() < 1: pass")


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
            def check(r, options=options):
                self.assert_adds_up(r)
                self.assertEqual(r["split"], "busy-time" if "busy-time" in options else "active")
                if "--baseline" in options and "busy-time" not in options:
                    self.assertEqual(r.get("idle_method"), "baseline")
                # The longer one runs alone part of the time, where the idle part of the power is
                # spread over fewer: per CPU second the two differ a little, not by much.
                (long_s, _), (short_s, _) = self.shares(r)
                self.assertAlmostEqual(long_s / short_s, 3, delta=0.3)

            # Others' load makes a baseline useless, and readings later than processes linger.
            steadily(check, lambda n, options=options: self.run_pair(*options), 3)

    def test_energy_goes_with_cpu_time(self):
        # Power that is only that of busy CPUs: 1:3 in time is 1:3 in energy.
        path = self.scenario("domain package-0\n per-busy-cpu 20\n")
        r, _ = self.run_json("--sensor", f"simulate:{path}", "--sensor", "machine", "-o",
                             self.path("e.nrg"), "--split", "busy-time", "--", PYTHON, "-c", PAIR)
        (long_s, long_j), (short_s, short_j) = self.shares(r)
        self.assertAlmostEqual((long_j / short_j) / (long_s / short_s), 1, delta=0.1)
        self.assertGreater(long_j, 0)

    def test_report_gives_the_same_numbers(self):
        def check(r):
            again = json.loads(self.nrg("report", "--json", self.path("l.nrg")).stdout)
            self.assertEqual(r, again)
            self.assertIn("idle_j", r)
            other = json.loads(self.nrg("report", "--json", "--split", "busy-time",
                                        self.path("l.nrg")).stdout)
            self.assert_adds_up(other)
            self.assertNotIn("idle_j", other)
            self.assertGreater(sum(p["energy_j"]["cpu"] for p in other["processes"]),
                               sum(p["energy_j"]["cpu"] for p in r["processes"]))

        # Idle power of a baseline in which others were busy is not believed, and then there is none.
        steadily(check, lambda n: self.run_pair("--baseline", "0.3s"), 3)

    def test_without_busy_time_nothing_is_guessed(self):
        path = self.scenario("domain package-0\n power 10\n")
        self.write("root/proc/version", "Linux\n")
        r, _ = self.run_json("--sensor", f"simulate:{path}", "--root", self.path("root"), "-o",
                             self.path("n.nrg"), "--", "sleep", "0.6")
        self.assertNotIn("other_processes_j", r)
        self.assertNotIn("cpu", r["processes"][0]["energy_j"])
        self.assertTrue(self.missing(r, "energy per process"))

    def test_a_named_sensor_is_shared_out_by_the_machines_load(self):
        path = self.scenario(SCENARIO)
        r, _ = self.run_json("--sensor", f"simulate:{path}", "-o", self.path("m.nrg"), "--",
                             *BURN)
        self.assertIn("cpu", r["processes"][0]["energy_j"])
        self.assertIn("other_processes_j", r)

    def test_a_meter_of_the_machine_beats_its_gpus_alone(self):
        for name, file, power_uw in (("hwmon0", "power1_average", 300000000),
                                     ("hwmon1", "power1_input", 40000000)):
            self.write(f"root/sys/class/hwmon/{name}/{file}", f"{power_uw}\n")
        self.write("root/sys/class/hwmon/hwmon0/name", "power_meter\n")
        self.write("root/sys/class/hwmon/hwmon1/name", "amdgpu\n")
        r, _ = self.run_json("--root", self.path("root"), "-o", self.path("g.nrg"), "--",
                             "sleep", "0.6")
        self.assertEqual(r["total"]["domains"], ["machine"])
        self.assertEqual(set(domains(r)), {"machine", "gpu-0"})
        self.assertAlmostEqual(domains(r)["machine"]["mean_w"], 300, delta=30)

    @unittest.skipUnless(can_unshare("-pf", "--mount-proc"), "needs a pid namespace")
    def test_what_a_poll_finds_is_not_squeezed_into_an_instant(self):
        path = self.scenario("domain package-0\n power 100\n")
        script = (f"(sleep 0.3; {' '.join(map(shlex.quote, BURN))}; true) & {NRG} run -q --system "
                  f"--for 0.8s --sensor simulate:{path} -o {self.path('s.nrg')}; kill %1; wait")
        subprocess.run(["unshare", "-pf", "--mount-proc", "bash", "-c", script], check=False,
                       timeout=LIMIT_S)
        last = {}
        for row in csv.DictReader(io.StringIO(self.nrg("export", "--processes", self.path("s.nrg"))
                                              .stdout.decode())):
            if not row["cpu_s"]:
                continue
            t_s, cpu_s = float(row["time_s"]), float(row["cpu_s"])
            before_s, cpu_before_s = last.get(row["pid"], (t_s, cpu_s))
            self.assertLess(cpu_s - cpu_before_s, 2 * (t_s - before_s) + 0.02, row)
            last[row["pid"]] = t_s, cpu_s


if __name__ == "__main__":
    unittest.main()
