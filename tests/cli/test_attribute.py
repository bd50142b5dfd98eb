"""nrg attribute from outside: sums, outputs, names that try to break them, bad input.

Recordings are made by spans_file.py, which knows nothing of the program but its documents.
"""
import csv
import ctypes
import ctypes.util
import fcntl
import io
import json
import os
import pty
import random
import re
import sqlite3
import statistics
import struct
import subprocess
import termios
import unittest

from spans_file import BEGIN_NS, Spans, column, power_log
from support import NRG, TOOLS, Case

HOSTILE = ['say "hi"', "a,b", "a;b;c", "<script>alert(1)</script> &amp;", "back\\slash", "line\nbreak", "tab\there",
           "\x1b[31mred", "ünïcødé … 層", "'; DROP TABLE span_name; --", "=1+1", "", " ", "  padded  ", "%s%n%d", "\u2028",
           "x" * 10240, "é" * 5000, "null", "-1"]

SCRIPT = """graph(%self : __torch__.Net,
      %x : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)):
  %w : Float(16, 8, strides=[8, 1], requires_grad=1, device=cpu) = prim::GetAttr[name="weight"](%self), scope: __module.fc1
  %b : Float(16, strides=[1], requires_grad=1, device=cpu) = prim::GetAttr[name="bias"](%self), scope: __module.fc1
  %y : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = aten::linear(%x, %w, %b), scope: __module.fc1
  %z : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = aten::relu(%y), scope: __module.act
  return (%z)
"""
MACS = 4 * 8 * 16


class Attribute(Case):
    def recording(self, spans=None, powers=None, period_s=0.01, name="run.nrg"):
        """By default 2 s: 10 W, then 20 W from 1 s on."""
        log = self.write("power.log", power_log(powers or [10] * 100 + [20] * 101, period_s))
        path = self.path(name)
        done = self.nrg("import", "-q", "-f", "-o", path, log)
        self.assertEqual(done.returncode, 0, done.stderr)
        if spans:
            spans.write(path)
        return path

    def training(self, steps=4):
        spans = Spans()
        for i in range(steps):
            at = 0.1 + 0.4 * i
            spans.span(at, at + 0.35, "step", "step", number=i, counts=[("tokens", 128)], inside=[
                dict(begin_s=at + 0.01, end_s=at + 0.3, text="Net", kind="module", detail="Net", inside=[
                    dict(begin_s=at + 0.02, end_s=at + 0.1, text="fc1", kind="module", detail="Linear",
                         inside=[(at + 0.03, at + 0.09, "aten::addmm", "operator")]),
                    dict(begin_s=at + 0.12, end_s=at + 0.28, text="fc2", kind="module", detail="Linear")])])
        return spans

    def run_attribute(self, *args, code=0, **kw):
        done = self.nrg("attribute", *args, **kw)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return done

    def attribute(self, path, *args):
        return json.loads(self.run_attribute("--json", *args, path).stdout)

    def rows(self, result):
        return {(r["kind"], r["name"]): r for r in result["rows"]}

    def assert_adds_up(self, result, tree=True):
        total = result["total_j"]
        own = sum(r.get("energy_self_j", 0) for r in result["rows"])
        whole = own + result["unattributed_j"] + result.get("idle_j", 0) + result.get("other_processes_j", 0)
        self.assertAlmostEqual(whole, total, delta=1e-9 * abs(total) + 1e-9)
        for d in result["domains"] if tree else ():
            part = sum(r["domains"].get(d["name"], 0) for r in result["rows"] if "parent" not in r and "domains" in r)
            part += d["unattributed_j"] + d.get("idle_j", 0) + d.get("other_processes_j", 0)
            self.assertAlmostEqual(part, d["total_j"], delta=1e-9 * abs(total) + 1e-9)


