"""nrg report --svg: what the pictures show, read back from the SVG. Powers, spans and prices are chosen here."""
import ctypes
import ctypes.util
import json
import math
import os
import sqlite3
import unittest
import xml.etree.ElementTree

from spans_file import Spans, power_log
from test_attribute import MACS, SCRIPT
from web import MadeCase

SVG = "{http://www.w3.org/2000/svg}"
BYTES = 4 * (4 * 8 + 16 * 8 + 16) + 4 * 4 * 16
HOSTILE = ["<script>alert(1)</script>", 'a"b&c', "]]>", "層 😀", "x" * 10240, "tab\tline"]


class Pictures(MadeCase):
    def svg(self, what, path, *options):
        done = self.nrg("report", "--svg", what, *options, path)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return xml.etree.ElementTree.fromstring(done.stdout)

    def texts(self, picture):
        return [text.text for text in picture.iter(SVG + "text")]

    def boxes(self, picture, y):
        return [float(r.get("width")) for r in picture.iter(SVG + "rect") if r.get("y") and float(r.get("y")) == y]

    def test_flame_widths_are_joules(self):
        path = self.steps(self.imported([10] * 200 + [30] * 201), n=10)
        doc = json.loads(self.nrg("attribute", "--json", path).stdout)
        energy = {row["name"]: row["energy_j"] for row in doc["rows"]}
        picture = self.svg("flame", path)
        whole, = self.boxes(picture, 24)
        self.assertAlmostEqual(whole, 1000, delta=1)
        self.assertAlmostEqual(sum(self.boxes(picture, 44)), 1000, delta=4)
        inner = self.boxes(picture, 64)
        self.assertEqual(len(inner), 2)
        for width, name in zip(inner, "ab"):
            self.assertAlmostEqual(width, 1000 * energy[name] / doc["total_j"], delta=1)
        self.assertRegex(self.texts(picture)[0], r"in all 80\.\d+ J \(95 %: .*\), derived, by \w+")

    def heights(self, picture):
        """Of each area: (x, power in units of the tallest) of its upper edge."""
        out = []
        for area in picture.iter(SVG + "polygon"):
            numbers = [float(x) for x in area.get("points").split()]
            points = list(zip(numbers[0::2], numbers[1::2]))
            out.append([(x, 264 - y) for x, y in points[:len(points) // 2]])
        return out

    def test_timeline_is_the_power(self):
        area, = self.heights(self.svg("timeline", self.imported([10] * 200 + [30] * 201)))
        first = [h for x, h in area if x < 500]
        second = [h for x, h in area if x > 560]
        self.assertAlmostEqual(sum(second) / len(second) / (sum(first) / len(first)), 3, delta=0.05)

    def test_gaps_stay_gaps(self):
        lines = power_log([10] * 401).splitlines(keepends=True)
        log, path = self.write("gap.log", "".join(lines[:100] + lines[300:])), self.path("gap.nrg")
        self.assertEqual(self.nrg("import", "-q", "-o", path, log).returncode, 0)
        before, after = self.heights(self.svg("timeline", path))
        self.assertAlmostEqual(before[-1][0], 70 + 920 / 4, delta=8)
        self.assertAlmostEqual(after[0][0], 70 + 920 * 3 / 4, delta=8)

    def test_lanes(self):
        picture = self.svg("timeline", self.steps(self.imported([10] * 401), n=10))
        lanes = {}
        for rect in picture.iter(SVG + "rect"):
            if rect.get("opacity") == "0.90":
                lanes.setdefault(float(rect.get("y")), []).append(float(rect.get("width")))
        self.assertEqual([len(lanes[y]) for y in sorted(lanes)], [10, 20])
        self.assertAlmostEqual(sum(lanes[min(lanes)]), 920, delta=12)

    def graph_recording(self):
        """A module and its operator, ten times 0.1 s, with the model's graph in the recording."""
        path, spans = self.imported([20] * 401), Spans()
        for i in range(10):
            spans.span(0.2 * i, 0.2 * i + 0.1, "fc1", "module", "Linear", inside=[(0.2 * i, 0.2 * i + 0.1, "aten::addmm", "operator")])
        spans.write(path)
        zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        zstd.ZSTD_compress.restype = ctypes.c_size_t
        room = ctypes.create_string_buffer(len(SCRIPT) + 1024)
        n = zstd.ZSTD_compress(room, ctypes.c_size_t(len(room)), SCRIPT.encode(), ctypes.c_size_t(len(SCRIPT)), 3)
        db = sqlite3.connect(path)
        db.execute("INSERT INTO graph(name, format, data) VALUES('net', 'torchscript', ?)", (room.raw[:n],))
        db.commit()
        db.close()
        return path

    def test_roofline(self):
        """Points and line stand in the ratio of their energies: checked on the logarithmic axis, by two prices."""
        path = self.graph_recording()
        row = next(r for r in json.loads(self.nrg("attribute", "--json", path).stdout)["rows"] if r["name"] == "aten::addmm")
        self.assertEqual((row["macs"], row["read_bytes"] + row["written_bytes"]), (MACS, BYTES))
        per_mac = row["energy_self_j"] / (MACS * row["calls"])
        for factor in (1, 0.01):
            price = {"schema": "nrg.calibration/1", "device": "<box>", "provenance": "measured",
                     "points": [{"j_per_mac": per_mac * factor / 2}], "levels": [{"level": "memory", "j_per_byte": per_mac * factor / 2 * MACS / BYTES}]}
            picture = self.svg("roofline", path, "--profile", self.write("here.json", json.dumps(price)))
            point = next(c for c in picture.iter(SVG + "circle") if c.get("fill-opacity") == "0.80")
            numbers = [float(x) for x in next(picture.iter(SVG + "polyline")).get("points").split()]
            x, y = float(point.get("cx")), float(point.get("cy"))
            line = min(zip(numbers[0::2], numbers[1::2]), key=lambda p: abs(p[0] - x))[1]
            decade = self.decade(picture)
            self.assertAlmostEqual((line - y) / decade, -math.log10(factor), delta=0.02)
            self.assertTrue(any("<box> at best (measured" in text for text in self.texts(picture)))

    def test_line_of_a_profile_is_fitted(self):
        """Operators lie on both sides of it: it is not the best."""
        rows = "".join(f"box,m{i},aten::addmm,operator,{macs},{macs // 10 + 999},{macs // 10},{macs * 1e-9 * (1 + i / 50) + 1e-9 * macs / 5}\n"
                       f"box,m{i},aten::relu,operator,0,{macs},{macs},{macs * 2e-9}\n" for i in range(3) for macs in (1000, 10000, 100000))
        data = self.write("d.csv", "device,model,kind,level,macs,read_bytes,written_bytes,energy_j\n" + rows)
        self.assertEqual(self.nrg("train", "-q", data, "-o", self.path("box.json")).returncode, 0)
        texts = self.texts(self.svg("roofline", self.graph_recording(), "--profile", self.path("box.json")))
        self.assertTrue(any(text.startswith("box as fitted (") for text in texts), texts)

    def decade(self, picture):
        """Pixels between two powers of ten of the upright axis, from its labels."""
        at = {}
        for text in picture.iter(SVG + "text"):
            if text.text.endswith(" pJ"):
                at[math.log10(float(text.text[:-3]))] = float(text.get("y"))
        low, high = min(at), max(at)
        return (at[low] - at[high]) / (high - low)

    def test_any_names_and_odd_recordings(self):
        hostile = self.steps(self.imported([10] * 401), names=HOSTILE)
        two, gaps = self.imported([10, 10], name="two.nrg"), self.imported([10] * 3, 30, name="gaps.nrg")
        for path in (hostile, two, gaps):
            for what in ("timeline", "flame"):
                self.assertEqual(self.svg(what, path).tag, SVG + "svg")
        self.assertFalse(list(self.svg("flame", hostile).iter(SVG + "script")))

    def test_bad_use(self):
        path, out = self.imported([10] * 21), self.path("out.svg")
        for options, code, text in (((path, "--svg", "roofline", "-o", out), 1, "no row has energy, MACs and bytes"), ((path, "--svg", "pie"), 2, "timeline"),
                                    ((path, path, "--svg", "flame"), 2, "wants one recording"), ((path, "--svg", "flame", "--html", out), 2, "does not go with"),
                                    ((path, "-o", out), 2, "is for --svg"), ((self.write("bad.nrg", "x"), "--svg", "flame", "-o", out), 1, "bad.nrg"),
                                    ((path, "--profile", out), 2, "is for --html and --svg")):
            done = self.nrg("report", *options)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr.decode())
            self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    unittest.main()
