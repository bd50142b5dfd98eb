"""nrg dataset on recordings, from outside: what it says to recordings that are no measurements, and an unchanged
PyTorch program from its run to a prediction.
"""
import csv
import os
import shutil
import sqlite3
import unittest

import support
from retries import steadily
from support import Case, PYTHON, TOOLS

try:
    import torch
except ImportError:
    torch = None

SCENARIO = "domain package-0\n  power 50\n"
SPAN_MAKER = os.path.join(TOOLS, "span-maker")

PROGRAM = """
import torch
from torch import nn
torch.set_num_threads(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)

    def forward(self, x):
        return self.last(self.act(self.first(x)))

net, x = Net().eval(), torch.randn(512, 64)
with torch.no_grad():
    import nrg.torch
    nrg.torch.trace(net, x)
    for _ in range(600):
        net(x)
"""


class Recordings(Case):
    def record(self, name, *command, options=()):
        scenario = self.scenario(SCENARIO)
        done = self.nrg("run", "--quiet", "--sensor", "simulate:" + scenario, "--rate", "500", "-o", self.path(name), *options,
                        "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(name)

    def refused(self, *args):
        done = self.nrg("dataset", *args)
        self.assertEqual(done.returncode, 1)
        return self.one_line(done.stderr)

    def test_without_spans(self):
        self.assertIn("holds no spans", self.refused(self.record("a.nrg", "true")))

    def test_without_a_graph(self):
        path = self.record("a.nrg", SPAN_MAKER, "threads", "1", "50")
        self.assertRegex(self.refused(path), r"keeps no graph of its model: .*nrg\.torch\.trace.*--graph")

    def test_a_graph_of_something_else(self):
        path = self.record("a.nrg", SPAN_MAKER, "threads", "1", "50")
        graph = self.write("other.ts", "graph(%x : Float(8, 16)):\n  %y : Float(8, 16) = aten::relu(%x)\n  return (%y)\n")
        self.assertRegex(self.refused(path, "--graph", graph), r"could be joined with the graph 'other\.ts'")
        self.assertIn("No such file", self.refused(path, "--graph", self.path("none.ts")))

    def test_a_damaged_recording(self):
        path = self.record("a.nrg", "true")
        with open(path, "r+b") as f:
            f.seek(100)
            f.write(b"\xff" * 4000)
        self.assertIn("a.nrg", self.refused(path))

    def test_words(self):
        done = self.nrg("dataset", "--idle", "sometimes", "x.csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn("apart, share or none", self.one_line(done.stderr))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Programs(Case):
    """Run by the plain build: the interpreter that loads the library is not sanitized."""

    def setUp(self):
        super().setUp()
        build = os.path.abspath(os.environ.get("NRG_PLAIN_BUILD") or os.path.dirname(TOOLS))
        self.plain, support.NRG = support.NRG, os.path.join(build, "nrg")
        script = self.write("program.py", PROGRAM)
        self.run_path = self.path("run.nrg")

        def measure(_):
            return self.nrg("run", "--quiet", "--torch", "--sensor", "simulate:" + self.scenario(SCENARIO), "--rate", "500", "-f", "-o",
                            self.run_path, "--", PYTHON, script, env=self.env(OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(build, "python")))

        def check(done):  # calls on a machine that others keep busy may leave no row resolved
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.nrg("dataset", self.run_path, "--idle", "share").returncode, 0)

        steadily(check, measure, 3)
        support.NRG = self.plain

    def rows(self, *args):
        done = self.nrg("dataset", *args, "--idle", "share", "-o", self.path("data.csv"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("data.csv"), newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    def test_from_a_run_to_a_prediction(self):
        rows = {row["node"]: row for row in self.rows(self.run_path)}
        self.assertEqual(int(rows["first"]["macs"]), 512 * 64 * 256)
        self.assertEqual(rows["first"]["repeats"], "600")
        self.assertEqual(rows["first"]["provenance"], "measured")
        for node in ("first", ""):
            self.assertAlmostEqual(float(rows[node]["energy_j"]) / (50 * float(rows[node]["time_s"])), 1, delta=0.05)
        self.assertEqual(rows[""]["level"], "model")
        done = self.nrg("train", self.run_path, "--idle", "share", "-o", self.path("device.json"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_devices_do_not_mix(self):
        other = self.path("other.nrg")
        shutil.copy(self.run_path, other)
        with sqlite3.connect(other) as db:
            db.execute("UPDATE meta SET value = 'Another CPU' WHERE key = 'cpu'")
        db.close()
        done = self.nrg("dataset", self.run_path, other, "--idle", "share")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), "Another CPU.*different devices.*--device")
        rows = self.rows(self.run_path, other, "--device", "both")
        self.assertEqual({row["device"] for row in rows}, {"both"})


if __name__ == "__main__":
    unittest.main()
