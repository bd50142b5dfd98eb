"""nrg.torch.measure: what is measured, that its energies are power times time under a power that is known, and that the
model is left as it was. Every program runs in a process of its own with the real library; the sensor is the simulator.
"""
import csv
import glob
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import EMULATOR, NRG, Case  # noqa: E402

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed")

POWER_W = 50
SCENARIO = "domain package-0\n  power %d\n" % POWER_W

MODEL = """
    import json, os, sys
    import torch, nrg, nrg.torch
    from torch import nn
    torch.manual_seed(0)
    torch.set_num_threads(1)

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, width)
            self.drop, self.act = nn.Dropout(0.5), nn.ReLU(inplace=True)

        def forward(self, x, scale=1.0):
            return x + scale * self.act(self.drop(self.fc(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(32), Block(32)])
            self.head = nn.Linear(32, 4)

        def forward(self, x, scale=1.0):
            for block in self.blocks:
                x = block(x, scale=scale)
            return self.head(x) + self.head(x[:2]).sum()

    def measure(model, *args, **kw):
        given = dict(out="net", sensors="simulate:scenario.txt", round_s=0.03, limit_s=0.3, idle_s=0.1, rate=100)
        given.update(kw)
        with torch.no_grad():
            return nrg.torch.measure(model, args, **given)
"""


