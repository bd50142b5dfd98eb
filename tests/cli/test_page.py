"""nrg report --html and nrg view: what is inside the page, and what a real browser makes of it.

The data of a page is read here by code of its own, from docs/page.md and src/report/page/internal.h. The browser (Debian's
Chromium through playwright-core) is used where node, the npm registry and Chromium can be had; else that part is skipped and
says why. web/test/browser.mjs looks, this file judges.
"""
import array
import base64
import contextlib
import gzip
import json
import math
import os
import random
import re
import sqlite3
import struct
import subprocess
import unittest
import xml.etree.ElementTree

from spans_file import Spans
from test_predict_against import GRAPH, Against
from web import CHROMIUM, WEB, MadeCase, node_problem

KINDS = {"f8": "d", "f4": "f", "u4": "I", "i4": "i", "u1": "B"}
HOSTILE = ["</script><script>alert(1)</script>", "<!--", "<img src=x onerror=alert(1)>", '" onmouseover="alert(1)', "'; --", "\u202eright to left",
           "😀 層", "x" * 10240, "=1+1", "]]>", "&lt;b&gt;", "\u2028", "${alert(1)}", "<!--nrg-data-->"]


def blobs(page):
    """Head and arrays of each recording in a page."""
    out = []
    for text in re.findall(r'<script type="application/octet-stream" class="nrg-run">([A-Za-z0-9+/=]*)</script>', page):
        data = gzip.decompress(base64.b64decode(text))
        size = struct.unpack_from("<I", data)[0]
        head, at, arrays = json.loads(data[8:8 + size]), (8 + size + 7) // 8 * 8, {}
        for name, kind, n in head["arrays"]:
            arrays[name] = array.array(KINDS[kind])
            arrays[name].frombytes(data[at:at + n * int(kind[1])])
            at = (at + n * int(kind[1]) + 7) // 8 * 8
        assert at == len(data)
        out.append((head, arrays))
    return out


class PageCase(MadeCase):
    def page(self, *recordings, options=()):
        path = recordings[0] + ".html"
        done = self.nrg("report", *options, "-q", "--html", path, *recordings)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(path, encoding="utf-8") as file:
            return path, file.read()

    def recordings(self):
        """Of several kinds: two levels of power, a noisy one, gaps, many rows, an estimate."""
        rng = random.Random(4)
        done = self.nrg("run", "-q", "-f", "-o", self.path("estimate.nrg"), "--sensor", "estimate", "--cpu-watts", "20:90", "--rate", "50", "--", "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [self.path("estimate.nrg"), self.steps(self.imported([10] * 100 + [20] * 101, name="levels.nrg")),
                self.steps(self.imported([rng.uniform(5, 50) for _ in range(401)], name="noise.nrg"), n=10),
                self.steps(self.imported([30] * 21, 0.1, name="slow.nrg")),
                self.steps(self.imported([5 + i % 7 for i in range(1001)], 0.02, name="long.nrg"), names=[f"m{i}" for i in range(40)], n=12, length=1.6)]