class Numbers(Attribute):
    def test_tree(self):
        result = self.attribute(self.recording(self.training()), "--method", "integrate")
        rows = self.rows(result)
        self.assertEqual(result["schema"], "nrg.attribute/1")
        self.assert_adds_up(result)
        # Steps last 0.35 s from 0.1 s on, each 0.4 s; the ramp from 10 to 20 W lasts from 0.99 to 1 s.
        self.assertAlmostEqual(rows["step", "step"]["energy_j"], 0.75 * 10 - 0.1 * 10 + 0.3 * 20 + 0.35 * 20 + 0.05,
                               delta=0.6)
        self.assertAlmostEqual(result["total_j"], 0.99 * 10 + 0.01 * 15 + 20, delta=1e-6)
        self.assertEqual(rows["step", "step"]["calls"], 4)
        self.assertEqual(rows["step", "step"]["counts"], {"tokens": 512})
        self.assertAlmostEqual(rows["module", "fc1"]["time_s"], 0.32, delta=1e-9)
        self.assertAlmostEqual(rows["module", "fc2"]["energy_j"], 0.16 * (10 + 10 + 20 + 20), delta=1e-6)
        by_id = {r["id"]: r for r in result["rows"]}
        for row in result["rows"]:
            inside = [r for r in result["rows"] if r.get("parent") == row["id"]]
            self.assertAlmostEqual(row["energy_j"], row["energy_self_j"] + sum(r["energy_j"] for r in inside), delta=1e-9)
            self.assertAlmostEqual(row["energy_per_call_j"], row["energy_j"] / row["calls"], delta=1e-9)
            self.assertIn(row.get("parent", 0), by_id)
            self.assertLessEqual(row["low_j"], row["energy_j"] + 1e-12)
            self.assertGreaterEqual(row["high_j"], row["energy_j"] - 1e-12)
        per = {p["name"]: p for p in result["per"]}
        self.assertAlmostEqual(per["step"]["energy_per_unit_j"], rows["step", "step"]["energy_j"] / 4)
        self.assertAlmostEqual(per["tokens"]["energy_per_unit_j"], rows["step", "step"]["energy_j"] / 512)

    def test_all_views_add_up(self):
        path = self.recording(self.training())
        for by in ("path", "module", "name", "operator", "step", "epoch", "cycle"):
            for method in ("auto", "integrate", "nearest", "window", "regress"):
                with self.subTest(by=by, method=method):
                    result = self.attribute(path, "--by", by, "--method", method)
                    self.assert_adds_up(result, tree=by not in ("name", "operator"))
                    for row in result["rows"] if method not in ("nearest", "window") else ():
                        self.assertLessEqual(row.get("energy_j", 0), result["total_j"] * (1 + 1e-9), row)
                        self.assertLessEqual(row.get("high_j", 0), result["total_high_j"] * (1 + 1e-9), row)
        for idle in ("apart", "share", "none"):
            with self.subTest(idle=idle):
                result = self.attribute(path, "--idle", idle, "--idle-power", "4")
                self.assert_adds_up(result)
                self.assertEqual(result["idle"], idle)

    def test_by_step(self):
        result = self.attribute(self.recording(self.training()), "--by", "step", "--method", "integrate")
        steps = {r["number"]: r for r in result["rows"] if r["kind"] == "step"}
        self.assertEqual(sorted(steps), [0, 1, 2, 3])
        self.assertAlmostEqual(steps[0]["energy_j"], 3.5, delta=1e-6)
        self.assertAlmostEqual(steps[3]["energy_j"], 7.0, delta=1e-6)

    def test_modules_have_their_full_and_their_short_name(self):
        spans = Spans()
        spans.span(0.1, 0.4, "Net", "module", detail="Net", inside=[
            dict(begin_s=0.2, end_s=0.3, text="layers.0.fc", kind="module", detail="Linear",
                 inside=[(0.21, 0.22, "aten::addmm", "operator")])])
        spans.span(0.5, 0.8, "Net", "backward", detail="Net", inside=[(0.6, 0.7, "layers.0.fc", "backward")])
        spans.span(0.9, 1.2, "Other", "module", detail="Other", inside=[(1.0, 1.1, "Other.fc", "module")])
        spans.span(1.3, 1.6, "DataParallel", "module", detail="DataParallel", inside=[
            dict(begin_s=1.4, end_s=1.5, text="Net", kind="module", detail="Net")])
        path = self.recording(spans)
        for by in ("path", "name", "module"):
            with self.subTest(by=by):
                rows = self.attribute(path, "--by", by, "--method", "integrate")["rows"]
                names = {r["name"]: (r["full_name"], r["short_name"]) for r in rows if "full_name" in r}
                self.assertEqual(names["layers.0.fc"], ("Net.layers.0.fc", "fc"))
                self.assertEqual(names["Other.fc"], ("Other.fc", "fc"))
                self.assertEqual(names["Net"], ("Net", "Net"))
                self.assertNotIn("aten::addmm", names)

    def test_joules_per_sample_are_per_phase(self):
        """10 W and then 20 W: what training cost is not what evaluation did."""
        spans = Spans()
        spans.span(0.1, 0.5, "epoch", "epoch", number=1, counts=[("samples", 40)])
        spans.span(1.2, 1.4, "evaluation", "phase", number=1, counts=[("samples", 10)])
        path = self.recording(spans)
        per = {p["of"]: p for p in self.attribute(path, "--method", "integrate")["per"] if p["name"] == "samples"}
        self.assertAlmostEqual(per["epoch"]["energy_per_unit_j"], 0.1, delta=1e-6)
        self.assertAlmostEqual(per["evaluation"]["energy_per_unit_j"], 0.4, delta=1e-6)
        text = self.run_attribute(path).stdout.decode()
        self.assertIn("samples of epoch", text)
        self.assertIn("samples of evaluation", text)

    def test_first_steps_are_apart(self):
        spans = Spans()
        spans.span(0.1, 0.7, "step", "step", number=1)
        for i in range(6):
            spans.span(1.1 + 0.1 * i, 1.15 + 0.1 * i, "step", "step", number=2 + i)
        path = self.recording(spans)
        (step,) = self.attribute(path, "--method", "integrate")["per"]
        self.assertEqual((step["first"]["amount"], step["steady"]["amount"]), (1, 6))
        self.assertAlmostEqual(step["first"]["energy_per_unit_j"], 6, delta=1e-6)
        self.assertAlmostEqual(step["median_j"], 1, delta=1e-6)
        (step,) = self.attribute(path, "--method", "integrate", "--skip", "3")["per"]
        self.assertEqual((step["first"]["amount"], step["first"]["rule"]), (3, "given"))
        text = self.run_attribute("--method", "integrate", path).stdout.decode()
        self.assertRegex(text, r"step: median 1\d\d\d\S* m?J, middle half \S+ m?J .. \S+ m?J of 6\n|step: median 1.000 J, ")
        self.assertIn("  first 1 apart (longer than twice the median): 6.000 J each", text)

    def test_by_operator_keeps_the_sum(self):
        result = self.attribute(self.recording(self.training()), "--by", "operator")
        self.assertEqual({r["kind"] for r in result["rows"]}, {"operator", "rest"})
        energies = [r["energy_j"] for r in result["rows"]]
        self.assertEqual(energies, sorted(energies, reverse=True))
        self.assert_adds_up(result, tree=False)

    def test_confidence_widens(self):
        path = self.recording(self.training())
        widths = []
        for percent in ("80", "95", "99"):
            result = self.attribute(path, "--confidence", percent)
            self.assertAlmostEqual(result["confidence"], float(percent) / 100)
            widths.append(sum(r["high_j"] - r["low_j"] for r in result["rows"]))
        self.assertEqual(widths, sorted(widths))

    def test_domain_that_is_not_there(self):
        done = self.run_attribute("--domain", "gpu-7", self.recording(self.training()), code=1)
        self.assertIn("gpu-7", self.one_line(done.stderr))


