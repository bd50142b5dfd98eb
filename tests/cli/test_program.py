"""The program's own energy: the headline, its interval, that everything adds up to the machine's, what is said
when it can't be known, and the number for scripts."""
import json
import os
import unittest

from retries import steadily
from support import *

BURN = (PYTHON, "-c", "import time\nwhile time.process_time() < 0.8: pass\nprint(time.process_time())")
WATTS = 20  # per busy CPU: joules per CPU second above idle, by construction
MACHINE = f"domain package-0\n power 10\n per-busy-cpu {WATTS}\ndomain dram-0\n power 4\n"


class Program(Case):
    def measure(self, scenario, *options, command=BURN):
        path = self.scenario(scenario)
        return self.run_json("-f", "-o", self.path("p.nrg"), "--sensor", f"simulate:{path}", "--sensor", "machine",
                             *options, "--", *command)

    def assert_adds_up(self, r):
        whole = r["total"]["energy_j"]
        parts = [r[key] for key in ("program_j", "other_processes_j", "unattributed_j")] + [r.get("idle_j", 0)]
        self.assertAlmostEqual(sum(parts) / whole, 1, places=10)
        self.assertEqual(r["program_j"], r["program"]["energy_j"])
        self.assertLessEqual(r["program"]["low_j"], r["program_j"])
        self.assertLessEqual(r["program_j"], r["program"]["high_j"])
        self.assertLessEqual(r["program"]["high_j"], r["total"]["high_j"] * (1 + 1e-9))

    def holds(self, r, true_j):
        self.assertLessEqual(r["program"]["low_j"], true_j)
        self.assertLessEqual(true_j, r["program"]["high_j"])

    def test_it_adds_up_and_is_the_sum_of_its_processes(self):
        for options in ((), ("--baseline", "0.4s"), ("--split", "busy-time")):
            r, _ = self.measure(MACHINE, *options)
            self.assert_adds_up(r)
            mine = sum(sum(p["energy_j"].values()) for p in r["processes"])
            self.assertAlmostEqual(r["program_j"] / mine, 1, places=9)
            self.assertIn("CPU time", r["program"]["share_method"])
            self.assertIn("dram", r["program"]["share_method"])

    def test_unknown_idle_power_is_in_the_interval(self):
        r, done = self.measure(f"domain package-0\n power 10\n per-busy-cpu {WATTS}\n")
        self.assertNotEqual(r.get("idle_method"), "baseline")
        self.holds(r, WATTS * float(done.stdout))

    def test_a_source_s_error_is_in_the_interval(self):
        r, _ = self.run_json("-f", "-o", self.path("p.nrg"), "--sensor", "estimate", "--cpu-watts", "10:30", "--",
                             *BURN)
        p = r["program"]
        self.assertAlmostEqual(p["high_j"] / p["energy_j"], r["total"]["high_j"] / r["total"]["energy_j"], places=6)
        self.assertGreater(p["high_j"], 1.05 * p["energy_j"])

    def test_a_corrected_lag_belongs_to_somebody(self):
        r, _ = self.measure("domain package-0\n power 10\n per-busy-cpu 20\n kind gauge\n lag 400ms\n")
        self.assert_adds_up(r)
        self.assertAlmostEqual(r["cpu_domain_j"] / r["total"]["energy_j"], 1, places=9)
        self.assertEqual(r["unattributed_j"], 0)

    def test_repeated_runs_are_the_program_s(self):
        r, _ = self.measure(MACHINE, "--repeat", "3", command=(PYTHON, "-c", "sum(range(3000000))"))
        for run in r["runs"]:
            self.assert_adds_up(run)
        mean = sum(run["program_j"] for run in r["runs"]) / 3
        self.assertAlmostEqual(r["repeat"]["energy"]["mean_j"] / mean, 1, places=9)
        machine = sum(run["total"]["energy_j"] for run in r["runs"]) / 3
        self.assertAlmostEqual(r["repeat"]["machine_energy"]["mean_j"] / machine, 1, places=9)
        text = self.nrg("report", self.path("p.nrg")).stdout.decode()
        self.assertRegex(text, r"3 runs   this program \S+ m?J mean")
        printed = float(self.nrg("report", "--print", "energy", self.path("p.nrg")).stdout)
        self.assertAlmostEqual(printed, mean, delta=1e-6)

    def test_a_domain_that_nobody_can_share_out_may_be_all_its(self):
        r, _ = self.measure(MACHINE + "domain accelerator-0\n power 30\n")
        self.assert_adds_up(r)
        other = domains(r)["accelerator-0"]["energy_j"]
        self.assertGreaterEqual(r["unattributed_j"], other)
        self.assertGreaterEqual(r["program"]["high_j"], r["program_j"] + other)
        self.assertIn("not shared out: accelerator-0", r["program"]["share_method"])

    def test_not_known_is_null_with_a_reason(self):
        path = self.scenario("domain package-0\n power 10\n")
        self.write("root/proc/version", "Linux\n")
        r, done = self.run_json("--sensor", f"simulate:{path}", "--root", self.path("root"), "-o",
                                self.path("n.nrg"), "--", "true")
        self.assertIsNone(r["program_j"])
        self.assertEqual((r["program"]["energy_j"], r["program"]["low_j"]), (None, None))
        self.assertIn("another machine", r["program"]["why"])
        self.assertAlmostEqual(r["unattributed_j"], r["total"]["energy_j"])
        text = self.nrg("report", self.path("n.nrg")).stdout.decode()
        self.assertRegex(text, r"this program: not known of the machine's \S+ m?J: the sensors")
        printed = self.nrg("report", "--print", "energy", self.path("n.nrg"))
        self.assertEqual(printed.stdout, b"nan\n")
        self.assertIn(b"not known: the sensors", printed.stderr)


