"""nrg export --format firefox and speedscope: what is inside, and what those projects' own programs make of it.

speedscope's schema and page and the Firefox Profiler's command line come from npm (web/package.json); where node or the registry
can't be had, that part is skipped. Powers and spans are chosen here, so the joules are known in closed form.
"""
import base64
import json
import os
import sqlite3
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

from web import CHROMIUM, WEB, MadeCase, node_problem

FIREFOX = "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js"
HOSTILE = ['quote " and \\', "tab\tnew\nline", "</script>", "層 😀", "x" * 10240, ";", ""]


class Profilers(MadeCase):
    def export(self, form, path, *options):
        done = self.nrg("export", "--format", form, *options, path)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return json.loads(done.stdout)

    def made(self, names=("a", "b")):
        """2 s at 10 W, 2 s at 30 W; steps of 0.4 s with their parts one after the other."""
        return self.steps(self.imported([10] * 200 + [30] * 201), names=names, n=10)

    def total_j(self, path):
        doc = json.loads(self.nrg("attribute", "--json", path).stdout)
        self.assertAlmostEqual(doc["total_j"], 80, delta=0.5)
        return doc

    def test_speedscope_weights_are_the_rows(self):
        path = self.made()
        doc, attributed = self.export("speedscope", path), self.total_j(path)
        energy, spans = doc["profiles"]
        names = [frame["name"] for frame in doc["shared"]["frames"]]
        self.assertEqual(len(names), len(set(names)))
        got = {tuple(names[i] for i in stack): weight / 1e6 for stack, weight in zip(energy["samples"], energy["weights"])}
        rows = attributed["rows"]
        for row in rows:
            stack = ("step", row["name"]) if row.get("parent") is not None and row["name"] != "step" else (row["name"],)
            self.assertAlmostEqual(got.pop(stack, 0), row["energy_self_j"], places=5)
        self.assertAlmostEqual(sum(got.values()), attributed["idle_j"] + attributed["other_processes_j"] + attributed["unattributed_j"], places=5)
        self.assertAlmostEqual(energy["endValue"] / 1e6, attributed["total_j"], places=5)
        self.check_nested(spans, 30)

    def check_nested(self, spans, n):
        """Every span opens and closes as the format wants it: in order of time, the innermost first."""
        stack, last, opened = [], spans["startValue"], 0
        for event in spans["events"]:
            self.assertGreaterEqual(event["at"], last)
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                opened += 1
            else:
                self.assertEqual(stack.pop(), event["frame"])
        self.assertEqual((stack, opened), ([], n))
        self.assertLessEqual(last, spans["endValue"])

    def test_firefox_adds_up(self):
        path = self.made()
        doc, attributed = self.export("firefox", path), self.total_j(path)
        counter, = doc["counters"]
        joules = sum(counter["samples"]["count"]) * 3600e-12
        self.assertAlmostEqual(joules, attributed["total_j"], delta=1e-6 * joules)
        late = sum(c for t, c in zip(counter["samples"]["time"], counter["samples"]["count"]) if t > 2000) * 3600e-12
        self.assertAlmostEqual(late, 60, delta=1)
        energy, spans = doc["threads"]
        self.assertAlmostEqual(sum(energy["samples"]["weight"]) / 1e6, attributed["total_j"], delta=1e-3)
        self.assertEqual(sorted(energy["samples"]["time"]), energy["samples"]["time"])
        for thread in (energy, spans):
            for table in ("samples", "markers", "stackTable", "frameTable", "funcTable"):
                lengths = {len(column) for column in thread[table].values() if isinstance(column, list)}
                self.assertEqual(lengths, {thread[table]["length"]}, table)
        self.assertEqual(spans["markers"]["length"], 30)
        for begin, end in zip(spans["markers"]["startTime"], spans["markers"]["endTime"]):
            self.assertIn(round(end - begin), (200, 400))

    def test_any_names_and_no_spans(self):
        hostile = self.made(names=HOSTILE)
        for form in ("firefox", "speedscope"):
            text = json.dumps(self.export(form, hostile))
            self.assertIn("x" * 10240, text)
            self.export(form, self.imported([10] * 21, name="none.nrg"))
            self.export(form, self.imported([10, 10], name="two.nrg"))

    def test_absurd_energies(self):
        """Numbers that JSON can't hold are left out."""
        path = self.made()
        for scale in (1e290, 1e-320, -1e290):
            db = sqlite3.connect(path)
            db.execute("UPDATE channel SET scale = ?", (scale,))
            db.commit()
            db.close()
            for form in ("firefox", "speedscope"):
                done = self.nrg("export", "--format", form, path)
                if not done.returncode:
                    self.assertNotRegex(done.stdout.decode(), r"\b(inf|nan|Infinity|NaN)\b")
                    json.loads(done.stdout)
            for what in ("timeline", "flame"):
                done = self.nrg("report", "--svg", what, path)
                if not done.returncode:
                    xml.etree.ElementTree.fromstring(done.stdout)

    def test_bad_use(self):
        path = self.imported([10] * 21)
        for options, text in (((path, "--format", "firefox", "--wide", "1s"), "two forms of csv"), ((self.write("bad.nrg", "x"), "--format", "speedscope"), "bad.nrg")):
            done = self.nrg("export", *options)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(text, done.stderr.decode())