class Outputs(Attribute):
    def test_csv_says_what_json_says(self):
        path = self.recording(self.training())
        result = self.attribute(path)
        table = list(csv.DictReader(io.StringIO(self.run_attribute("--csv", path).stdout.decode())))
        self.assertEqual([r["kind"] for r in table[-4:]], ["total", "idle", "other", "unattributed"])
        self.assertAlmostEqual(float(table[-1]["energy_j"]), result["unattributed_j"])
        for row, cells in zip(result["rows"], table):
            self.assertEqual(cells["name"], row["name"])
            self.assertEqual(cells["id"], str(row["id"]))
            self.assertEqual(cells["parent"], str(row.get("parent", "")))
            self.assertAlmostEqual(float(cells["energy_j"]), row["energy_j"])
            self.assertAlmostEqual(float(cells["energy_j:VDD_IN"]), row["domains"]["VDD_IN"])
        self.assertEqual(table[0]["count:tokens"], "512")

    def test_folded_is_the_total(self):
        path = self.recording(self.training())
        lines = self.run_attribute("--folded", path).stdout.decode().splitlines()
        stacks = dict(line.rsplit(" ", 1) for line in lines)
        total = sum(map(int, stacks.values()))
        self.assertAlmostEqual(total, self.attribute(path)["total_j"] * 1e6, delta=len(lines))
        self.assertIn("step;Net;fc1;aten::addmm", stacks)
        self.assertIn("(unattributed)", stacks)

    def test_trace(self):
        spans = self.training()
        spans.event(0.5, "mark", spans.name("checkpoint", "mark"))
        path = self.recording(spans)
        events = json.loads(self.run_attribute("--trace", path).stdout)["traceEvents"]
        complete = [e for e in events if e["ph"] == "X"]
        self.assertEqual(len(complete), 20)
        first = [e for e in complete if e["name"] == "step" and e["args"]["number"] == 0][0]
        self.assertAlmostEqual(first["ts"], 100000, delta=1e-3)
        self.assertAlmostEqual(first["dur"], 350000, delta=1e-3)
        power = [e for e in events if e["ph"] == "C" and e["name"] == "VDD_IN"]
        self.assertEqual([round(e["args"]["W"]) for e in power], [10] * 100 + [20] * 101)
        tokens = [e["args"]["sum"] for e in events if e["ph"] == "C" and e["name"] == "tokens"]
        self.assertEqual(sorted(tokens), [128, 256, 384, 512])
        self.assertEqual([e["name"] for e in events if e["ph"] == "i"], ["checkpoint"])

    def test_trace_of_a_counter(self):
        scenario = self.scenario("seed 1\ndomain package-0\n  power 30\n")
        path = self.path("sim.nrg")
        done = self.nrg("run", "-q", "--sensor", "simulate:" + scenario, "-o", path, "--", "sleep", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        begin = sqlite3.connect(path).execute("SELECT begin_ns FROM run").fetchone()[0]
        spans = Spans()
        at = (begin - BEGIN_NS) / 1e9
        spans.span(at + 0.1, at + 0.3, "work")
        spans.write(path)
        events = json.loads(self.run_attribute("--trace", path).stdout)["traceEvents"]
        power = [e["args"]["W"] for e in events if e["ph"] == "C"]
        self.assertGreater(len(power), 2)
        self.assertAlmostEqual(statistics.median(power), 30, delta=1)

    def test_trace_limit(self):
        path = self.recording(self.training())
        done = self.run_attribute("--trace", "--trace-limit", "5", path)
        events = json.loads(done.stdout)["traceEvents"]
        self.assertEqual(len([e for e in events if e["ph"] == "X"]), 5)
        self.assertIn("15 more", done.stderr.decode())

    def test_files(self):
        path = self.recording(self.training())
        names = {kind: self.path("out." + kind) for kind in ("json", "csv", "folded", "trace")}
        done = self.run_attribute(*(f"--{kind}={name}" for kind, name in names.items()), path)
        self.assertIn(b"unattributed", done.stdout)  # the table is there too
        for name in names.values():
            self.assertGreater(os.path.getsize(name), 100)
        self.run_attribute("--json=/nonexistent/x.json", path, code=1)

    def table(self, path, *args, **env):
        done = self.run_attribute(*args, path, env=self.env(**env))
        text = done.stdout.decode()
        body = text[text.index("SPAN"):].split("\n\n")[0].rstrip("\n").split("\n")
        return text, body

    def test_table_last_row_is_unattributed(self):
        _, body = self.table(self.recording(self.training()), LC_ALL="C.UTF-8")
        self.assertTrue(body[1].startswith("total"))
        self.assertTrue(body[-1].strip().startswith("unattributed"))

    def test_table_fits(self):
        spans = Spans()
        for i, name in enumerate(HOSTILE):
            spans.span(0.05 * i, 0.05 * i + 0.04, name, "module", "A" * 120)
        path = self.recording(spans)
        for columns in (60, 80, 120):
            for locale in ("C", "C.UTF-8"):
                text, body = self.table(path, "--top", "all", COLUMNS=str(columns), LC_ALL=locale)
                for line in body:
                    self.assertLessEqual(len(line), columns, line)
                    self.assertEqual(line, line.rstrip())
                if locale == "C":
                    text.encode("ascii")
                self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f]")

    def test_no_colour_and_no_limit_where_there_is_no_terminal(self):
        text, _ = self.table(self.recording(self.training()), LC_ALL="C.UTF-8")
        self.assertNotIn("\x1b", text)

    def test_on_a_terminal(self):
        """Colour, and lines that fit its width."""
        path = self.recording(self.training())
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
        process = self.start("attribute", path, stdout=other, env=self.env(LC_ALL="C.UTF-8", TERM="xterm", NO_COLOR=""))
        os.close(other)
        text = b""
        while True:
            try:
                more = os.read(main, 65536)
            except OSError:  # the terminal's end
                break
            if not more:
                break
            text += more
        os.close(main)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        plain = re.sub("\x1b\\[[0-9;]*m", "", text.decode()).replace("\r\n", "\n")
        body = plain[plain.index("SPAN"):].split("\n\n")[0].split("\n")
        self.assertGreater(len(body), 5)
        for line in body:
            self.assertLessEqual(len(line), 90)

    def test_report_points_here(self):
        path = self.recording(self.training())
        self.assertIn(b"nrg attribute", self.nrg("report", path).stdout)
        self.assertNotIn(b"nrg attribute", self.nrg("report", self.recording(name="plain.nrg")).stdout)

    def test_folding(self):
        spans = Spans()
        for i in range(60):
            spans.span(0.03 * i, 0.03 * i + 0.02, f"part{i}")
        path = self.recording(spans)
        text, body = self.table(path, LC_ALL="C.UTF-8")
        self.assertEqual(len([line for line in body if "part" in line]), 40)
        self.assertTrue(any("… 20 more" in line for line in body), body)
        _, body = self.table(path, "--top", "3", LC_ALL="C")
        self.assertTrue(any("... 57 more" in line for line in body), body)
        for every in ("0", "all"):
            _, body = self.table(path, "--top", every)
            self.assertEqual(len([line for line in body if "part" in line]), 60)
        _, body = self.table(path, "--min-share", "50")
        self.assertEqual([line for line in body if "part" in line], [])


