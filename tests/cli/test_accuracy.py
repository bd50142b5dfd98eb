"""Energy of a run against known truth, and what a total adds up.

The device is a process of its own (rapl-emulator) that knows the true energy between any two
times; the run's own edges come from the recording. The emulator writes its files about every
millisecond, so that on a machine that is busy with other things a value can be late by more than
the bar allows: such a measurement is repeated, alone and for longer.
"""
import json
import unittest

from retries import retried, steadily
from support import *

BAR = 0.005

SHAPES = {
    "constant": "power 45",
    "step": "power 0s:12 1.2s:80 2.1s:30",
    "bursty": "burst period=70ms duty=0.4 low=8 high=95",
}


def machine(shape):
    """package with core inside and dram beside it; the package wraps within two seconds."""
    return f"""
domain package-0
  {shape}
  quantum 61uJ
  wrap 262143.328850J
  start 262133J
domain core-0
  power 20
domain dram-0
  power 0s:3 2s:6
"""


class Accuracy(Case):
    def measure(self, cases, seconds):
        """All cases at once. Returns {(shape, rate): {domain: relative error}}."""
        jobs = []
        for shape in sorted({shape for shape, _ in cases}):
            scenario = self.scenario(machine(SHAPES[shape]), f"{shape}.txt")
            root = self.path(f"root-{shape}-{time.monotonic_ns()}")
            os.mkdir(root)
            zero_ns = self.emulate(scenario, root)
            for rate in [rate for name, rate in cases if name == shape]:
                out = self.path(f"{shape}-{rate}-{time.monotonic_ns()}.nrg")
                process = self.start("run", "--quiet", f"--json={out}.json", "--root", root,
                                     "--sensor", "rapl-powercap", "--rate", rate, "-o", out, "--",
                                     "sleep", seconds)
                jobs.append((shape, rate, scenario, zero_ns, out, process))
        errors = {}
        for shape, rate, scenario, zero_ns, out, process in jobs:
            self.finish(process)
            self.assertEqual(process.returncode, 0)
            truth = self.truth(scenario, zero_ns, run_edges(out))
            with open(out + ".json") as f:
                found = domains(json.load(f))
            self.assertEqual(set(found), set(truth))
            errors[shape, rate] = {name: found[name]["energy_j"] / true_j - 1
                                   for name, true_j in truth.items()}
        for process in self.started:
            if process.poll() is None:
                process.terminate()
                process.wait()
        return errors

    def test_known_truth_with_a_wrap_at_1_hz_and_1_khz(self):
        def bad(errors):
            return [case for case, found in errors.items() if max(map(abs, found.values())) > BAR]

        errors = self.measure([(shape, rate) for shape in SHAPES for rate in ("1Hz", "1kHz")], "3")
        for seconds in ("6", "12", "24"):
            for case in bad(errors):
                retried(f"{case} for {seconds} s: {errors[case]}")
                errors.update(self.measure([case], seconds))
        self.assertEqual(bad(errors), [], errors)


