"""nrg calibrate --gpu and --sensor-profile around the fit, which tests/truth/test_gpu_sensor.py tries: what goes in and comes out."""
import json
import os
import random
import sqlite3
import time
import unittest

from retries import retried
from support import FAKE_NVML, PYTHON, TOOLS, Case

VOLTA = "gpu Tesla V100\n arch 5\n power 100\n fail samples 3\n"
PROFILE = {"schema": "nrg.sensor/1", "gpu": "Tesla V100", "update_s": 0.02, "window_s": 0.01, "lag_s": 0}

LOAD = """
import sys, time, nrg
zero_s, times = int(sys.argv[1]) / 1e9, [float(t) for t in sys.argv[2:]]
for i, (begin_s, end_s) in enumerate(zip(times, times[1:])):
    time.sleep(max(0, zero_s + begin_s - time.monotonic()))
    with nrg.span("off" if i % 2 else "on"):
        time.sleep(max(0, zero_s + end_s - time.monotonic()))
"""


class Gpu(Case):
    def fake(self, script=VOLTA, **more):
        return self.env(NRG_NVML_LIBRARY=FAKE_NVML, NRG_FAKE_NVML=self.write("gpus", script), **more)

    def profile(self, **changed):
        return self.write("sensor.json", json.dumps({**PROFILE, **changed}))

    def power(self, *options, env=None):
        done = self.nrg("sensors", "--json", *options, env=env or self.fake())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return next(c for c in json.loads(done.stdout)["channels"] if c["name"] == "gpu-0" and c["quantity"] == "power")


class Profiles(Gpu):
    def test_it_replaces_the_table(self):
        self.assertNotIn("window_s", self.power())
        power = self.power("--sensor-profile", self.profile())
        self.assertEqual((power["update_period_s"], power["window_s"]), (0.02, 0.01))
        power = self.power("--sensor-profile", self.profile(lag_s=0.5))
        self.assertEqual(power["lag_s"], 0.5)

    def test_a_running_mean(self):
        """Of the getter; samples of the buffer are not averaged."""
        power = self.power("--sensor-profile", self.profile(window_s=1.0, update_s=0.1))
        self.assertEqual((power["update_period_s"], power["window_s"]), (0.1, 1))
        power = self.power("--sensor-profile", self.profile(window_s=1.0, update_s=0.1), env=self.fake("gpu Tesla V100\n arch 5\n"))
        self.assertEqual(power["window_s"], 0.1)

    def test_it_is_of_one_getter(self):
        usage = self.profile(source="nvmlDeviceGetPowerUsage", window_s=1.0, update_s=0.1)
        self.assertEqual(self.power("--sensor-profile", usage)["window_s"], 1)
        both = self.fake("gpu Tesla V100\n arch 5\n fail samples 3\n instant 1\n")
        self.assertNotIn("window_s", self.power("--sensor-profile", usage, env=both))
        done = self.nrg("sensors", "--sensor-profile", usage, env=both)
        self.assertIn("sensor profile: it is of nvmlDeviceGetPowerUsage, and gpu-0 is read by nvmlDeviceGetFieldValues", done.stdout.decode())
        instant = self.profile(source="nvmlDeviceGetFieldValues(NVML_FI_DEV_POWER_INSTANT)")
        self.assertEqual(self.power("--sensor-profile", instant, env=both)["window_s"], 0.01)

    def test_it_is_of_boards_of_that_name(self):
        self.assertNotIn("window_s", self.power("--sensor-profile", self.profile(gpu="NVIDIA L4")))
        without = {k: v for k, v in PROFILE.items() if k != "gpu"}
        self.assertEqual(self.power("--sensor-profile", self.write("all.json", json.dumps(without)))["window_s"], 0.01)

    def test_nrg_conf_names_one(self):
        self.write("config/nrg/nrg.conf", f"sensor-profile = {self.profile()}\n")
        self.assertEqual(self.power()["window_s"], 0.01)
        other = self.write("other.json", json.dumps({**PROFILE, "window_s": 0.015}))
        self.assertEqual(self.power("--sensor-profile", other)["window_s"], 0.015)

    def test_a_recording_keeps_it(self):
        out = self.path("g.nrg")
        done = self.nrg("run", "-q", "--sensor", "nvml", "--sensor-profile", self.profile(), "-o", out, "--", "true", env=self.fake())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with sqlite3.connect(out) as db:
            kept = db.execute("SELECT update_ns, window_ns FROM channel WHERE name = 'gpu-0' AND quantity = 'power'").fetchall()
        self.assertEqual(kept, [(20_000_000, 10_000_000)])

    def test_files_that_are_none(self):
        for text, part in (("{", "is not JSON"), ("[]", "is not a sensor profile"), ('{"schema": "nrg.sensor/2"}', "is not a sensor profile"),
                           (json.dumps({**PROFILE, "window_s": -0.03}), "'window_s' wants seconds"),
                           (json.dumps({**PROFILE, "update_s": "1"}), "'update_s' wants seconds"),
                           (json.dumps({**PROFILE, "lag_s": -1}), "'lag_s' wants seconds")):
            with self.subTest(text):
                done = self.nrg("sensors", "--sensor-profile", self.write("bad.json", text), env=self.fake())
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(part, self.one_line(done.stderr))
        done = self.nrg("sensors", "--sensor-profile", self.path("none.json"), env=self.fake())
        self.assertIn("cannot be read", self.one_line(done.stderr))


