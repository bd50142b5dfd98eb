"""The recorder's threads at work together: sampler, slow readers, memory watch and writer.

Also run with the TSan build, where any race ends the program with an error.
"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

NRG = os.environ.get("NRG_BIN") or "build/nrg"

SCENARIO = """seed 1
domain package-0
  power 40
  fault 300ms EIO 200ms
domain gpu-0
  kind gauge
  power 25
"""


class Threads(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="nrg-threads-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.recording = os.path.join(self.folder, "run.nrg")

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
        return path

    def run_nrg(self, *arguments):
        done = subprocess.run([NRG, *arguments], capture_output=True, text=True, timeout=300)
        self.assertNotIn("WARNING: ThreadSanitizer", done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def report(self):
        return json.loads(self.run_nrg("report", "--json", self.recording).stdout)

    def test_fast_sampling_with_many_processes(self):
        scenario = self.write("scenario.txt", SCENARIO)
        self.run_nrg("run", "--rate", "1kHz", "--sensor", "simulate:" + scenario, "--sensor", "machine",
                     "-o", self.recording, "--", "sh", "-c",
                     "for i in 1 2 3 4 5 6 7 8; do (sleep 0.0$i; : ) & done; wait; sleep 1.2")
        report = self.report()
        package = next(d for d in report["domains"] if d["name"] == "package-0")
        self.assertAlmostEqual(package["mean_w"], 40, delta=2)
        self.assertGreaterEqual(len(report["processes"]), 2)

    def test_a_sensor_that_blocks_has_a_thread_of_its_own(self):
        chip = "root/sys/class/hwmon/hwmon0/"
        self.write(chip + "name", "ina226\n")
        self.write(chip + "power1_input", "5000000\n")
        self.run_nrg("run", "--root", os.path.join(self.folder, "root"), "--sensor", "hwmon",
                     "--rate", "200Hz", "-o", self.recording, "--", "sleep", "0.8")
        powers = [d["mean_w"] for d in self.report()["domains"]]
        self.assertEqual(len(powers), 1)
        self.assertAlmostEqual(powers[0], 5, delta=0.1)

    def test_edges_of_repeated_runs_against_all_threads(self):
        scenario = self.write("scenario.txt", SCENARIO)
        self.run_nrg("run", "--repeat", "5", "--baseline", "100ms", "--sensor", "simulate:" + scenario,
                     "-o", self.recording, "--", "sleep", "0.05")
        self.assertEqual(len(self.report()["runs"]), 5)

    def begun(self):
        try:
            return sqlite3.connect(f"file:{self.recording}?mode=ro", uri=True).execute(
                "SELECT count(*) FROM run").fetchone()[0]
        except sqlite3.OperationalError:  # not even made yet
            return 0

    def test_signal_while_recording(self):
        scenario = self.write("scenario.txt", SCENARIO)
        child = subprocess.Popen([NRG, "run", "--system", "--sensor", "simulate:" + scenario,
                                  "-o", self.recording], stderr=subprocess.PIPE, text=True,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.assertIn("Ctrl-C", child.stderr.readline())
        until = time.monotonic() + 300
        while not self.begun() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.6)
        child.send_signal(signal.SIGINT)
        _, talk = child.communicate(timeout=300)
        self.assertNotIn("ThreadSanitizer", talk)
        self.assertEqual(child.returncode, 0, talk)
        self.assertGreater(self.report()["duration_s"], 0.5)


if __name__ == "__main__":
    unittest.main()