class Simulated(Case):
    """The simulate driver: its time 0 is its first read, so constant powers give the truth."""

    def run_scenario(self, text, *options, command=("sleep", "1.5"), code=0):
        path = self.scenario(text)
        return self.run_json("--sensor", f"simulate:{path}", "-o", self.path("s.nrg"), *options,
                             "--", *command, code=code)[0]

    def covered(self, name, measure):
        """Results of measure() with a gauge read without a gap: a busy machine may need several trials."""
        return steadily(lambda results: self.assertGreater(domains(results)[name]["covered"], 0.9999),
                        lambda n: measure(), 6)

    def assert_energy(self, results, name, power_w, bar=BAR):
        d = domains(results)[name]
        self.assertAlmostEqual(d["energy_j"] / (power_w * results["duration_s"]), 1, delta=bar)
        return d

    def test_gauge_is_integrated_to_the_edges(self):
        text = "domain gpu-0\n kind gauge\n power 70\n update 50ms\n"
        r = self.covered("gpu-0", lambda: self.run_scenario(text, "-f"))
        d = self.assert_energy(r, "gpu-0", 70)
        self.assertEqual(d["method"], "trapezoid")
        self.assertAlmostEqual(d["covered"], 1, places=3)

    def test_lag_of_an_averaging_gauge_is_corrected(self):
        # 20 W, then 100 W from 0.5 s on; time constant 0.4 s. Uncorrected, about 80 * 0.4 = 32 J
        # would be missing at the end.
        path = self.scenario("domain gpu-0\n kind gauge\n power 0s:20 0.5s:100\n update 10ms\n"
                             " lag 0.4s\n")
        out = self.path("lag.nrg")

        def measure(n):
            return self.run_json("-f", "--sensor", f"simulate:{path}", "--rate", "20Hz", "-o", out, "--", "sleep", "1")[0]

        def check(r):
            begin_ns, end_ns = run_edges(out)
            zero_ns = query(out, "SELECT min(first_ns) FROM chunk WHERE series = (SELECT series FROM channel WHERE name = 'gpu-0')")[0][0]
            a, b = (begin_ns - zero_ns) / 1e9, (end_ns - zero_ns) / 1e9
            true_j = 20 * (0.5 - a) + 100 * (b - 0.5)
            d = domains(r)["gpu-0"]
            self.assertIn("lag-corrected", d["method"])
            self.assertAlmostEqual(d["energy_j"] / true_j, 1, delta=0.02)

        steadily(check, measure, 6)  # readings of a busy machine are late, and a step falls between them

    def test_psys_is_a_check_and_never_added(self):
        r = self.run_scenario("domain psys\n power 120\ndomain package-0\n power 40\n"
                              "domain core-0\n power 25\ndomain dram-0\n power 10\n"
                              "domain package-1\n power 30\n")
        self.assertEqual(set(r["total"]["domains"]), {"package-0", "package-1", "dram-0"})
        self.assertAlmostEqual(r["total"]["energy_j"] / (80 * r["duration_s"]), 1, delta=BAR)
        self.assertEqual(r["check"]["name"], "psys")
        self.assertAlmostEqual(r["check"]["energy_j"] / (120 * r["duration_s"]), 1, delta=BAR)
        by_name = domains(r)
        self.assertAlmostEqual(r["total"]["energy_j"],
                               sum(by_name[n]["energy_j"] for n in r["total"]["domains"]), places=6)

    def test_only_psys_is_the_total(self):
        r = self.run_scenario("domain psys\n power 120\n", command=("sleep", "0.6"))
        self.assertEqual(r["total"]["domains"], ["psys"])
        self.assertNotIn("check", r)

    def test_core_alone_counts(self):
        r = self.run_scenario("domain core-0\n power 15\n", command=("sleep", "0.6"))
        self.assertEqual(r["total"]["domains"], ["core-0"])

    def test_mmio_is_not_counted_twice(self):
        base = "root/sys/class/powercap/"
        for zone in ("intel-rapl:0", "intel-rapl-mmio:0"):
            self.write(f"{base}{zone}/name", "package-0\n")
            self.write(f"{base}{zone}/energy_uj", "1000000\n")
            self.write(f"{base}{zone}/max_energy_range_uj", "262143328850\n")
        energy = self.path(base, "intel-rapl:0/energy_uj")
        mmio = self.path(base, "intel-rapl-mmio:0/energy_uj")
        script = f"sleep 0.3; echo 6000000 > {energy}; echo 6000000 > {mmio}; sleep 0.3"
        r, _ = self.run_json("--root", self.path("root"), "--sensor", "rapl-powercap", "-o",
                             self.path("m.nrg"), "--", "sh", "-c", script)
        self.assertEqual([d["name"] for d in r["domains"]], ["package-0"])
        self.assertAlmostEqual(r["total"]["energy_j"], 5.0, places=3)

    def test_baseline_is_the_idle_part(self):
        r = self.run_scenario("domain package-0\n power 30\n", "--sensor", "machine", "--baseline",
                              "0.5s", command=("sleep", "1"))
        self.assertEqual(r["idle_method"], "baseline")
        self.assertAlmostEqual(r["idle_j"] / (30 * r["duration_s"]), 1, delta=0.01)


class Nvml(Case):
    def run_gpu(self, script, command=("sleep", "1.5"), code=0, *options):
        env = self.env(NRG_NVML_LIBRARY=FAKE_NVML, NRG_FAKE_NVML=self.write("gpus", script))
        return self.run_json("--sensor", "nvml", "-o", self.path("g.nrg"), *options, "--",
                             *command, code=code, env=env)[0]

    def test_energy_counter(self):
        r = self.run_gpu("gpu Test A100\n power 250\n energy-period 0\n"
                         "gpu Test T4\n power 40\n energy-period 0\n")
        found = domains(r)
        for name, power_w in (("gpu-0", 250), ("gpu-1", 40)):
            self.assertAlmostEqual(found[name]["energy_j"] / (power_w * r["duration_s"]), 1,
                                   delta=BAR)
        self.assertEqual(set(r["total"]["domains"]), {"gpu-0", "gpu-1"})

    def test_every_call_not_supported(self):
        r = self.run_gpu("gpu Old\n fail all 3\n", ("sleep", "0.2"))
        self.assertEqual(r["domains"], [])
        self.assertNotIn("energy_j", r["total"])
        self.assertTrue(self.missing(r, "GPU 0") or self.missing(r, "gpu"), r["missing"])

    def test_gpu_that_falls_off(self):
        r = self.run_gpu("gpu Lost\n power 100\n energy-period 0\n lost-after 1000\n",
                         ("sh", "-c", "sleep 2; exit 3"), 3)
        gpu = domains(r)["gpu-0"]
        self.assertLess(gpu["covered"], 0.75)
        self.assertAlmostEqual(gpu["energy_j"] / (100 * gpu["covered"] * r["duration_s"]), 1,
                               delta=0.02)
        self.assertIn("no readings for", self.missing(r, "gpu-0"))

    def test_init_fails(self):
        env = self.env(NRG_NVML_LIBRARY=FAKE_NVML, NRG_FAKE_NVML=self.write("gpus", "init 9\n"))
        done = self.nrg("sensors", "--json", env=env)
        self.assertEqual(done.returncode, 0)
        reasons = [u for u in json.loads(done.stdout)["unavailable"] if u["driver"] == "nvml"]
        self.assertTrue(reasons and reasons[0]["why"])


if __name__ == "__main__":
    unittest.main()
