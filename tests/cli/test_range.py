"""nrg attribute --from --to: parts of a run add up to it, and hold what is known of them."""
import json
import random

from spans_file import Spans, power_log
from support import Case

SUMS = ("total_j", "idle_j", "other_processes_j", "unattributed_j")


class Range(Case):
    def recording(self, powers=None):
        """2 s: 10 W, then 20 W from 1 s on. Steps of 0.4 s; a module a in the first half of each, b in the second."""
        spans = Spans()
        for i in range(5):
            at = 0.4 * i
            spans.span(at, at + 0.4, "step", "step", number=i, inside=[
                dict(begin_s=at, end_s=at + 0.2, text="a", kind="module", inside=[(at + 0.05, at + 0.1, "op", "operator")]),
                dict(begin_s=at + 0.2, end_s=at + 0.4, text="b", kind="module")])
        path = self.path("run.nrg")
        log = self.write("power.log", power_log(powers or [10] * 100 + [20] * 101, 0.01))
        done = self.nrg("import", "-q", "-f", "-o", path, log)
        self.assertEqual(done.returncode, 0, done.stderr)
        spans.write(path)
        return path

    def attribute(self, path, *options):
        done = self.nrg("attribute", "--json", *options, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def named(self, doc, name):
        return sum(row["energy_self_j"] for row in doc["rows"] if row["name"] == name)

    def test_known_joules(self):
        doc = self.attribute(self.recording(), "--method", "integrate", "--idle", "none", "--lag", "none",
                             "--from", "0.5", "--to", "1.5")
        self.assertEqual((doc["from_s"], doc["to_s"], doc["duration_s"]), (0.5, 1.5, 1.0))
        self.assertAlmostEqual(doc["total_j"], 15, delta=0.1)  # the edge at 1 s is a ramp of one reading
        # b has 0.6 .. 0.8 at 10 W, 1.0 .. 1.2 and 1.4 .. 1.5 at 20 W, and 0.5 .. 0.6 belongs to a
        self.assertAlmostEqual(self.named(doc, "b"), 2 + 4 + 2, delta=0.1)
        self.assertLess(doc["total_low_j"], doc["total_j"])
        self.assertGreater(doc["total_high_j"], doc["total_j"])
        step = next(row for row in doc["rows"] if row["name"] == "step")
        self.assertAlmostEqual(step["time_s"], 1.0, places=6)
        self.assertEqual(step["calls"], 2)  # those that ended in it

    def test_parts_add_up(self):
        rng = random.Random(14)
        powers = [10 + 5 * ((i // 7) % 3) for i in range(201)]
        path = self.recording(powers)
        for method in ("integrate", "regress", "window", "nearest"):
            for by in ("path", "name", "module"):
                options = ("--method", method, "--by", by)
                cuts = sorted({0, 2, 0.4, *(round(rng.uniform(0, 2), 6) for _ in range(3))})
                parts = [self.attribute(path, *options, "--from", str(a), "--to", str(b)) for a, b in zip(cuts, cuts[1:])]
                whole = self.attribute(path, *options)
                with self.subTest(method=method, by=by, cuts=cuts):
                    for key in SUMS:
                        self.assertAlmostEqual(sum(p[key] for p in parts), whole[key], places=6, msg=key)
                    for name in ("a", "b", "op", "step"):
                        self.assertAlmostEqual(sum(self.named(p, name) for p in parts), self.named(whole, name), places=6,
                                               msg=name)
                    for p in parts:
                        own = sum(row["energy_self_j"] for row in p["rows"])
                        self.assertAlmostEqual(own + p["idle_j"] + p["other_processes_j"] + p["unattributed_j"],
                                               p["total_j"], places=6)

    def test_all_of_it_is_the_whole(self):
        path = self.recording()
        whole, part = self.attribute(path), self.attribute(path, "--from", "0")
        for key in SUMS + ("total_low_j", "total_high_j"):
            self.assertAlmostEqual(part[key], whole[key], delta=1e-6 * whole["total_j"], msg=key)
        for a, b in zip(whole["rows"], part["rows"]):
            for key in ("name", "calls", "energy_j", "energy_self_j", "low_j", "high_j"):
                self.assertEqual(isinstance(a[key], str) and a[key] or round(a[key], 6),
                                 isinstance(b[key], str) and b[key] or round(b[key], 6), key)

    def test_an_interval_shrinks_less_than_its_energy(self):
        path = self.recording()
        whole = self.attribute(path, "--method", "integrate")
        part = self.attribute(path, "--method", "integrate", "--from", "0.3", "--to", "0.5")
        for doc in (whole, part):
            self.assertLessEqual(doc["total_low_j"], doc["total_j"])
            self.assertGreaterEqual(doc["total_high_j"], doc["total_j"])
        width = [doc["total_high_j"] - doc["total_low_j"] for doc in (whole, part)]
        self.assertGreater(width[1] / part["total_j"], width[0] / whole["total_j"])

    def test_other_outputs_have_the_range_alone(self):
        path, trace = self.recording(), self.path("trace.json")
        done = self.nrg("attribute", "--from", "0.9", "--to", "1.1", "--csv", f"--trace={trace}", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(trace, encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        self.assertTrue(events)
        self.assertTrue(all(e["ts"] <= 0.2e6 and e["ts"] + e["dur"] >= 0 for e in events))
        self.assertLess(len(events), 12)
        total = next(line for line in done.stdout.decode().splitlines() if ",total," in line or line.startswith("total"))
        self.assertIn("3.0", total)

    def test_the_table_says_it(self):
        done = self.nrg("attribute", "--from", "0.5", "--to", "99", self.recording())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0.5 s .. 2 s of the run", done.stdout.decode())

    def test_of_no_energy_there_is_no_interval(self):
        """Layer times alone: 0 J .. 0 J would be an answer."""
        trace = json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": 800} for i in range(20)]})
        path = self.path("trace.nrg")
        done = self.nrg("import", "-q", "-o", path, self.write("trace.json", trace))
        self.assertEqual(done.returncode, 0, done.stderr)
        for options in ((), ("--to", "0.01")):
            doc = self.attribute(path, *options)
            self.assertTrue(doc["rows"])
            self.assertEqual([key for key in doc if key.startswith("total_")], [])

    def test_bad_ranges(self):
        path = self.recording()
        for options, code, text in ((("--from", "1", "--to", "1"), 2, "is not before"),
                                    (("--from", "7"), 1, "lasts 2 s: nothing of it comes after 7 s"),
                                    (("--from", "-1"), 2, "wants seconds"), (("--to", "nan"), 2, "wants seconds"),
                                    (("--by", "cycle", "--to", "1"), 2, "do not go with rows per cycle")):
            done = self.nrg("attribute", *options, path)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr.decode())
            self.assertLessEqual(done.stderr.count(b"\n"), 2, done.stderr)
