"""nrg calibrate --gpu and --sensor-profile around the fit, which tests/truth/test_gpu_sensor.py tries: what goes in and comes out."""
import json
import os
import sqlite3
import unittest

from support import FAKE_NVML, Case

VOLTA = "gpu Tesla V100\n arch 5\n power 100\n fail samples 3\n"
PROFILE = {"schema": "nrg.sensor/1", "gpu": "Tesla V100", "update_s": 0.02, "window_s": 0.01, "lag_s": 0}


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

    def test_usage(self):
        done = self.nrg("calibrate", "--from", "a.nrg")
        self.assertEqual((done.returncode, self.one_line(done.stderr).split("(")[0].strip()[-23:]), (2, "--from belongs to --gpu"))
        self.assertIn("can't be combined", self.calibrate("--from", "a.nrg", "--", "true", code=2))
        self.assertIn("a.nrg", self.calibrate("--from", self.path("a.nrg")))


if __name__ == "__main__":
    unittest.main()
