"""nrg calibrate --gpu finds out sensors whose window, update period and delay are known."""
import json
import os
import subprocess
import tempfile
import unittest

from support import NRG, np  # first: it skips where there is no numpy

import sensors
from machine import Idle, Piecewise, Sum
from recording import NO_VALUE, Recording

OFF_W, ON_W = 60.0, 250.0


class Load:
    """On and off in turns of random length, as python/nrg/gpu_load.py makes them."""

    def __init__(self, rng, seconds, shortest_s=0.004, longest_s=0.3):
        turns = np.exp(rng.uniform(np.log(shortest_s), np.log(longest_s), int(seconds / shortest_s)))
        t = 0.5 + np.concatenate([[0], np.cumsum(turns)])
        t = t[t < seconds]
        self.t = np.round(t[:len(t) // 2 * 2] * 1e9) / 1e9
        self.after_s = seconds + 0.5
        on = np.tile([ON_W - OFF_W, 0.0], len(self.t) // 2)[:-1]
        self.energy = Sum([Piecewise(self.t, on), Idle(OFF_W, 0.0, self.after_s, 0.0)])


def write(path, load, rng, rate_hz, name="gpu-0", **sensor):
    recording = Recording(path)
    t = sensors.woken(rng, 0.02, load.after_s, 1 / rate_hz)
    raw = sensors.mean_gauge(rng, load, t, quantum_w=1e-3, **sensor)
    recording.samples("nvml", "GPU 0 (NVIDIA A100-SXM4-40GB)", 1 / rate_hz, sensors.stamp(t),
                      [({"name": name, "quantity": "power", "kind": "gauge", "unit": "W", "scale": 1e-3, "resolution": 1e-3}, raw)])
    recording.insert("span_track", (1, "thread", 4000, 4000, 1000, "", "load"))
    recording.insert("span_name", (1, "span", "on", ""), (2, "span", "off", ""))
    stamps = sensors.stamp(load.t)
    n = len(stamps)
    times = np.repeat(stamps, 2)[1:-1]  # each moment ends a span and begins the next
    event = np.tile([0, 1], n - 1)
    ids = np.repeat(np.tile([1, 2], n)[:n - 1], 2)
    recording.series("spans", 0, ("track", "event", "name", "value", "parent"), times,
                     [np.ones(len(times)), event, ids, np.full(len(times), NO_VALUE), np.full(len(times), NO_VALUE)])
    recording.meta(nrg_version="truth", command_line="load", spans=n - 1, begin_ns=int(sensors.stamp(0.0)))
    recording.insert("run", (1, "run", int(sensors.stamp(0.1)), int(sensors.stamp(load.after_s - 0.1)), 0))
    recording.close()


class Sensors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path, self.profile = (os.path.join(folder.name, n) for n in ("load.nrg", "sensor.json"))

    def calibrate(self, seed=1, rate_hz=250, seconds=40, load=None, **sensor):
        rng = np.random.default_rng(seed)
        write(self.path, Load(rng, seconds, **(load or {})), rng, rate_hz, **sensor)
        return subprocess.run([NRG, "calibrate", "--gpu", "--json", "-o", self.profile, "--from", self.path],
                              capture_output=True, text=True)

    def found(self, **sensor):
        done = self.calibrate(**sensor)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["sensors"][0]

    def assert_found(self, got, update_s, window_s, delay_s=0.0):
        self.assertAlmostEqual(got["update_s"] / update_s, 1, delta=0.005)
        self.assertAlmostEqual(got["mean_s"] / window_s, 1, delta=0.04)
        self.assertAlmostEqual(got["delay_s"], delay_s, delta=0.004)
        self.assertLessEqual(got["mean_low_s"], got["mean_s"])
        self.assertGreaterEqual(got["mean_high_s"], got["mean_s"])

    def test_an_a100(self):
        for seed in range(1, 5):
            with self.subTest(seed):
                got = self.found(seed=seed, update_s=0.1, window_s=0.025, ppm=200, noise=0.01)
                self.assert_found(got, 0.1, 0.025)
                self.assertAlmostEqual(got["window_s"] / 0.025, 1, delta=0.04)
                self.assertEqual(got["lag_s"], 0)
                self.assertAlmostEqual(got["off_w"] / OFF_W, 1, delta=0.05)
                self.assertAlmostEqual(got["on_w"] / ON_W, 1, delta=0.03)
                self.assertEqual(got["gpu"], "NVIDIA A100-SXM4-40GB")

    def test_polled_beside_a_buffer(self):
        self.assert_found(self.found(name="gpu-0.polled", update_s=0.1, window_s=0.025, noise=0.01), 0.1, 0.025)

    def test_a_delay(self):
        self.assert_found(self.found(update_s=0.1, window_s=0.025, delay_s=0.06, noise=0.005), 0.1, 0.025, 0.06)

    def test_the_whole_update(self):
        got = self.found(update_s=0.1, window_s=0.1, ppm=-100, noise=0.01)
        self.assert_found(got, 0.1, 0.1)
        self.assertEqual((got["window_s"], got["lag_s"]), (got["update_s"], 0))

    def test_a_short_update(self):
        self.assert_found(self.found(update_s=0.02, window_s=0.01, noise=0.01), 0.02, 0.01)

    def test_a_mean_over_a_second(self):
        got = self.found(update_s=0.1, window_s=1.0, noise=0.002, seconds=90)
        self.assert_found(got, 0.1, 1.0)
        self.assertEqual((got["window_s"], got["lag_s"]), (got["mean_s"], 0))

    def test_the_profile_says_the_same(self):
        got = self.found(update_s=0.1, window_s=0.025, noise=0.01)
        with open(self.profile, encoding="utf-8") as file:
            self.assertEqual(json.load(file), got)

    def cannot_tell(self, **sensor):
        done = self.calibrate(**sensor)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertFalse(os.path.exists(self.profile))
        self.assertIn("can't be told", done.stderr)
        return done.stderr

    def test_a_load_that_changes_seldom(self):
        self.cannot_tell(update_s=0.1, window_s=0.025, noise=0.1, seconds=90, load={"shortest_s": 1.0, "longest_s": 1.2})

    def test_readings_that_do_not_follow_the_load(self):
        self.assertIn("explains", self.cannot_tell(update_s=0.1, window_s=0.025, noise=3.0))

    def test_readings_that_are_too_far_apart(self):
        self.assertIn("--rate", self.cannot_tell(update_s=0.1, window_s=0.025, noise=0.01, rate_hz=10))


if __name__ == "__main__":
    unittest.main()