def as_cell(text):
    """What a CSV says of a text: formulas of spreadsheets have an apostrophe before them, numbers have not."""
    if not text.lstrip("'").startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
        return text
    except ValueError:
        return "'" + text


class Hostile(Attribute):
    """Whatever names hold, every output can be read back."""

    def check(self, spans, n_spans):
        path = self.recording(spans)
        result = self.attribute(path, "--method", "integrate")
        self.assert_adds_up(result)
        table = list(csv.DictReader(io.StringIO(self.run_attribute("--csv", path).stdout.decode(), newline="")))
        self.assertEqual([r["name"] for r in table[:-4]], [as_cell(r["name"]) for r in result["rows"]])
        self.assertEqual([r["detail"] for r in table[:-4]], [as_cell(r.get("detail", "")) for r in result["rows"]])
        for cells in table:
            self.assertNotIn(None, cells)
            self.assertNotIn(None, cells.values())
        folded = self.run_attribute("--folded", path).stdout.decode()
        for line in filter(None, folded.split("\n")):
            self.assertRegex(line, r"^[^;]+(;[^;]+)* [1-9][0-9]*$")
        events = json.loads(self.run_attribute("--trace", path).stdout)["traceEvents"]
        self.assertEqual(len([e for e in events if e["ph"] == "X"]), n_spans)
        for locale in ("C", "C.UTF-8"):
            text = self.run_attribute("--top", "all", path, env=self.env(LC_ALL=locale)).stdout.decode()
            self.assertNotIn("\x1b", text)
        return result

    def test_names(self):
        spans = Spans()
        for i, name in enumerate(HOSTILE):
            spans.span(0.05 * i, 0.05 * i + 0.04, name, "span", name[:100])
        names = {r["name"] for r in self.check(spans, len(HOSTILE))["rows"]}
        for name in ('say "hi"', "a,b", "a;b;c", "<script>alert(1)</script> &amp;", "x" * 10240):
            self.assertIn(name, names)

    def test_random_trees(self):
        rng = random.Random(20250128)
        alphabet = list("ab;,\"'\\<>&\n\r\t\0é層😀 =+-@%{}[]") + ["\ud7ff", "\u202e"]
        kinds = ["span", "module", "backward", "step", "operator", "layer", "weird kind", ""]

        def grow(spans, begin, end, depth):
            made, at = 0, begin
            while at < end and made < 12:
                length = rng.uniform(0, (end - begin) / 2)
                stop = min(at + length, end)
                name = "".join(rng.choice(alphabet) for _ in range(rng.randrange(12)))
                ident = spans.name(name, rng.choice(kinds), name[::-1])
                spans.event(at, "begin", ident, rng.choice([None, 0, 7, -5, 2**62]))
                made += 1
                if depth < 4 and rng.random() < 0.6:
                    made += grow(spans, at, stop, depth + 1)
                spans.event(stop, "end", rng.choice([ident, None]))
                at = stop + rng.uniform(0, 0.05)
            return made

        for _ in range(12):
            spans = Spans()
            made = grow(spans, 0, 2, 0)
            self.check(spans, made)


