"""HPE Cray's pm_counters: a node whose controller scans ten times a second, an hour off by its own clock, with known joules. No real one
has confirmed this."""
import threading
import unittest

from support import *

PARTS = {"": 500, "cpu_": 120, "memory_": 40, "accel0_": 100, "accel1_": 200}  # W
FILES = "sys/cray/pm_counters"
AHEAD_S = 3600


class Node(threading.Thread):
    """Writes a scan every 100 ms, in place as sysfs has it: counters of whole joules, then freshness."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.folder = os.path.join(root, FILES)
        os.makedirs(self.folder)
        self.over, self.begun, self.scan = threading.Event(), time.monotonic(), 0
        self.capped = os.path.join(root, "capped")  # made by a test
        self.write("raw_scan_hz", "10")
        self.make_scan()

    def write(self, name, text):
        fd = os.open(os.path.join(self.folder, name), os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(fd, f"{text}\n".encode(), 0)
        os.close(fd)

    def make_scan(self):
        stamp_us = int((time.time() + AHEAD_S) * 1e6)
        since = time.monotonic() - self.begun
        for name, watts in PARTS.items():
            self.write(f"{name}energy", f"{1000000 + int(watts * since)} J {stamp_us} us")
            self.write(f"{name}power", f"{watts} W {stamp_us} us")
        self.scan += 1
        self.write("generation", "18" if os.path.exists(self.capped) else "17")
        self.write("freshness", str(1000 + self.scan))

    def run(self):
        while not self.over.wait(0.1):
            self.make_scan()


class Cray(Case):
    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        os.makedirs(os.path.join(self.root, "sys/class"))
        self.node = Node(self.root)

    def tearDown(self):
        self.node.over.set()
        if self.node.ident:
            self.node.join()
        super().tearDown()

    def measure(self, script, *args):
        return self.run_json("-f", "-o", self.path("run.nrg"), "--root", self.root, "--sensor", "cray", *args, "--", "sh", "-c", script)[0]

    def test_joules(self):
        self.node.start()
        r = self.measure("sleep 2")
        found = domains(r)
        self.assertEqual(set(found), {"machine", "cpu", "memory", "accel-0", "accel-1"})
        for name, watts in (("machine", 500), ("cpu", 120), ("memory", 40), ("accel-0", 100), ("accel-1", 200)):
            self.assertEqual(found[name]["provenance"], "measured")
            # Whole joules at both ends, and the scan that the machine's load made late.
            self.assertAlmostEqual(found[name]["energy_j"] / r["duration_s"], watts, delta=0.05 * watts + 2, msg=name)
        # The node contains the others: the total is the parts, and the node stands beside it.
        parts = sum(d["energy_j"] for name, d in found.items() if name != "machine")
        self.assertAlmostEqual(r["total"]["energy_j"], parts, delta=1e-6 * parts)

    def test_a_cap_that_changes_is_said(self):
        self.node.start()
        self.measure(f"sleep 0.7; touch {self.node.capped}; sleep 0.8")
        self.assertIn("power cap was changed", str(query(self.path("run.nrg"), "SELECT * FROM event")))

    def test_a_controller_that_stops(self):
        """Its last scan is not repeated: what was not measured is not said to be."""
        r = self.measure("sleep 0.7")
        done = self.nrg("export", "--format", "csv", self.path("run.nrg"))
        lines = [line for line in done.stdout.decode().splitlines()[1:] if ",machine," in line]
        self.assertLessEqual(len(lines), 2, lines)
        self.assertTrue(self.missing(r, "machine"), r["missing"])

    def test_listed(self):
        done = self.nrg("sensors", "--json", "--root", self.root, "--sensor", "cray")
        self.assertEqual(done.returncode, 0, done.stderr)
        channels = {(c["name"], c["unit"]): c for c in json.loads(done.stdout)["channels"]}
        self.assertEqual(len(channels), 10)
        self.assertEqual(channels["accel-1", "J"]["update_period_s"], 0.1)
        self.assertEqual(channels["accel-1", "J"]["resolution"], 1)


if __name__ == "__main__":
    unittest.main()