class Captured(Case):
    """A tree of another machine, with a /proc that has no process in it."""

    def setUp(self):
        super().setUp()
        zone = "root/sys/class/powercap/intel-rapl:0"
        self.write(f"{zone}/name", "package-0\n")
        self.write(f"{zone}/energy_uj", "1000000\n")
        self.write(f"{zone}/max_energy_range_uj", "262143328850\n")
        self.write("root/proc/stat", "cpu  60000 0 40000 500000 0 0 0 0 0 0\ncpu0 60000 0 40000 500000 0 0 0 0 0 0\n")
        self.counter = self.path(f"{zone}/energy_uj")

    def assert_nobody_s(self, r, why):
        self.assertAlmostEqual(r["total"]["energy_j"], 5, delta=0.05)
        self.assertIsNone(r["program_j"])
        self.assertIn(why, r["program"]["why"])
        self.assertFalse([p for p in r["processes"] if p["energy_j"]])

    def test_its_joules_are_not_those_of_a_command_here(self):
        for split in ("active", "busy-time"):
            self.write("root/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n")
            r, _ = self.run_json("-f", "--root", self.path("root"), "--split", split, "-o", self.path("c.nrg"), "--", "sh", "-c",
                                 f"sleep 0.3; echo 6000000 > {self.counter}; sleep 0.3")
            self.assert_nobody_s(r, "another machine")
            self.assertIn("captured", self.missing(r, "energy per process"))
            self.assertNotIn("other_processes_j", r)

    def test_its_joules_are_not_those_of_the_processes_here(self):
        process = self.start("run", "-q", "--system", "--for", "1s", f"--json={self.path('r.json')}", "--root",
                             self.path("root"), "-o", self.path("s.nrg"))
        eventually(lambda: begun(self.path("s.nrg")), "the run begins")
        with open(self.counter, "w") as f:
            f.write("6000000\n")
        self.finish(process)
        with open(self.path("r.json")) as f:
            self.assert_nobody_s(json.load(f), "no process")

    def test_a_process_of_here_is_none_of_its(self):
        done = self.nrg("run", "--pid", str(os.getpid()), "--for", "0.2s", "--root", self.path("root"), "-o",
                        self.path("q.nrg"))
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"there is no process", done.stderr)