class Graph(Attribute):
    def check_joined(self, result):
        rows = self.rows(result)
        for key in (("module", "Net"), ("module", "fc1"), ("operator", "aten::addmm")):
            self.assertEqual(rows[key]["macs"], MACS, key)
            per_mac = rows[key]["energy_j"] / (MACS * rows[key]["calls"]) * 1e12
            self.assertAlmostEqual(rows[key]["pj_per_mac"], per_mac, delta=1e-6 * per_mac)
        self.assertNotIn("macs", rows["module", "fc2"])
        moved = rows["operator", "aten::addmm"]
        self.assertEqual(moved["read_bytes"], 4 * (4 * 8 + 16 * 8 + 16))
        self.assertEqual(moved["written_bytes"], 4 * 4 * 16)

    def test_given(self):
        model = self.write("net.txt", SCRIPT)
        self.check_joined(self.attribute(self.recording(self.training()), "--graph", model))

    def test_in_the_recording(self):
        path = self.recording(self.training())
        zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        zstd.ZSTD_compress.restype = ctypes.c_size_t
        room = ctypes.create_string_buffer(len(SCRIPT) + 1024)
        n = zstd.ZSTD_compress(room, ctypes.c_size_t(len(room)), SCRIPT.encode(), ctypes.c_size_t(len(SCRIPT)), 3)
        db = sqlite3.connect(path)
        db.execute("INSERT INTO graph(name, format, data) VALUES('net', 'torchscript', ?)", (room.raw[:n],))
        db.commit()
        db.close()
        result = self.attribute(path)
        self.check_joined(result)
        self.assertTrue([n for n in result["notes"] if n["what"] == "net"])

    def test_damaged_in_the_recording(self):
        path = self.recording(self.training())
        db = sqlite3.connect(path)
        db.execute("INSERT INTO graph(name, format, data) VALUES('net', 'torchscript', ?)", (b"no frame",))
        db.commit()
        db.close()
        result = self.attribute(path)
        self.assertNotIn("macs", self.rows(result)["module", "fc1"])
        self.assertTrue([n for n in result["notes"] if "damaged" in n["why"]])

    def test_backward_is_not_counted(self):
        spans = self.training()
        spans.span(1.75, 1.9, "fc1", "backward", "Linear", inside=[(1.76, 1.8, "aten::addmm", "operator")])
        model = self.write("net.txt", SCRIPT)
        result = self.attribute(self.recording(spans), "--graph", model)
        self.assertNotIn("macs", self.rows(result)["backward", "fc1"])
        inside = [r for r in result["rows"] if r["kind"] == "operator" and "macs" not in r]
        self.assertEqual(len(inside), 1)
        by_module = self.attribute(self.path("run.nrg"), "--graph", model, "--by", "module")
        self.assertFalse([r for r in by_module["rows"] if r["kind"] == "module" and "macs" in r])

    def test_not_a_model(self):
        path = self.recording(self.training())
        done = self.run_attribute("--graph", self.write("x", "nonsense"), path, code=1)
        self.one_line(done.stderr)