class Calibrate(Gpu):
    def calibrate(self, *args, code=1):
        done = self.nrg("calibrate", "--gpu", *args, env=self.fake())
        self.assertEqual(done.returncode, code, done.stdout.decode() + done.stderr.decode())
        return done.stderr.decode()

    def test_a_load_without_spans(self):
        self.assertIn("can't be told: 0 spans called 'on'", self.calibrate("-o", self.path("s.json"), "--", "sleep", "0.2"))
        self.assertFalse(os.path.exists(self.path("s.json")))

    def test_a_load_that_fails(self):
        self.assertIn("the load did not run", self.calibrate("--", "false"))

    def test_nothing_is_left_behind(self):
        os.mkdir(self.path("tmp"))
        for load in ("true", "false"):
            self.nrg("calibrate", "--gpu", "--", load, env=self.fake(TMPDIR=self.path("tmp")))
            self.assertEqual(os.listdir(self.path("tmp")), [])

    def running_mean(self, times):
        """The fake library knows the power of each moment, and the load says which that is."""
        build = os.path.abspath(os.environ.get("NRG_PLAIN_BUILD") or os.path.dirname(TOOLS))  # the interpreter is not sanitized
        zero_ns = time.monotonic_ns() + 10**9  # programs have begun by then
        power = "60 " + " ".join(f"{t} {60 if i % 2 else 250}" for i, t in enumerate(times))
        env = self.fake(f"zero {zero_ns}\ngpu NVIDIA L4\n arch 8\n fail samples 3 -9999\n power-mean 400\n power-period 60\n power {power}\n",
                        PYTHONPATH=os.path.join(build, "python"))
        done = self.nrg("calibrate", "--gpu", "-o", self.path("l4.json"), "--", PYTHON, self.write("load.py", LOAD), str(zero_ns),
                        *map(str, times), env=env)
        return done, env

    def test_a_running_mean_of_a_load(self):
        turns, times = random.Random(5), [0.3]
        while times[-1] < 5:
            times.append(round(times[-1] + turns.uniform(0.02, 0.12), 3))
        for _ in range(2):
            done, env = self.running_mean(times)
            if b"too few" not in done.stderr and b"not read at least" not in done.stderr:
                break
            retried(done.stderr.decode())
        else:
            self.skipTest("this machine is too busy to be read 50 times a second")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(self.path("l4.json"), encoding="utf-8") as file:
            found = json.load(file)
        self.assertAlmostEqual(found["window_s"], 0.4, delta=0.04)
        self.assertAlmostEqual(found["update_s"], 0.06, delta=0.001)
        self.assertEqual(found["source"], "nvmlDeviceGetPowerUsage")
        power = self.power("--sensor-profile", self.path("l4.json"), env=env)
        self.assertAlmostEqual(power["window_s"], found["window_s"], places=6)

    def test_usage(self):
        done = self.nrg("calibrate", "--from", "a.nrg")
        self.assertEqual((done.returncode, self.one_line(done.stderr).split("(")[0].strip()[-23:]), (2, "--from belongs to --gpu"))
        self.assertIn("can't be combined", self.calibrate("--from", "a.nrg", "--", "true", code=2))
        self.assertIn("a.nrg", self.calibrate("--from", self.path("a.nrg")))


if __name__ == "__main__":
    unittest.main()