class Gpu(Case):
    def watch(self, script):
        other = self.start_sleeper()
        env = self.env(NRG_NVML_LIBRARY=FAKE_NVML,
                       NRG_FAKE_NVML=self.write("gpus", script.format(pid=other.pid, another=os.getpid())))
        self.nrg("run", "-q", "-f", f"--json={self.path('r.json')}", "-o", self.path("g.nrg"), "--sensor", "nvml",
                 "--pid", str(other.pid), "--for", "1s", env=env)
        with open(self.path("r.json")) as f:
            return json.load(f)

    def start_sleeper(self):
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        return sleeper

    def test_processors_beside_it_are_estimated(self):
        """Said before the run: a GPU's sensor covers no processor. And of an estimate of 0.1.0, that its band is too narrow."""
        env = self.env(NRG_NVML_LIBRARY=FAKE_NVML, NRG_FAKE_NVML=self.write("gpus", "gpu A\n power 90\n"))
        done = self.nrg("run", "-f", "--sensor", "nvml", "--sensor", "estimate", "-o", self.path("g.nrg"), "--", "true", env=env)
        self.assertIn(b"no energy sensor of the processors: their energy is estimated", done.stderr)
        self.assertNotIn(b"band is too narrow", self.nrg("report", self.path("g.nrg")).stdout)
        with sqlite3.connect(self.path("g.nrg")) as db:
            db.execute("UPDATE meta SET value = '0.1.0' WHERE key = 'nrg_version'")
        db.close()
        self.assertIn(b"machine: estimated by nrg 0.1.0, whose band is too narrow", self.nrg("report", self.path("g.nrg")).stdout)

    @unittest.skipIf(os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC, "a pid namespace: a GPU's pids are the host's")
    def test_a_gpu_that_names_processes(self):
        r = self.watch("gpu A\n power 90\n energy-period 0\n process {pid} 1000 60\n process {another} 1000 30\n"
                       "gpu B\n power 10\n energy-period 0\n")
        a, b = (domains(r)[name]["energy_j"] for name in ("gpu-0", "gpu-1"))
        self.assertAlmostEqual(r["program_j"] / (a * 2 / 3), 1, delta=0.2)
        self.assertAlmostEqual((r["program_j"] + r["unattributed_j"]) / (a + b), 1, places=9)
        self.assertLess(r["program"]["low_j"], 0.2 * r["program_j"])  # all may be the GPU's idle power
        self.assertGreaterEqual(r["program"]["high_j"], r["program_j"] + b)  # nobody knows whose B is
        self.assertIn("not shared out: gpu-1", r["program"]["share_method"])

    def test_a_gpu_that_names_none(self):
        r = self.watch("gpu A\n power 90\n energy-period 0\n")
        self.assertIsNone(r["program_j"])
        self.assertIn("which part", r["program"]["why"])