class Importers(Profilers):
    test_speedscope_weights_are_the_rows = test_firefox_adds_up = test_absurd_energies = test_any_names_and_no_spans = test_bad_use = None

    def setUp(self):
        super().setUp()
        if node_problem():
            self.skipTest(node_problem())

    def files(self, form):
        out = []
        for name, names in (("plain", ("a", "b")), ("hostile", HOSTILE)):
            out.append(self.write(f"{name}.{form}.json", json.dumps(self.export(form, self.made(names)))))
        return out

    def node(self, *command, **options):
        done = subprocess.run(["node", *command], cwd=WEB, capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_speedscope(self):
        """Its schema, and its page in a browser where there is one."""
        pages = []
        for file in self.files("speedscope"):
            with open(file, "rb") as data:
                script = f'speedscope.loadFileFromBase64("made by nrg", "{base64.b64encode(data.read()).decode()}")'
            pages.append({"file": file, "script": self.write(os.path.basename(file) + ".js", script)})
        seen = json.loads(self.node("test/importers.mjs", input=json.dumps({"chromium": CHROMIUM, "pages": pages})))
        for page in seen:
            self.assertEqual((page["schema"], page["errors"]), ([], []), page["file"])
            if CHROMIUM:
                self.assertRegex(page["title"], "power.log.* - speedscope$")

    def ask(self, *words):
        return subprocess.run(["node", FIREFOX, *words, "--session", "nrg", "--json"], cwd=WEB, capture_output=True, text=True, env=self.env)

    def loaded(self, daemon):
        """Its server is started here and waited for: its own `load` gives up after half a second."""
        for _ in range(120):
            done = self.ask("counter", "list")
            if not done.returncode or daemon.poll() is not None:
                break
            time.sleep(0.5)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["counters"]

    def test_firefox(self):
        for file in self.files("firefox"):
            sessions = tempfile.mkdtemp(dir=self.path(""))
            self.env = {**os.environ, "PROFILER_CLI_SESSION_DIR": sessions, "PROFILER_CLI_NO_SYMBOLICATE": "1"}
            with subprocess.Popen(["node", FIREFOX, "--daemon", file, "--session", "nrg"], cwd=WEB, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
                try:
                    counter, = self.loaded(daemon)
                    tree = json.loads(self.ask("thread", "samples-top-down", "--include-idle").stdout)["regularCallTree"]
                    markers = json.loads(self.ask("thread", "markers", "--thread", "t-1").stdout)
                finally:
                    daemon.terminate()
            self.assertEqual((counter["category"], counter["unit"]), ("power", "pWh"))
            self.assertAlmostEqual(counter["stats"][0]["value"] * 3600e-12, 80, delta=1)
            self.assertAlmostEqual(tree["totalSamples"] / 1e6, 80, delta=2)  # rows by regression, which may be more than the total
            self.assertEqual(markers["totalMarkerCount"], 10 * (1 + (2 if "plain" in file else len(HOSTILE))))


if __name__ == "__main__":
    unittest.main()
