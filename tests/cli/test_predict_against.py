"""nrg predict --against: a prediction beside a recording whose joules are known.

The recording's power is constant while a module runs (spans_file.py, which knows nothing of the program), so its
energy per call is watts times seconds. The device is made so that a linear layer costs 1 nJ per MAC: what is
predicted is known too.
"""
import ctypes
import ctypes.util
import json
import sqlite3
import unittest

from spans_file import Spans, power_log
from support import Case

BATCH, WIDE = 1000, 1000
MACS = BATCH * WIDE * WIDE  # of one call: 1 J
GRAPH = f"""graph(%self : __torch__.Net,
      %x : Float({BATCH}, {WIDE}), %w : Float({WIDE}, {WIDE}), %n : int):
  %a : Float({BATCH}, {WIDE}) = aten::linear(%x, %w, %n), scope: __module.fc1
  %b : Float({BATCH}, {WIDE}) = aten::linear(%a, %w, %n), scope: __module.body/__module.body.fc2
  %c : Float({BATCH}, {WIDE}) = aten::linear(%b, %w, %n), scope: __module.body/__module.body.fc2
  %d : Float({BATCH}, {WIDE}) = aten::linear(%c, %w, %n), scope: __module.unseen
  return (%d)
"""


def compressed(data):
    """One zstd frame, by the system's library: nothing of nrg's is used."""
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
    room = zstd.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    size = zstd.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:size]