class RoundTrip(Case):
    """Through AIPowerMeter's files and back: idle power has no key there, and comes along all the same."""
    BURSTS = ("import time\nfor i in range(4):\n    end = time.process_time() + 0.25\n"
              "    while time.process_time() < end: pass\n    time.sleep(0.25)\n")

    def both(self, *options, command=BURSTS, period="200ms"):
        for made in ("a.nrg", "b.nrg"):
            if os.path.exists(self.path(made)):
                os.remove(self.path(made))
        first, _ = self.run_json("-f", "-o", self.path("a.nrg"), *options, "--", PYTHON, "-c", command)
        for step in (("export", "-f", "--format", "aipowermeter", "--period", period, "-o", self.path("folder"),
                      self.path("a.nrg")), ("import", "-f", self.path("folder"), "-o", self.path("b.nrg"))):
            done = self.nrg(*step)
            self.assertEqual(done.returncode, 0, done.stderr)
        return first, json.loads(self.nrg("report", "--json", self.path("b.nrg")).stdout)

    def test_idle_power_above_what_was_used_at_times(self):
        """A baseline of 12.5 W, then 10 and 16 W in turns: idle is 12.5 W, not the mean of what was cut at 10 W."""
        with open(self.path("log.csv"), "w") as f:
            f.write("time_s,package-0:energy_j\n")
            energy_j = 0
            for i in range(700):
                f.write("%.2f,%.4f\n" % (i / 100, energy_j))
                energy_j += (12.5 if i < 60 else 10 if i // 100 % 2 else 16) / 100
        first, again = self.both("--sensor", f"replay:{self.path('log.csv')}", "--sensor", "machine", "--baseline",
                                 "0.5s", command="import time\nwhile time.process_time() < 2.5: pass\n", period="100ms")
        self.assertEqual(again.get("idle_method"), first.get("idle_method"))
        if first.get("idle_method") != "baseline":
            return  # so busy that power was taken to follow the load, or that the baseline was late
        for key in ("energy_j", "high_j"):
            self.assertAlmostEqual(again["program"][key], first["program"][key], delta=0.15 * first["program"][key])

    def test_a_process_keeps_its_energy(self):
        path = self.scenario(MACHINE)
        for options in (("--sensor", f"simulate:{path}", "--baseline", "0.5s"), ("--sensor", "estimate"),
                        ("--sensor", f"simulate:{path}")):
            def check(reports):
                first, again = reports
                self.assertEqual(again.get("idle_method"), first.get("idle_method"))
                self.assertAlmostEqual(again["total"]["energy_j"] / first["total"]["energy_j"], 1, places=5)
                for key in ("low_j", "high_j"):
                    self.assertAlmostEqual(again["total"][key], first["total"][key], delta=0.01 * first["total"][key])
                one, other = (r["processes"][0]["energy_j"]["cpu"] for r in (first, again))
                self.assertAlmostEqual(other, one, delta=0.05 * one + 0.01 * first["total"]["energy_j"])

            with self.subTest(options):  # others' load makes a line over busy CPUs steep or flat
                steadily(check, lambda n, options=options: self.both(*options), 3)


class Print(Case):
    def run_print(self, *options, command):
        path = self.scenario(MACHINE)
        return self.nrg("run", "-f", "-o", self.path("p.nrg"), "--sensor", f"simulate:{path}", "--print", "energy",
                        *options, "--", *command)

    def test_one_number_after_the_command_s_output(self):
        done = self.run_print(command=("sh", "-c", "echo first; exit 3"))
        self.assertEqual(done.returncode, 3)
        first, number = done.stdout.decode().splitlines()
        self.assertEqual(first, "first")
        self.assertRegex(number, r"^\d+\.\d+$")
        self.assertIn(b"this program:", done.stderr)
        quiet = self.run_print("-q", command=("true",))
        self.assertRegex(quiet.stdout.decode(), r"\A\d+\.\d+\n\Z")
        self.assertEqual(quiet.stderr, b"")
        report = json.loads(self.nrg("report", "--json", self.path("p.nrg")).stdout)
        self.assertAlmostEqual(float(quiet.stdout), report["program_j"], delta=1e-6)

    def test_json_goes_to_a_file_beside_it(self):
        self.assertEqual(self.run_print("--json", command=("true",)).returncode, 2)
        done = self.run_print(f"--json={self.path('r.json')}", command=("true",))
        with open(self.path("r.json")) as f:
            self.assertAlmostEqual(json.load(f)["program_j"], float(done.stdout), delta=1e-6)

    def test_another_word_is_refused(self):
        done = self.nrg("report", "--print", "joules", self.path("p.nrg"))
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