class Measure(Case):
    def setUp(self):
        super().setUp()
        self.write("scenario.txt", self.scenario())

    def scenario(self):
        return SCENARIO

    def program(self, text, **kw):
        indented = "\n".join("    " + line.strip("\n")[8:] if line.strip() else "" for line in text.split("\n"))
        return self.python(MODEL + indented, **kw)

    def dataset(self, *args, code=0):
        done = self.run_process(NRG, "dataset", *args, "-o", "data.csv")
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        if code:
            return done
        with open(self.path("data.csv"), newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    def progress(self):
        with open(self.path("net", "progress.json"), encoding="utf-8") as lines:
            return json.load(lines)

    def test_energy_is_power_times_time(self):
        done = self.program("""
        result = measure(Net().eval(), torch.randn(8, 32), kwargs={"scale": 2.0}, level="op")
        print(json.dumps([result.complete, result.source, len(result.nodes)]))
        """)
        complete, source, n = json.loads(done.stdout)
        self.assertTrue(complete)
        self.assertEqual(source, "measured")
        rows = self.dataset("net", "--idle", "share")
        self.assertTrue(all(row["provenance"] == "measured" for row in rows))
        for row in rows:
            expected = POWER_W * float(row["time_s"])
            self.assertAlmostEqual(float(row["energy_j"]) / expected, 1, delta=0.03, msg=row)
        nodes = self.progress()["nodes"].values()
        self.assertEqual(len(nodes), n)
        live = sorted(node["energy_with_idle_j"] / (POWER_W * node["time_s"]) for node in nodes)
        self.assertAlmostEqual(live[len(live) // 2], 1, delta=0.05)  # single rounds may be cut by other programs
        self.assertEqual({row["level"] for row in rows}, {"operator", "module", "model"})
        done = self.run_process(NRG, "train", "net", "--idle", "share", "-o", "device.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_process(NRG, "predict", "--profile", "device.json", "--against", "net/measure-1.nrg")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nrg dataset", done.stderr)

    def test_a_fake_tree_of_rapl(self):
        self.write("scenario.txt", "domain package-0\n  power %d\n" % POWER_W)
        emulator = subprocess.Popen([EMULATOR, self.path("scenario.txt"), self.path("root")], stdout=subprocess.DEVNULL)
        self.addCleanup(emulator.wait)
        self.addCleanup(emulator.kill)
        while not os.path.exists(self.path("root", "truth.json")):
            self.assertIsNone(emulator.poll())
            time.sleep(0.01)
        self.program("""
        result = measure(nn.Linear(64, 64).eval(), torch.randn(8, 64), root="root", sensors="rapl-powercap", round_s=0.1,
                         limit_s=1.0)
        assert result.source == "measured", result.source
        """)
        row, = self.dataset("net", "--idle", "share")
        self.assertAlmostEqual(float(row["energy_j"]) / (POWER_W * float(row["time_s"])), 1, delta=0.05)
        self.assertEqual((row["kind"], row["level"], int(row["macs"])), ("aten::linear", "operator", 8 * 64 * 64))

    def test_equal_parts_are_measured_once(self):
        self.program("""
        measure(Net().eval(), torch.randn(8, 32), level="module")
        """)
        names = sorted((n["name"], n["places"]) for n in self.progress()["nodes"].values())
        # The two blocks are alike; the head is called with 8 rows and with 2; dropout does nothing.
        self.assertEqual(names, [("", 1), ("blocks.0", 2), ("blocks.0.act", 2), ("blocks.0.fc", 2), ("blocks.0.norm", 2),
                                 ("head", 1), ("head", 1)])
        rows = self.dataset("net", "--idle", "share")
        heads = {int(row["macs"]): row for row in rows if row["node"] == "head"}
        self.assertEqual(sorted(heads), [2 * 32 * 4, 8 * 32 * 4])
        norms = [row for row in rows if row["node"].endswith("norm")]
        self.assertEqual([(row["kind"], row["multiplicity"]) for row in norms], [("aten::layer_norm", "2")])
        model, = (row for row in rows if row["level"] == "model")
        counts = {rows[int(part.split(":")[0]) - 1]["kind"]: int((part + ":1").split(":")[1])
                  for part in model["parts"].split() if rows[int(part.split(":")[0]) - 1]["kind"] == "Block"}
        self.assertEqual(counts, {"Block": 2})

    def test_goes_on_after_an_interruption(self):
        done = self.program("""
        from nrg.torch._measure import Runner
        real, runs = Runner.run, []
        def run(self, k):
            runs.append((self.node.id, k))
            if runs[-3:] == [(4, k)] * 3:  # in its second or third round: before the first one, k grows
                raise KeyboardInterrupt
            return real(self, k)
        model, x = Net().eval(), torch.randn(8, 32)
        Runner.run = run
        try:
            measure(model, x, level="op", rel_error=1e-9)
        except KeyboardInterrupt:
            print("interrupted")
        Runner.run = real
        result = measure(model, x, level="op")
        again = measure(model, x, level="op")
        print(result.complete, again.complete, len(result.nodes) == len(again.nodes))
        """)
        self.assertEqual(done.stdout.split("\n")[:2], ["interrupted", "True True True"])
        self.assertIn("4 of ", done.stderr)
        recordings = sorted(os.path.basename(p) for p in glob.glob(self.path("net", "*.nrg")))
        self.assertEqual(recordings, ["measure-1.nrg", "measure-2.nrg"])
        rows = self.dataset("net", "--idle", "share")
        self.assertEqual(sum(row["level"] == "model" for row in rows), 1)
        only_first = self.dataset("net/measure-1.nrg", "--idle", "share")
        self.assertLess(len(only_first), len(rows))
        self.assertIn("measurement was interrupted: left out", self.said)

    def test_the_model_is_left_as_it_was(self):
        done = self.program("""
        class Odd(nn.Module):
            def __init__(self):
                super().__init__()
                self.bn, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.5)
                self.calls = 0

            def forward(self, x):
                self.calls += 1
                x.mul_(0.5)
                return self.drop(self.bn(x))

        model, x = Odd(), torch.randn(4, 8)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        given, numbers = x.clone(), torch.get_rng_state()
        measure(model, x, level="op", round_s=0.01, limit_s=0.05)
        same = all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
        print(same, torch.equal(x, given), torch.equal(numbers, torch.get_rng_state()), model.training, model.calls,
              nn.Module.__call__.__qualname__)
        """)
        self.assertEqual(done.stdout.split()[:5], ["True", "True", "True", "True", "0"])
        self.assertNotIn("capture", done.stdout)

    def test_a_shared_module(self):
        self.program("""
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                shared = nn.Linear(16, 16)
                self.a, self.b = nn.Sequential(shared, nn.ReLU()), nn.Sequential(shared)

            def forward(self, x):
                return self.b(self.a(x))

        measure(Twice().eval(), torch.randn(4, 16), level="module")
        """)
        rows = self.dataset("net", "--idle", "share")
        linear, = (row for row in rows if row["kind"] == "aten::linear")
        self.assertEqual(linear["multiplicity"], "2")
        self.assertEqual(sum(row["level"] == "model" for row in rows), 1)

    def test_refusals(self):
        done = self.program("""
        def attempt(call):
            try:
                call()
                print("done")
            except (nrg.Error, ValueError) as error:
                print(error)
        model, x = Net().eval(), torch.randn(8, 32)
        attempt(lambda: measure(model, x, level="layer"))
        attempt(lambda: measure(model, x, rel_error=3))
        attempt(lambda: measure(model, x, compositions=-1))
        attempt(lambda: measure(nn.Linear(4, 4), torch.randn(2, 4), round_s=0.01, limit_s=0.02))
        attempt(lambda: measure(nn.Linear(4, 4), torch.randn(3, 4)))
        with nrg.record("other.nrg", sensors="simulate:scenario.txt"):
            attempt(lambda: measure(model, x, out="elsewhere"))
        """)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], "level must be")
        self.assertRegex(lines[1], "rel_error")
        self.assertRegex(lines[2], "compositions is a number")
        self.assertEqual(lines[3], "done")
        self.assertRegex(lines[4], "another model")
        self.assertRegex(lines[5], "recorded already")

    def test_compositions(self):
        done = self.program("""
        model, x = Net().eval(), torch.randn(8, 32)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        numbers = torch.get_rng_state()
        given = dict(level="op", compositions=4, compositions_s=100, round_s=0.02, limit_s=0.1)
        first = measure(model, x, **given)
        again = measure(model, x, **given)
        more = measure(model, x, **dict(given, compositions=5))
        same = all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
        print(first.compositions, again.compositions, more.compositions, first.complete, same,
              torch.equal(numbers, torch.get_rng_state()))
        """)
        self.assertEqual(done.stdout.split(), ["4", "4", "5", "True", "True", "True"])
        self.assertIn("5 compositions of its kinds of modules", done.stderr)
        rows = self.dataset("net", "--idle", "share")
        models = {row["model"] for row in rows}
        self.assertIn("Net", models)
        self.assertGreaterEqual(len(models), 4, (models, self.said))
        done = self.run_process(NRG, "evaluate", "net", "--idle", "share", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(len(json.loads(done.stdout)["folds"]), 2)
        self.assertEqual(self.run_process(NRG, "train", "net", "--idle", "share", "-o", "device.json").returncode, 0)
        with open(self.path("device.json"), encoding="utf-8") as profile:
            self.assertEqual(json.load(profile)["held_out"], "models")

    def test_compositions_follow_from_the_seed(self):
        done = self.program("""
        from nrg.torch import _capture, _compose
        def made(seed, n=12):
            seen = _capture.capture(Net().eval(), (torch.randn(8, 32),), {}, False)
            return [(i, tuple(x.shape), repr(model)) for i, model, x in _compose.compositions(seen.nodes, n, seed, False)]
        with torch.no_grad():
            a, b, other = made(0), made(0), made(1)
            print(a == b, a[:5] == made(0, 5), a == other, len(set(a)) > 8, all(x[0] < 17 for _, x, _ in a))
            alone = _capture.capture(nn.Linear(4, 4), (torch.randn(3, 4),), {}, False)
            print(len(list(_compose.compositions(alone.nodes, 3, 0, False))))
            huge = _capture.capture(nn.Linear(4096, 4096), (torch.randn(1, 4096),), {}, False)
            print(len(list(_compose.compositions(huge.nodes, 3, 0, False))))
        """)
        self.assertEqual(done.stdout.splitlines(), ["True True False True True", "3", "0"])

    def test_compositions_end_with_their_time(self):
        done = self.program("""
        result = measure(Net().eval(), torch.randn(8, 32), compositions=40, compositions_s=0.01, round_s=0.01, limit_s=0.02)
        print(result.compositions)
        """)
        self.assertLess(int(done.stdout), 40)
        self.assertRegex(done.stderr, r"the time of 0\.01 s was up before \d+ of them")

    def test_the_limit_is_said_and_no_live_line_without_a_terminal(self):
        done = self.program("""
        measure(nn.Linear(4, 4).eval(), torch.randn(2, 4), round_s=0.01, limit_s=0.02, rel_error=1e-9)
        """)
        self.assertIn("are not known to 1e-07 %", done.stderr)
        self.assertNotIn("\r", done.stderr)

    def test_standard_error(self):
        done = self.program("""
        from nrg.torch._measure import standard_error
        print(standard_error([1.0, 2.0, 3.0, 4.0]), standard_error([5.0]))
        """)
        # sd of 1..4 is sqrt(5/3); over sqrt(4)
        self.assertEqual(done.stdout.strip(), "(2.5, 0.6454972243679028) (5.0, inf)")


if __name__ == "__main__":
    unittest.main()