class Against(Case):
    def profile(self):
        """1 nJ per MAC and nothing else, from three models that differ by some per cent."""
        rows = ["device,model,kind,level,macs,read_bytes,written_bytes,energy_j"]
        for model, factor in (("a", 0.97), ("b", 1.0), ("c", 1.03)):
            for macs in (1e6, 1e7, 1e8, 1e9):
                rows.append(f"box,{model},aten::linear,operator,{macs:.0f},{8e6 + macs / 100:.0f},4000000,{macs * 1e-9 * factor}")
        path = self.path("box.json")
        done = self.nrg("train", "-q", self.write("d.csv", "\n".join(rows) + "\n"), "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def recording(self, spans, powers, graph=None):
        log = self.write("power.log", power_log(powers, 0.01))
        path = self.path("run.nrg")
        done = self.nrg("import", "-q", "-f", "-o", path, log)
        self.assertEqual(done.returncode, 0, done.stderr)
        spans.write(path)
        if graph:
            db = sqlite3.connect(path)
            db.execute("CREATE TABLE IF NOT EXISTS graph(id INTEGER PRIMARY KEY, name TEXT, format TEXT, data BLOB)")
            for name, text in graph:
                db.execute("INSERT INTO graph(name, format, data) VALUES(?, '', ?)", (name, compressed(text.encode())))
            db.commit()
            db.close()
        return path

    def steps(self, backward=True, root="Net"):
        """Four steps of 1 s: fc1 0.1 s at 10 W = 1 J, fc2 twice 0.1 s at 50 W = 5 J each, then what is not compared."""
        spans, powers = Spans(), []
        for i in range(4):
            t = float(i)
            powers += [1] * 8 + [10] * 14 + [50] * 22 + [5] * 14 + [8] * 24 + [1] * 18
            inside = [
                dict(begin_s=t + 0.1, end_s=t + 0.2, text="fc1", kind="module", detail="Linear"),
                dict(begin_s=t + 0.23, end_s=t + 0.43, text="body", kind="module", detail="Body", inside=[
                    (t + 0.23, t + 0.33, "body.fc2", "module", "Linear"),
                    (t + 0.33, t + 0.43, "body.fc2", "module", "Linear")]),
                (t + 0.46, t + 0.56, "extra", "module", "Extra")]
            tail = [dict(begin_s=t + 0.6, end_s=t + 0.8, text="fc1", kind="backward", detail="Linear")] if backward else []
            spans.span(t + 0.05, t + 0.9, "step", "step", number=i, inside=[
                dict(begin_s=t + 0.1, end_s=t + 0.56, text=root, kind="module", detail=root, inside=inside)] + tail)
        return spans, powers + [1]

    def against(self, *args, code=0):
        done = self.nrg("predict", "--profile", self.profile(), "--against", self.path("run.nrg"), *args)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def json(self, *args):
        return json.loads(self.against("--json", *args).stdout)


class Numbers(Against):
    def test_energy_per_call_times_calls(self):
        self.recording(*self.steps(), graph=[("net.txt", GRAPH)])
        got = self.json("--idle", "none")
        rows = {row["name"]: row for row in got["modules"]}
        self.assertEqual(got["measured_provenance"], "derived")  # volts times amperes
        for name, predicted, measured, calls, recorded in (("fc1", 1, 1, 1, 4), ("body", 2, 10, 1, 4), ("body.fc2", 2, 10, 2, 8)):
            row = rows[name]
            self.assertAlmostEqual(row["predicted_j"], predicted, delta=0.02 * predicted)
            self.assertAlmostEqual(row["measured_j"], measured, delta=0.02 * measured, msg=name)
            self.assertEqual((row["calls"], row["recorded_calls"]), (calls, recorded))
            self.assertAlmostEqual(row["error_percent"], 100 * (row["predicted_j"] / row["measured_j"] - 1), places=6)
            self.assertTrue(row["measured_low_j"] <= row["measured_j"] <= row["measured_high_j"])
        self.assertAlmostEqual(rows["body.fc2"]["time_s"], 0.2, delta=0.01)
        self.assertEqual(rows["fc1"]["verdict"], "inside")
        self.assertEqual(rows["body.fc2"]["verdict"], "outside")
        # The whole model: what its modules have, and 60 ms between them.
        self.assertTrue(11.5 < rows[""]["measured_j"] < 13.5)
        self.assertAlmostEqual(rows[""]["predicted_j"], 4, delta=0.08)
        summary = got["summary"]
        self.assertEqual(summary["compared"], summary["inside"] + summary["overlaps"] + summary["outside"])
        self.assertEqual(summary["compared"], 4)
        errors = sorted(abs(row["error_percent"]) for row in got["modules"] if "error_percent" in row)
        self.assertAlmostEqual(summary["mean_error_percent"], sum(errors) / 4, places=6)
        self.assertAlmostEqual(summary["median_error_percent"], (errors[1] + errors[2]) / 2, places=6)

    def test_what_only_one_has_is_named(self):
        self.recording(*self.steps(), graph=[("net.txt", GRAPH)])
        got = self.json()
        self.assertEqual(got["only_in_graph"], ["unseen"])
        self.assertEqual(got["only_in_recording"], ["extra"])
        text = self.against().stdout.decode()
        self.assertIn("1 modules of the graph have no span: unseen", text)
        self.assertIn("1 modules with spans are not in the graph: extra", text)

    def test_backward_is_left_out_and_said(self):
        self.recording(*self.steps(), graph=[("net.txt", GRAPH)])
        got = self.json("--idle", "none")
        self.assertEqual(got["left_out"]["backward_calls"], 4)
        self.assertAlmostEqual(got["left_out"]["backward_j"], 4 * 0.2 * 8, delta=0.1)
        self.assertIn(b"left out", self.against().stdout)
        self.recording(*self.steps(backward=False), graph=[("net.txt", GRAPH)])
        got = self.json()
        self.assertEqual(got["left_out"], {"backward_calls": 0})

    def test_idle_is_named(self):
        self.recording(*self.steps(), graph=[("net.txt", GRAPH)])
        self.assertEqual([self.json(*args)["idle"] for args in ((), ("--idle", "share"))], ["apart", "share"])

    def test_calls_that_differ_are_said(self):
        once = GRAPH.replace("%c : Float(1000, 1000) = aten::linear(%b, %w, %n), scope: __module.body/__module.body.fc2\n", "")
        once = once.replace("(%c, %w", "(%b, %w")
        self.recording(*self.steps(), graph=[("net.txt", once)])
        got = self.json("--idle", "none")
        self.assertEqual(got["summary"]["other_calls"], 1)
        row = next(row for row in got["modules"] if row["name"] == "body.fc2")
        self.assertAlmostEqual(row["measured_j"], 5, delta=0.1)  # of one call


class Graphs(Against):
    def test_given(self):
        self.recording(*self.steps())
        graph = self.write("given.txt", GRAPH)
        self.assertEqual(self.json(graph)["file"], graph)
        self.assertIn("keeps no graph", self.one_line(self.against(code=1).stderr))

    def test_the_one_that_fits(self):
        other = GRAPH.replace("__torch__.Net", "__torch__.Other")
        self.recording(*self.steps(), graph=[("other.txt", other), ("bad.txt", "nonsense"), ("net.txt", GRAPH)])
        self.assertEqual(self.json()["file"], "net.txt")
        self.recording(*self.steps(), graph=[("other.txt", other)])
        self.assertIn("has no module in common", self.one_line(self.against(code=1).stderr))

    def test_a_damaged_table_of_graphs_is_said(self):
        """Each graph that can't be read is named once: a table without its column has no end otherwise."""
        path = self.recording(*self.steps())
        db = sqlite3.connect(path)
        db.execute("DROP TABLE IF EXISTS graph")
        db.execute("CREATE TABLE graph(id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO graph(name) VALUES('net')")
        db.commit()
        db.close()
        self.assertIn("the model in the recording is damaged", self.one_line(self.against(code=1).stderr))
        done = self.nrg("attribute", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(b"the model in the recording is damaged"), 1)

    def test_refusals(self):
        self.recording(*self.steps())
        for args, text in ((("--what-if", "batch=1"), "can't be combined"), (("--for", "3"), "can't be combined"),
                           (("--idle", "some"), "--idle wants")):
            self.assertIn(text, self.one_line(self.against(*args, code=2).stderr))
        done = self.nrg("predict", "x", "--profile", "p", "--idle", "share")
        self.assertEqual(done.returncode, 2)
        self.recording(NoSpans(), [1] * 100)
        self.assertIn("holds no spans", self.one_line(self.against(code=1).stderr))
        self.write("run.nrg", "no recording")
        self.against(code=1)


class NoSpans:
    """No spans at all."""

    def write(self, path):
        pass


if __name__ == "__main__":
    unittest.main()
