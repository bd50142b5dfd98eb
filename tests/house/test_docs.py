"""The documents say what the program does: keys of JSON, tables of the format, the reader in Python."""
import json
import os
import re
import sqlite3
import sys
import unittest

import house

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import spans_file  # noqa: E402

SCENARIO = """seed 3
domain psys
  power 100
domain package-0
  power 0s:30 1s:60
  quantum 61uJ
  wrap 262143.3J
  start 262130J
  fault 400ms EIO 200ms
domain core-0
  power 20
domain gpu-0
  kind gauge
  power 35
  lag 200ms
"""


def keys_of(value, path=""):
    """All keys of a JSON value, as dotted paths with [] for lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}".lstrip(".")
            yield from keys_of(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, path + "[]")


class Recorded(house.Case):
    """A simulated run and an estimated one."""

    def simulated(self, *options):
        scenario = self.file("scenario.txt", SCENARIO)
        recording = self.file("sim.nrg")
        self.run_ok(house.NRG, "run", "--force", "--sensor", "simulate:" + scenario, "--sensor", "machine", "--rate",
                    "50Hz", *options, "-o", recording, "--", "sh", "-c", "sleep 1; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
        return recording

    def report(self, recording, *options):
        return json.loads(self.run_ok(house.NRG, "report", "--json", *options, recording).stdout)


class Documented(Recorded):
    """JSON whose keys docs/json.md has to know."""

    def check(self, schema, value, skip=()):
        document = house.text("docs/json.md")
        section = re.search(rf"^## [^\n]*`{re.escape(schema)}`\n(.*?)(?=^## |\Z)", document, re.M | re.S)[1]
        self.assertEqual(value["schema"], schema)
        rows = [re.findall(r"`([^`]+)`", line) for line in section.splitlines() if line.startswith("|")]
        known = {word for row in rows for word in row}
        for key in sorted(set(keys_of(value))):
            if key.startswith(tuple(skip)):
                continue
            parts = key.split(".")
            self.assertTrue(key in known or parts[-1] in known, f"docs/json.md does not know {key}")


class Json(Documented):
    def test_doctor(self):
        self.check("nrg.doctor/1", json.loads(house.run(house.NRG, "doctor", "--json").stdout))

    def test_sensors(self):
        self.check("nrg.sensors/1", json.loads(self.run_ok(house.NRG, "sensors", "--json").stdout))

    def test_sensors_of_a_scenario(self):
        scenario = self.file("s.txt", SCENARIO)
        self.check("nrg.sensors/1", json.loads(
            self.run_ok(house.NRG, "sensors", "--json", "--sensor", "simulate:" + scenario).stdout))

    def test_report(self):
        recording = self.simulated("--repeat", "2", "--baseline", "300ms", "--note", "a=b")
        report = self.report(recording, "--carbon-intensity", "400")
        self.check("nrg.report/1", report, skip=["metadata."])
        self.assertEqual(report["metadata"]["note.a"], "b")
        self.assertEqual(report["repeat"]["n"], 2)
        shares = sum(p["energy_j"].get("cpu", 0) for p in report["processes"])
        whole = shares + report["other_processes_j"] + report.get("idle_j", 0)
        self.assertAlmostEqual(whole, report["cpu_domain_j"], delta=1e-6 * whole)

    def test_report_of_an_estimate(self):
        recording = self.file("est.nrg")
        self.run_ok(house.NRG, "run", "-q", "--sensor", "machine", "--sensor", "estimate", "-o", recording, "--", "sleep", "0.3")
        self.check("nrg.report/1", self.report(recording), skip=["metadata."])


class Attribute(Documented):
    """Keys of nrg attribute: of spans in a recording, and of layer times beside a power log."""
    KEYS_OF_NAMES = ["rows[].domains.", "rows[].counts."]

    def attribute(self, *args):
        return json.loads(self.run_ok(house.NRG, "attribute", "--json", *args).stdout)

    def test_spans(self):
        spans = spans_file.Spans()
        for i in range(3):
            spans.span(0.1 + i, 0.9 + i, "step", "step", number=i, counts=[("tokens", 5)], inside=[
                dict(begin_s=0.2 + i, end_s=0.6 + i, text="fc", kind="module", detail="Linear")])
        spans.span(3.5, None, "open")
        path = self.file("spans.nrg")
        self.run_ok(house.NRG, "import", "-q", "-f", "-o", path, self.file("p.log", spans_file.power_log([20] * 500)))
        spans.write(path)
        for options in ([], ["--by", "step"], ["--idle-power", "4", "--lag", "0.2"], ["--method", "regress"]):
            self.check("nrg.attribute/1", self.attribute(*options, path), skip=self.KEYS_OF_NAMES)

    def test_layers(self):
        log = self.file("power.log", spans_file.power_log([20] * 100))
        layers = self.file("layers.json", json.dumps({"conv": [[200.0, "20250128-13:38:25.500000"]]}))
        summary = self.file("summary.json", json.dumps({"conv": {
            "input_shape": [1, 1, 32, 32], "output_shape": [1, 6, 28, 28], "kernel_size": [5, 5], "stride": [1, 1],
            "padding": [0, 0], "type": "Conv2d"}}))
        result = self.attribute("--power-log", log, "--layers", layers, "--graph", summary, "--idle-power", "4",
                                "--method", "window")
        self.check("nrg.attribute/1", result, skip=self.KEYS_OF_NAMES)
        self.assertIn("power_above_idle_w", result["rows"][1])


class Format(Recorded):
    def reader(self):
        source = house.blocks(house.text("docs/recording-format.md"), "python")[0][1]
        return self.file("reader.py", source), source

    def test_tables_and_columns_are_described(self):
        document = house.text("docs/recording-format.md")
        db = sqlite3.connect(self.simulated())
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self.assertIn("chunk", tables)
        for table in tables:
            self.assertRegex(document, rf"(### .*\b{table}\b|`{table}`)")
            for row in db.execute(f"PRAGMA table_info({table})"):
                self.assertIn(f"`{row[1]}`", document, f"{table}.{row[1]}")
        for key, in db.execute("SELECT key FROM meta"):
            self.assertIn(f"`{key}`", document, f"meta key {key}")
        for kind, in db.execute("SELECT DISTINCT kind FROM event"):
            self.assertIn(f"`{kind}`", document, f"event kind {kind}")
        for kind, columns in db.execute("SELECT kind, columns FROM series"):
            self.assertIn(f"`{kind}`", document)
            for name in filter(None, (columns or "").split(",")):
                self.assertIn(f"`{name}`", document)
        self.assertEqual(db.execute("PRAGMA application_id").fetchone()[0], 0x4E524721)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        self.assertIn(f"# The recording format, version {version}\n", document)

    def test_worked_examples(self):
        _, source = self.reader()
        space = {"__name__": "reader"}
        exec(compile(source, "reader", "exec"), space)
        examples = re.findall(r"`((?:[0-9a-f]{2} ){5,}[0-9a-f]{2})`", house.text("docs/recording-format.md"))
        self.assertEqual(len(examples), 2)
        few, many = (bytes.fromhex(e) for e in examples)
        self.assertEqual(space["column"](few, 0, 4), ([100, 103, None, 103], len(few)))
        self.assertEqual(space["column"](many, 0, 64), ([1000 + 5 * i for i in range(64)], len(many)))

    def test_the_reader_agrees_with_the_report(self):
        recording = self.simulated()
        script, _ = self.reader()
        done = self.run_ok(house.PYTHON, script, recording)
        read = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
        domains = {d["name"]: d for d in self.report(recording)["domains"] if d["method"] == "counter difference"}
        self.assertEqual(set(read), set(domains))
        self.assertEqual(set(read), {"psys", "package-0", "core-0"})
        for name, joules in read.items():
            self.assertAlmostEqual(joules, domains[name]["energy_j"], delta=1e-6 * joules, msg=name)

    def test_the_reader_agrees_with_the_export(self):
        if house.run(house.NRG, "export", "--help").returncode:
            self.skipTest("there is no nrg export yet")
        recording = self.simulated()
        _, source = self.reader()
        space = {"__name__": "reader"}
        exec(compile(source, "reader", "exec"), space)
        db = sqlite3.connect(recording)
        total = sum(1 for series, col in db.execute("SELECT series, col FROM channel").fetchall()
                    for _, value in space["samples"](db, series, col) if value is not None)
        self.assertGreater(total, 100)
        done = self.run_ok(house.NRG, "export", "--format", "csv", recording)
        self.assertGreater(len(done.stdout.splitlines()), 20)

    def test_every_chunk_decodes(self):
        recording = self.simulated()
        _, source = self.reader()
        space = {"__name__": "reader"}
        exec(compile(source, "reader", "exec"), space)
        db = sqlite3.connect(recording)
        for n_columns, n, data in db.execute(
                "SELECT s.n_columns, c.n, c.data FROM chunk c JOIN series s ON s.id = c.series"):
            at = 0
            for _ in range(n_columns + 1):
                values, at = space["column"](data, at, n)
                self.assertEqual(len(values), n)
            self.assertEqual(at, len(data))


class Words(house.Case):
    """Commands and options that the documents mention exist."""

    def setUp(self):
        super().setUp()
        self.commands = re.findall(r"^  (\w+) ", self.run_ok(house.NRG, "help").stdout, re.M)

    def documents(self):
        return [n for n in house.tracked_files("*.md") if not n.startswith("tests/")]

    def test_links_lead_somewhere(self):
        for name in self.documents():
            for target in re.findall(r"\]\(([^)#:]+)\)", house.text(name)):
                self.assertTrue(os.path.exists(house.path(os.path.dirname(name), target)), f"{name}: {target}")
            for target in re.findall(r"\b((?:docs|src|tests|tools|examples|contrib)/[\w/.-]+\.\w+)", house.text(name)):
                if "NAME" not in target and name != "HACKING.md":
                    self.assertTrue(os.path.exists(house.path(target)), f"{name}: {target}")

    def test_options_exist(self):
        for name in ("README.md", "docs/attribute.md", "docs/uncertainty.md", "docs/containers.md"):
            for line in house.text(name).splitlines():
                match = re.search(r"\bnrg (\w+) ([^|`]*)", line)
                if not match or match[1] not in self.commands:
                    continue
                known = self.run_ok(house.NRG, match[1], "--help").stdout
                for option in re.findall(r"(--[a-z][\w-]+)", match[2].split(" -- ")[0].split("#")[0]):
                    self.assertIn(option, known, f"{name}: nrg {match[1]} has no {option}")

    def test_contrib_matches_what_sensors_suggests(self):
        rule = [l for l in house.text("contrib/70-nrg.rules").splitlines() if l and not l.startswith("#")]
        source = re.sub(r'"\n *"', "", house.text("src/sensors/fixes.c")).replace('\\"', '"')
        self.assertEqual(len(rule), 1)
        self.assertIn(rule[0], source)
        setting = [l for l in house.text("contrib/70-nrg.conf").splitlines() if l and not l.startswith("#")]
        self.assertIn(setting[0], source)

    def test_the_image_names_what_exists(self):
        image = house.text("contrib/Dockerfile")
        targets = re.findall(r"^([a-z-]+):", house.text("Makefile"), re.M)
        packages = re.findall(r"^Package: (.*)", house.text("debian/control"), re.M)
        self.assertEqual([t for t in re.findall(r"&& make ([a-z-]+)", image) if t not in targets], [])
        named = re.findall(r"/dist/([a-z0-9-]+)_", image)
        self.assertIn("nrg", named)
        self.assertEqual([p for p in named if p not in packages], [])


if __name__ == "__main__":
    unittest.main()