class Estimated(Attribute):
    """Without a sensor: the estimate is a model of CPU time, and is shared out by it."""

    def test_by_cpu_time(self):
        path = self.path("run.nrg")
        done = self.nrg("run", "-q", "--sensor", "estimate", "--sensor", "machine", "-o", path, "--",
                        os.path.join(TOOLS, "span-maker"), "busy", "600")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.attribute(path)
        self.assert_adds_up(result)
        self.assertEqual(result["method"], "cpu-time")
        self.assertIn("model of CPU time", result["domains"][0]["why"])
        busy, asleep = (next(r for r in result["rows"] if r["name"] == name) for name in ("busy", "asleep"))
        self.assertGreater(busy["energy_j"], asleep["energy_j"])
        self.assertEqual((busy["provenance"], busy["flags"]), ("estimated", []))
        scale = result["scale"]
        self.assertEqual(scale["domains"], ["machine"])
        for row in (busy, asleep):
            order = [row[key] for key in ("low_with_scale_j", "low_j", "energy_j", "high_j", "high_with_scale_j")]
            self.assertEqual(order, sorted(order))
            self.assertAlmostEqual(row["low_with_scale_j"], row["low_j"] * scale["low"])
            self.assertAlmostEqual(row["high_with_scale_j"], row["high_j"] * scale["high"])
        self.assertAlmostEqual(result["total_low_j"], result["total_j"] * scale["low"])
        table = self.run_attribute(path, env=self.env(LC_ALL="C.UTF-8")).stdout.decode()
        self.assertEqual(table.count("estimated"), 1, "said once, in the head: " + table)
        self.assertIn("every energy here times %.2f .. %.2f: the estimate's scale, common to all rows" %
                      (scale["low"], scale["high"]), table)
        rows = {r["name"]: r for r in csv.DictReader(io.StringIO(self.run_attribute(path, "--csv").stdout.decode()))}
        for key in ("low_j", "high_j", "low_with_scale_j", "high_with_scale_j"):
            self.assertAlmostEqual(float(rows["busy"][key]), busy[key], places=6)
        self.assertAlmostEqual(float(rows["total"]["low_with_scale_j"]), result["total_low_j"], places=6)
        self.assertEqual(self.attribute(path, "--method", "cpu-time")["rows"], result["rows"])

    def test_a_sensor_is_refused(self):
        done = self.run_attribute("--method", "cpu-time", self.recording(self.training()), code=1)
        self.assertIn("use integrate or regress", self.one_line(done.stderr))