class Data(PageCase):
    def test_rows_and_buckets_are_the_attribution(self):
        path = self.steps(self.imported([10] * 100 + [20] * 101))
        (head, a), = blobs(self.page(path)[1])
        doc = json.loads(self.nrg("attribute", "--json", path).stdout)
        self.assertEqual(head["schema"], "nrg.page/1")
        self.assertEqual([head["strings"][i] for i in a["row_name"]], [row["name"] for row in doc["rows"]])
        for i, row in enumerate(doc["rows"]):
            self.assertAlmostEqual(a["row_energy_j"][i], row["energy_j"], places=8)
            own = a["entry_j"][a["row_first"][i]:a["row_first"][i + 1]]
            self.assertAlmostEqual(sum(own), row["energy_self_j"], delta=1e-5)
            self.assertEqual(sum(a["entry_calls"][a["row_first"][i]:a["row_first"][i + 1]]), row["calls"])
        self.assertAlmostEqual(sum(a["domain_buckets"][0::6]), doc["total_j"], places=8)
        self.assertEqual(len(a["span_row"]), doc["spans"])
        self.assertEqual(head["buckets"]["duration_ns"], 2 * 10**9)

    def test_what_is_divided_by_what(self):
        """A card says whose joules were divided by what was counted where."""
        spans = Spans()
        spans.span(0.1, 1.9, "outer", "phase", inside=[(0.2, 0.6, "A"), dict(begin_s=1.1, end_s=1.6, text="B", counts=[("tokens", 1000)])])
        path = self.imported([10] * 100 + [20] * 101)
        spans.write(path)
        (head, _), = blobs(self.page(path)[1])
        unit, = head["attribution"]["per"]
        self.assertEqual((unit["name"], unit["of"], unit["of_kind"], unit["amount"]), ("tokens", "B", "span", 1000))
        shown, = json.loads(self.nrg("attribute", "--json", path).stdout)["per"]
        self.assertEqual((unit["provenance"], unit["flags"]), (shown["provenance"], shown["flags"]))
        for key in ("energy_j", "low_j", "high_j"):
            self.assertAlmostEqual(unit[key], shown[key], places=8, msg=key)

    def test_series_and_gaps(self):
        path = self.imported([10] * 50 + [20] * 51, 0.02)
        (head, a), = blobs(self.page(path)[1])
        n = head["series"]["n"]
        power = next(k for k, c in enumerate(head["channels"]) if c["in_total"])
        values = a["series"][power * n:(power + 1) * n]
        self.assertAlmostEqual(values[n // 4], 10, places=3)
        self.assertAlmostEqual(values[3 * n // 4], 20, places=3)

    def test_no_name_leaves_its_element(self):
        self.longMessage = False  # names of 10 kB
        path = self.steps(self.imported([10] * 201), names=HOSTILE)
        page = self.page(path)[1]
        frame = open(os.path.join(WEB, "dist", "page.html"), encoding="utf-8").read()
        self.assertEqual(re.sub(r'<script type="application/octet-stream" class="nrg-run">[A-Za-z0-9+/=]*</script>\n', "<!--nrg-data-->", page), frame)
        (head, a), = blobs(page)
        names = {head["strings"][i] for i in a["row_name"]}
        # What turns a line's direction or ends it is a '?' wherever names are read.
        cleaned = {re.sub("[\u202e\u2028]", "?", name) for name in HOSTILE}
        self.assertLess(cleaned, names)

    def test_empty_page_is_small_and_strict(self):
        frame = open(os.path.join(WEB, "dist", "page.html"), encoding="utf-8").read()
        self.assertLess(len(frame.encode()), 150_000)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', frame)[1]
        self.assertTrue(policy.startswith("default-src 'none'; script-src 'sha256-"), policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(frame, r'(src|href)="(https?:)?//')

    def test_several_recordings(self):
        """The comparison is nrg compare's, by command."""
        rng, sides = random.Random(3), ([], [])
        for i in range(6):
            path = self.imported([rng.uniform(9, 11) * (1 + i % 2) for _ in range(101)], name=f"{i}.nrg")
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                db.execute("INSERT OR REPLACE INTO meta VALUES('command_line', ?)", (f"train --wide {i % 2}",))
            sides[i % 2].append(path)
        heads = [head for head, _ in blobs(self.page(*(path for pair in zip(*sides) for path in pair))[1])]
        doc = json.loads(self.nrg("compare", "--force", "--json", *sides[0], "--", *sides[1]).stdout)
        self.assertEqual(heads[0]["comparison"]["sides"], [0, 1] * 3)
        for key in ("ratio", "low", "high", "p_value"):
            self.assertTrue(math.isclose(heads[0]["comparison"]["energy"][key], doc["energy"][key], rel_tol=1e-9), key)
        self.assertAlmostEqual(doc["energy"]["ratio"], 2, delta=0.1)
        self.assertNotIn("comparison", heads[1])
        hidden = blobs(self.page(*sides[0], *sides[1], options=("--redact",))[1])[0][0]
        self.assertIn("comparison", hidden)
        for text in ("--wide", self.path("")):
            self.assertIn(text, json.dumps(heads[0]))
            self.assertNotIn(text, json.dumps(hidden))

    def test_machine_line(self):
        """Prices of a calibration and of a profile; what is neither is refused."""
        path, out = self.imported([10] * 21), self.path("out.html")
        points = [{"j_per_mac": 3e-12}, {"j_per_mac": 2e-12}, {"j_per_byte": 1e-11}]
        calibration = {"schema": "nrg.calibration/1", "device": "box", "provenance": "estimated", "points": points,
                       "levels": [{"level": "L1", "j_per_byte": 1e-12}, {"level": "memory", "j_per_byte": 4e-11}]}
        (head, _), = blobs(self.page(path, options=("--profile", self.write("here.json", json.dumps(calibration))))[1])
        self.assertEqual(head["machine"], {"device": "box", "provenance": "estimated", "source": "nrg calibrate", "j_per_mac": 2e-12, "j_per_byte": 4e-11})
        for text, why in (("{", "bad.json"), ("{}", "is not a profile"), (json.dumps({**calibration, "points": [], "levels": []}), "no price"), ("[1]", "bad.json")):
            done = self.nrg("report", path, "--html", out, "--profile", self.write("bad.json", text))
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr.decode())
            self.assertFalse(os.path.exists(out))

    def test_redact(self):
        path = self.imported([10] * 201)
        db = sqlite3.connect(path)
        db.execute("INSERT OR REPLACE INTO meta VALUES('command_line', '/opt/ann/bin/train --token SECRET')")
        db.execute("INSERT OR REPLACE INTO meta VALUES('host', 'HOSTNAME')")
        db.execute("INSERT OR REPLACE INTO meta VALUES('cpu', 'Some CPU')")
        db.commit()
        db.close()
        shown, hidden = (json.dumps(blobs(self.page(path, options=o)[1])[0][0]) for o in ((), ("--redact",)))
        for text in ("SECRET", "HOSTNAME", "/opt/ann", path):
            self.assertIn(text, shown)
            self.assertNotIn(text, hidden)
        self.assertIn("Some CPU", hidden)
        self.assertIn('"train"', hidden)

    def test_redact_of_all_that_a_recorder_wrote(self):
        """Folders with a blank, what it noted about sensors, names of threads, a refusal's files."""
        path, other = self.steps(self.imported([10] * 201)), self.imported([10] * 201, name="other.nrg")
        os.mkdir(self.path("ann SECRET"))
        program = os.path.join(self.path("ann SECRET"), "my train")
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT OR REPLACE INTO meta VALUES('command_line', ?)", (program + " --token SECRET",))
            db.execute("INSERT INTO process(id, pid, first_ns, last_ns, cpu_ns, name, command) SELECT 1, 7, min(begin_ns), max(end_ns), 1000000, 'my train', ? FROM run", (program + " --token SECRET",))
            db.execute("INSERT INTO event(t_ns, kind, source, detail) SELECT begin_ns, 'gone', 'exec:/home/SECRET/plug --key SECRET', 'SECRET.lan does not answer' FROM run")
            db.execute("UPDATE span_track SET name = 'SECRET'")
        shown, hidden = (self.page(path, other, path, options=o)[1] for o in ((), ("--redact",)))
        shown, hidden = (json.dumps([head for head, _ in blobs(page)]) for page in (shown, hidden))
        self.longMessage = False  # whole heads
        self.assertIn("given on both sides (" + other, shown)
        for text in ("SECRET", self.path("")):
            self.assertIn(text, shown)
            self.assertNotIn(text, hidden)
        self.assertIn("A and B are not comparable", hidden)
        self.assertIn('"command": "my train"', hidden)
        self.assertIn("1 note was left out", hidden)

    def test_bad_input(self):
        good, out = self.imported([10] * 21), self.path("out.html")
        bad, one = self.write("bad.nrg", "not a recording"), self.imported([10], name="one.nrg")
        for options, code, text in (((bad, "--html", out), 1, "bad.nrg"), ((good, bad, "--html", out), 1, "bad.nrg"), (("--html", out), 2, "wants a recording"),
                                    ((good, "--html", out, "--json"), 2, "does not go with"), ((one, "--html", out), 1, "holds no readings"), ((good, "--redact"), 2, "is for --html"),
                                    ((good, "--html", self.path("no/such/folder.html")), 1, "cannot write")):
            done = self.nrg("report", *options)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr.decode())
            self.assertFalse(os.path.exists(out), "half a page was left")

    def test_view_of_what_is_no_recording_leaves_nothing(self):
        os.mkdir(self.path("tmp"))
        self.assertEqual(self.nrg("view", self.path("none.nrg"), env={**os.environ, "TMPDIR": self.path("tmp")}).returncode, 1)
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_view_says_where(self):
        path = self.imported([10] * 21)
        done = self.nrg("view", path, env={**os.environ, "DISPLAY": "", "TMPDIR": self.path("")})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(done.stdout.decode().strip(), encoding="utf-8") as file:
            self.assertEqual(len(blobs(file.read())), 1)


class Sources(PageCase):
    def setUp(self):
        super().setUp()
        if node_problem():
            self.skipTest(node_problem())

    def run_node(self, *command):
        done = subprocess.run(command, cwd=WEB, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_bundle_is_what_the_sources_give(self):
        self.run_node("node", "build.mjs", "--check")

    def test_types_lint_and_arithmetic(self):
        self.run_node("npx", "tsc", "--noEmit")
        self.run_node("npx", "biome", "lint", "--error-on-warnings", "src", "test", "build.mjs")
        self.run_node("npx", "vitest", "run")


class BrowserCase(PageCase):
    def setUp(self):
        super().setUp()
        problem = node_problem() or ("" if CHROMIUM else "chromium is not here")
        if problem:
            self.skipTest(problem)

    def look(self, *pages):
        job = json.dumps({"chromium": CHROMIUM, "pages": [{"file": file, "ranges": ranges, **more} for file, ranges, more in pages]})
        done = subprocess.run(["node", "test/browser.mjs"], cwd=WEB, input=job, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        for page in seen:
            self.assertEqual((page["errors"], page["requests"], page["axe"]), ([], [], {"light": [], "dark": []}), page["file"])
            self.assertLessEqual(page["overflow"], 390)
            self.assertEqual(page["silent"], [], "a number that does not say how it was made")
            self.assertLessEqual(max(page["in_sight"], default=0), 390, "an energy beyond a phone's width")
            self.assertEqual({**page["paper"], "pages": 0}, {"headings": 0, "folded": 0, "ink": "#1c2430", "pages": 0})
        return seen


def si(text):
    """What a text like "1.234 mJ" stands for."""
    number, unit = text.split()[:2]
    return float(number) * {"": 1, "k": 1e3, "M": 1e6, "m": 1e-3, "µ": 1e-6, "n": 1e-9, "p": 1e-12}[unit[:-1]]


class Browser(BrowserCase):
    def rows_are(self, shown, rows):
        """What stands behind ± is the larger distance, as in the terminal's table; else both ends stand there."""
        known = {}
        for row in rows:
            known.setdefault((row["name"], row["kind"]), []).append(row)
        for name, energy, band in shown:
            same = [r for (text, _), r in known.items() if len(r) == 1 and name in (text, f"{text} · Linear") for r in r]
            if len(same) == 1 and band:
                off_j = max(same[0]["high_j"] - same[0]["energy_j"], same[0]["energy_j"] - same[0]["low_j"])
                self.assertTrue(math.isclose(si(energy), same[0]["energy_j"], rel_tol=1e-3, abs_tol=1e-9), (energy, same))
                ends = [si(end) for end in band.lstrip("± ").split(" … ")]
                truth = [off_j] if "±" in band else [same[0]["low_j"], same[0]["high_j"]]
                self.assertEqual(len(ends), len(truth), (name, band, same))
                for end, true in zip(ends, truth):
                    self.assertTrue(math.isclose(end, true, rel_tol=1e-3, abs_tol=1e-9), (name, band, same))

    def test_numbers_agree(self):
        """One peak power, that of the report; an estimate's scale where its numbers are; small costs."""
        path = self.steps(self.path("estimate.nrg")) if self.recordings() else ""
        doc = json.loads(self.nrg("report", "--json", path).stdout)
        scale = json.loads(self.nrg("attribute", "--json", path).stdout)["scale"]
        seen, = self.look((self.page(path, options=("--price", "0.0001"))[0], [], {}))
        peak = {tiles["mean power"][0].split("peak ")[1].split("W")[0] for tiles in seen["tiles"].values()}
        self.assertEqual(len(peak), 1)
        self.assertAlmostEqual(si(peak.pop() + "W"), doc["domains"][0]["peak_w"], delta=0.01)
        text = f"× {scale['low']:.2f} … {scale['high']:.2f}"
        for tile in (seen["tiles"]["selection"]["in spans"], seen["tiles"]["head"]["per step"]):
            self.assertIn(text, tile[0])
        self.assertIn(f"energy (all {text})", seen["text"])
        cost = float(seen["tiles"]["head"]["cost"][0].split("at")[0])
        self.assertTrue(math.isclose(cost, doc["total"]["energy_j"] / 3.6e6 * 1e-4, rel_tol=1e-2), cost)
        for tiles in seen["tiles"].values():
            for name, (text, how) in tiles.items():
                self.assertRegex(how, "^(measured|derived|estimated): .", name)

    def test_selections_equal_the_terminal(self):
        rng, pages = random.Random(14), []
        paths = self.recordings()
        for path in paths:
            file, page = self.page(path)
            duration_s = blobs(page)[0][0]["buckets"]["duration_ns"] / 1e9
            ranges = [sorted(rng.uniform(0, duration_s) for _ in range(2)) for _ in range(int(os.environ.get("NRG_PAGE_RANGES", "5")))]
            pages.append((file, ranges, {}))
        for path, seen in zip(paths, self.look(*pages)):
            for got in seen["selections"] + [seen["keys"]["longer"], seen["mouse"]["dragged"]]:
                rows, got = got.pop("rows", []), {key: float(value) for key, value in got.items() if key != "rows"}
                doc = json.loads(self.nrg("attribute", "--json", "--from", repr(got["from-s"]), "--to", repr(got["to-s"]), path).stdout)
                self.assertEqual((doc["from_s"], doc["to_s"]), (got["from-s"], got["to-s"]))
                for key, name in (("selection-energy-j", "total_j"), ("selection-low-j", "total_low_j"), ("selection-high-j", "total_high_j")):
                    self.assertTrue(math.isclose(got[key], doc[name], rel_tol=1e-6), (path, got, key, doc[name]))
                self.rows_are(rows, doc["rows"])
            self.assertIn("from=", seen["keys"]["address"])
            self.assertGreater(float(seen["keys"]["longer"]["to-s"]), float(seen["keys"]["selected"]["to-s"]))
            for cleared in (seen["keys"]["cleared"], seen["mouse"]["cleared"]):
                self.assertEqual(cleared, seen["keys"]["whole"])
            if seen["search"]: # there are spans
                self.assertLess(len(seen["search"]["found"]), len(seen["search"]["all"]))
                self.assertEqual(sorted(seen["search"]["sorted"], key=str.casefold)[0][:1], seen["search"]["sorted"][0][:1])
            self.assertGreaterEqual(seen["painted"], 2)
            self.assertGreaterEqual(seen["choices"]["tried"], 10)
            for svg in seen["choices"]["svg"]:
                self.assertEqual(xml.etree.ElementTree.fromstring(svg).tag, "{http://www.w3.org/2000/svg}svg")
            self.assertEqual(len(seen["choices"]["svg"]), 3 if seen["search"] else 2)

    def test_odd_recordings(self):
        hostile = self.steps(self.imported([10] * 201, name="hostile.nrg"), names=HOSTILE)
        no_spans = self.imported([10] * 201, name="nospans.nrg")
        two = self.imported([10, 10], name="two.nrg")
        gaps = self.imported([10] * 5, 30, name="gaps.nrg")
        run = self.path("nosensor.nrg")
        done = self.nrg("run", "-q", "-o", run, "--sensor", "none", "--", "true")
        one = self.imported([10], name="one.nrg") # a reading, and a second of time
        with contextlib.closing(sqlite3.connect(one)) as db, db:
            db.execute("UPDATE run SET end_ns = begin_ns + 1000000000")
        half = self.steps(self.imported([10] * 101, name="half.nrg")) # nothing was read in the second of its two seconds
        with contextlib.closing(sqlite3.connect(half)) as db, db:
            db.execute("UPDATE run SET end_ns = begin_ns + 2000000000")
        files = [hostile, no_spans, two, gaps, one, half] + ([run] if done.returncode == 0 else [])
        seen = self.look(*((self.page(path)[0], [], {}) for path in files))
        self.assertTrue(any("</script><script>alert(1)</script>" in name for name in seen[0]["search"]["all"]))
        for page in seen:
            self.assertFalse("This page can't be shown" in page["text"], page["file"])
            powers = {tiles["mean power"][0] for tiles in page["tiles"].values()}
            self.assertEqual(len(powers), 1, "the head and the whole run as a selection")
        self.assertIn("10.00 W", seen[5]["tiles"]["selection"]["mean power"][0])
        self.assertTrue("What is missing" in seen[1]["text"])

    def test_several_runs(self):
        file, _ = self.page(*self.recordings()[1:3])
        seen, = self.look((file, [], {}))
        self.assertIn("Side by side", seen["text"])
        self.assertIn("B against A", seen["text"])


class Trained(Against, BrowserCase):
    """With a profile of nrg train: 1 nJ per MAC, so that fc1 is predicted right and body.fc2 is not (test_predict_against.py)."""

    def setUp(self):
        PageCase.setUp(self)

    def trained_page(self):
        path = self.recording(*self.steps(), graph=[("net.txt", GRAPH)])
        file, page = self.page(path, options=("--profile", self.profile()))
        return file, blobs(page)[0][0]

    def test_prediction_is_that_of_predict_against(self):
        _, head = self.trained_page()
        self.assertEqual((head["machine"]["device"], head["machine"]["source"]), ("box", "profile"))
        self.assertAlmostEqual(head["machine"]["j_per_mac"], 1e-9, delta=5e-11)
        for got, want in zip(head["prediction"]["modules"], self.json()["modules"], strict=True):
            self.assertEqual((got["name"], got.get("verdict")), (want["name"], want.get("verdict")))
            for key in ("predicted_j", "predicted_low_j", "measured_j", "measured_high_j"):
                self.assertEqual(key in got, key in want)
                self.assertTrue(math.isclose(got.get(key, 0), want.get(key, 0), rel_tol=1e-9), (got, want))

    def test_prediction_beside_measurement(self):
        BrowserCase.setUp(self)
        file, head = self.trained_page()
        text = self.look((file, [], {}))[0]["text"]
        self.assertIn("Predicted for box beside this run (derived, by integrate): one forward pass, 4 of 4 modules", text)
        self.assertRegex(text, r"modules.*body\.fc2(1\.9\d\d|2\.0\d\d) J.{0,80}×outsidefc1(9\d\d\.\d mJ|1\.0\d\d J).{0,80}×inside")
        self.assertIn("No line: of box not both prices are known", text)  # it was trained on products alone
        self.assertNotIn("at best", text)
        for reason in head["prediction"]["reasons"]:
            self.assertIn(reason, text)


if __name__ == "__main__":
    unittest.main()