class Width(Attribute):
    def test_fits_a_terminal(self):
        """In 80 columns all lines, and a micro sign where the locale has one."""
        path = self.recording(self.training(), powers=[1e-4] * 201)
        for locale, unit in (("C.UTF-8", "µJ"), ("C", "uJ")):
            text = self.run_attribute(path, env=self.env(COLUMNS="80", LC_ALL=locale)).stdout.decode()
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 80, text)
            self.assertRegex(text, rf"fc2 .* {unit}\b")


class BadInput(Attribute):
    def test_no_spans(self):
        done = self.run_attribute(self.recording(), code=1)
        line = self.one_line(done.stderr)
        for word in ("holds no spans", "nrg run --torch", "nrg.h", "nrg import"):
            self.assertIn(word, line)

    def test_seconds_need_no_spans(self):
        """README's `nrg attribute --from 1.5 --to 4` of any recording: 0.5 s at 10 W, 0.5 s at 20 W."""
        result = self.attribute(self.recording(), "--from", "0.5", "--to", "1.5")
        self.assertAlmostEqual(result["total_j"], 15, delta=0.1)
        self.assertEqual((result["rows"], result["spans"]), ([], 0))
        self.assertAlmostEqual(sum(result.get(key) or 0 for key in ("unattributed_j", "idle_j", "other_processes_j")), result["total_j"], places=6)

    def test_wrong_words(self):
        path = self.recording(self.training())
        for args in (["--method", "magic"], ["--idle", "maybe"], ["--by", "colour"], ["--lag", "soon"], ["--lag", "-1"],
                     ["--top", "-1"], ["--top", "1.5"], ["--min-share", "101"], ["--confidence", "100"],
                     ["--confidence", "-3"], ["--idle-power", "-1"], ["--json", "--csv"], ["--offset", "x"],
                     ["--timezone-offset", "99"], ["--layout", "odd"]):
            with self.subTest(args=args):
                done = self.run_attribute(*args, path, code=2)
                self.one_line(done.stderr)
        self.run_attribute(code=2)
        self.run_attribute(path, path, code=2)
        self.run_attribute("--power-log", "x", code=2)
        self.run_attribute("--layers", "x", path, code=2)

    def test_no_such_file(self):
        self.one_line(self.run_attribute("/nonexistent.nrg", code=1).stderr)
        self.one_line(self.run_attribute("--idle-power", "/nonexistent.json", self.recording(self.training()),
                                         code=1).stderr)
        self.one_line(self.run_attribute(self.write("not.nrg", "hello"), code=1).stderr)

    def test_unclosed_zero_length_and_unmatched(self):
        spans = Spans()
        spans.event(0.1, "end")
        spans.span(0.2, 0.2, "nothing")
        spans.span(0.3, None, "open", inside=[(0.4, 0.5, "inner")])
        result = self.attribute(self.recording(spans), "--method", "integrate")
        rows = self.rows(result)
        self.assert_adds_up(result)
        self.assertIn("not closed", rows["span", "open"]["flags"])
        self.assertEqual(result["unclosed"], 1)
        self.assertEqual(result["unmatched_ends"], 1)
        self.assertEqual(rows["span", "nothing"]["time_s"], 0)
        events = json.loads(self.run_attribute("--trace", self.path("run.nrg")).stdout)["traceEvents"]
        self.assertEqual([e["args"] for e in events if e["ph"] == "X" and e["name"] == "open"], [{"closed": False}])

    def test_spans_outside_of_the_readings(self):
        spans = Spans()
        spans.span(-50, -49, "earlier")
        spans.span(0.5, 0.6, "inside")
        spans.span(100, 101, "later")
        result = self.attribute(self.recording(spans), "--method", "integrate")
        rows = self.rows(result)
        self.assert_adds_up(result)
        self.assertAlmostEqual(rows["span", "inside"]["energy_j"], 1.0, delta=1e-6)
        for name in ("later", "earlier"):
            row = rows.get(("span", name))
            self.assertTrue(row is None or row.get("energy_j", 0) == 0 or "not covered" in row["flags"], row)

    def test_paths_that_no_span_is_at(self):
        path = self.recording(self.training())
        db = sqlite3.connect(path)
        db.executemany("INSERT INTO span_path(id, parent, name) VALUES(?, ?, ?)",
                       [(i, i // 2, 1 + i % 5) for i in range(1, 400)])
        db.commit()
        db.close()
        for method in ("integrate", "nearest", "window", "regress"):
            for by in ("path", "module", "step"):
                self.assert_adds_up(self.attribute(path, "--method", method, "--by", by), tree=by == "path")

    def test_modules_that_call_each_other(self):
        spans = Spans()
        for at, outer, inner in ((0.1, "A", "B"), (0.5, "B", "A"), (0.9, "A", "B")):
            spans.span(at, at + 0.3, outer, "module", inside=[(at + 0.1, at + 0.2, inner, "module")])
        result = self.attribute(self.recording(spans), "--by", "module", "--method", "integrate")
        self.assert_adds_up(result)
        self.assertEqual({name: row["calls"] for (_, name), row in self.rows(result).items()}, {"A": 3, "B": 3})

    def test_a_step_without_its_modules_says_so(self):
        """By module, a step has what is its own; joules per step are of all that is inside."""
        spans = Spans()
        for i in range(3):
            spans.span(i + 0.1, i + 0.9, "step", "step", inside=[(i + 0.3, i + 0.7, "net", "module")])
        spans.span(3.1, 3.4, "load", "phase")
        path = self.recording(spans)
        by_module = self.attribute(path, "--by", "module", "--method", "integrate")
        by_path = self.attribute(path, "--method", "integrate")
        step = self.rows(by_module)["step", "step"]
        self.assertEqual(step["detail"], "without its modules")
        self.assertLess(step["energy_j"], by_module["per"][0]["energy_j"] * 0.7)
        self.assertAlmostEqual(by_module["per"][0]["energy_j"], self.rows(by_path)["step", "step"]["energy_j"])
        self.assertNotIn("detail", self.rows(by_path)["step", "step"])
        self.assertNotIn("detail", self.rows(by_module)["phase", "load"])

    def test_one_reading(self):
        spans = Spans()
        spans.span(-0.1, 0.1, "work")
        path = self.recording(spans, powers=[10])
        for method in ("auto", "integrate", "nearest", "window", "regress"):
            done = self.nrg("attribute", "--json", "--method", method, path)
            if done.returncode:
                self.one_line(done.stderr)
            else:
                result = json.loads(done.stdout)
                for row in result["rows"]:
                    self.assertNotIn("NaN", json.dumps(row))

    def test_one_absurd_reading_among_missing_ones(self):
        spans = self.training()
        device = spans.track("gpu", "device", domain="VDD_IN")
        for i in range(8):
            spans.span(0.3 + 0.4 * i, 0.35 + 0.4 * i, "kernel", "layer", track=device)
        path = self.recording(spans, powers=[10, 30] * 200)
        db = sqlite3.connect(path)
        series, columns = db.execute("SELECT id, n_columns FROM series WHERE kind = 'samples'").fetchone()
        data = column([1925084719, 338406160, 3124926642]) + column([10**18, None, None]) * columns
        db.execute("UPDATE chunk SET data = ?, n = 3 WHERE series = ?", (data, series))
        db.commit()
        db.close()
        for method in ("auto", "integrate", "nearest", "window", "regress"):
            done = self.nrg("attribute", "--json", "--method", method, path)
            self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_killed_in_the_middle(self):
        path = self.recording(self.training())
        with open(path, "rb") as whole:
            data = whole.read()
        for cut in (len(data) // 2, len(data) - 4096, 100):
            done = self.nrg("attribute", self.write("cut.nrg", data[:cut]))
            self.assertIn(done.returncode, (0, 1))

    def test_nobody_reads(self):
        path = self.recording(self.training())
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([NRG, "attribute", "--json", path], stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
