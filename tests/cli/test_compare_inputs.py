"""nrg compare where the sides do not fit, files are not whole, and names are hostile; what it writes; and how its runner is stopped."""
import html.parser
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import unittest

from compare_files import SECONDS, T0, Sides, Text
from spans_file import BEGIN, Spans
from support import LIMIT_S, NRG, TOP, eventually


def change(path, *statements):
    db = sqlite3.connect(path)
    for statement, *values in statements:
        db.execute(statement, values)
    db.commit()
    db.close()


def set_meta(path, key, value):
    change(path, ("INSERT OR REPLACE INTO meta VALUES(?, ?)", key, value))


class NotWhole(Sides):
    def test_runs_without_an_end_are_left_out(self):
        a, b = self.sides(4, 0.8)
        before = self.json(*a[:3], "--", *b)
        change(a[3], ("UPDATE run SET end_ns = NULL",), ("DELETE FROM meta WHERE key = 'end_ns'",))
        got = self.json(*a, "--", *b)
        self.assertEqual(got["a"]["runs"], 3)
        self.assertEqual(got["energy"], before["energy"])
        self.assertTrue(any("1 run of A and 0 of B have no end" in w for w in got["warnings"]), got["warnings"])
        done = self.compare(a[3], "--", *b, code=1)
        self.assertIn("A has no run with an end", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_files_of_other_versions(self):
        a, b = self.sides(2, 1.0)
        set_meta(b[0], "nrg_version", "0.1.0")
        self.assertTrue(any("the version of nrg that recorded differs" in w and "0.1.0" in w
                            for w in self.json(*a, "--", *b)["warnings"]))
        change(b[0], ("PRAGMA user_version = 99",))
        done = self.compare(*a, "--", *b, code=1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("b0.nrg", done.stderr)

    def test_bytes_that_are_missing(self):
        a, b = self.sides(2, 1.0)
        with open(a[0], "r+b") as file:
            file.truncate(os.path.getsize(a[0]) // 2)
        done = self.nrg("compare", *a, "--", *b)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("a0.nrg", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_different_spans(self):
        a, b = self.sides(2, 1.0)
        for i, path in enumerate(a + b):
            is_b, spans = path in b, Spans()
            at = (T0 - BEGIN).total_seconds() + 60 * (2 * (i % 2) + is_b)
            for name, begin in (("net.same", 0), ("net.new" if is_b else "net.old", 5)):
                spans.span(at + begin, at + begin + 5, name, "module", counts=[("tokens", 40 if is_b else 20)])
            spans.write(path)
        got = self.json(*a, "--", *b)
        self.assertEqual([row["name"] for row in got["rows"] if row["kind"] == "module"], ["net", "net.same"])
        self.assertEqual({(only["name"], only["side"]) for only in got["only"]}, {("net.old", "a"), ("net.new", "b")})
        for only in got["only"]:
            self.assertAlmostEqual(only["energy_j"], 50 * 5, delta=20)
        self.assertTrue(any("1 of A's modules and operators are not in B (net.old), 1 of B's are not in A (net.new)" in w
                            for w in got["warnings"]), got["warnings"])
        self.assertTrue(any("work that was counted differs: 40 tokens" in w and "80 tokens" in w for w in got["warnings"]))
        self.assertIn("only in A: module net.old", self.compare(*a, "--", *b).stdout)

    def test_the_same_work_in_spans_of_other_names(self):
        a, b = self.sides(2, 1.0)
        for i, path in enumerate(a + b):
            spans = Spans()
            at = (T0 - BEGIN).total_seconds() + 60 * (2 * (i % 2) + (path in b))
            for n in (1, 2):
                spans.span(at + 5 * n, at + 5 * n + 4, f"{path in b} {n}", counts=[("tokens", 20), ("samples", n)])
            spans.write(path)
        self.assertFalse([w for w in self.json(*a, "--", *b)["warnings"] if "counted" in w])


class OtherCircumstances(Sides):
    def test_what_the_machine_was_set_to(self):
        a, b = self.sides(2, 1.0)
        facts = {"host": "the machine", "governor": "the frequency governor", "power_limits": "power limits",
                 "clock_limits": "limits of the clock", "gpu_driver": "the GPU's driver", "note.dataset": "the input"}
        for path in a + b:
            for key in facts:
                set_meta(path, key, "one")
        same = self.json(*a, "--", *b)["warnings"]
        for key in facts:
            set_meta(b[1], key, "other")
        warnings = self.json(*a, "--", *b)["warnings"]
        for word in facts.values():
            self.assertFalse(any(w.startswith(word) for w in same), same)
            self.assertTrue(any(w.startswith(word) and "one" in w and "other" in w for w in warnings), (word, warnings))
        # The note that they are grouped by is meant to differ.
        change(a[0], ("UPDATE meta SET value = 'none' WHERE key = 'note.dataset'",))
        for path in a + b:
            set_meta(path, "note.dataset", "small" if path in a else "large")
        self.assertFalse(any("the input" in w for w in self.json("--by", "dataset", *a, *b)["warnings"]))

    def test_another_clock(self):
        paths = []
        for i, hz in enumerate((2e9, 3e9, 2e9, 3e9)):
            log = self.path(f"c{i}.csv")
            with open(log, "w", encoding="utf-8") as out:
                out.write("timestamp,package-0:power_w,cpu.clock:clock_hz\n")
                out.writelines(f"2026-01-01T00:{i:02}:{s:02}Z,50,{hz:.0f}\n" for s in range(SECONDS))
            paths.append(self.path(f"c{i}.nrg"))
            self.assertEqual(self.nrg("import", "-q", "-o", paths[-1], log).returncode, 0)
        warnings = self.json(paths[0], paths[2], "--", paths[1], paths[3])["warnings"]
        self.assertTrue(any("the processors ran at 2.00 GHz during A and at 3.00 GHz during B" in w for w in warnings), warnings)


class Page(html.parser.HTMLParser):
    """Tags, texts and numbers of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.values, self.policy = set(), [], {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        if "data-value" in attrs:
            self.values.setdefault(attrs["data-nrg"], float(attrs["data-value"]))
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]

    def handle_data(self, data):
        self.texts.append(data)


class Documents(Sides):
    def test_page_and_markdown(self):
        a, b = self.sides(3, 0.8)
        hostile = "<script>alert(1)</script> *x* | \"y\""
        for path in a + b:
            set_meta(path, "note.k", hostile if path in b else "plain")
        file, said = self.path("page.html"), self.path("said.json")
        done = self.compare("--by", "k", "--html", file, "--json=" + said, "--markdown=" + self.path("said.md"), *a, *b)
        self.assertIn("less energy", done.stdout)
        with open(said, encoding="utf-8") as text:
            got = json.load(text)
        with open(file, encoding="utf-8") as text:
            page = Page(text.read())
        self.assertNotIn("script", page.tags)
        self.assertIn("default-src 'none'", page.policy)
        self.assertIn(hostile, "".join(page.texts))
        self.assertIn(got["answer"], "".join(page.texts))
        for key in ("ratio", "low", "high"):
            self.assertAlmostEqual(page.values[key], got["energy"][key], places=6)
        with open(self.path("said.md"), encoding="utf-8") as text:
            markdown = text.read()
        self.assertNotIn("<script>", markdown.replace("\\<", ""))
        self.assertTrue(markdown.startswith("**"))
        self.assertTrue(all(line.count("|") - line.count("\\|") == 6 for line in markdown.splitlines() if line.startswith("|")), markdown)

    def test_one_output_has_stdout(self):
        a, b = self.sides(1, 1.0)
        self.assertIn("can have stdout", self.compare("--json", "--html", "-", *a, "--", *b, code=2).stderr)
        self.compare("--html", self.path("no", "such", "folder.html"), *a, "--", *b, code=1)


class Workflow(Text):
    def test_the_example_runs(self):
        """The command of contrib/compare.yml, with fewer runs of a shorter program."""
        with open(os.path.join(TOP, "contrib", "compare.yml"), encoding="utf-8") as text:
            block = text.read().split("- name: Compare\n        run: >\n")[1].split("      - name:")[0]
        words = shlex.split(block)
        self.assertEqual(words[:4], ["nrg", "compare", "--run", "10"])
        short = {"10": "2", "60s": "10ms", "python3": "true"}
        done = self.run_in_folder([NRG, *(short.get(word, word) for word in words[1:])])
        self.assertIn(done.returncode, (0, 3), done.stderr)  # two runs that differ by chance, sometimes
        for name in ("energy.md", "energy.html", "energy.json"):
            self.assertGreater(os.path.getsize(self.path(name)), 0)

    def run_in_folder(self, command):
        return subprocess.run(command, cwd=self.path(), capture_output=True, text=True, timeout=LIMIT_S)


class Stopped(Text):
    def start(self, folder, command):
        return subprocess.Popen([NRG, "compare", "--run", "40", "--warmup", "0", "-o", folder, "--with=--sensor=estimate", "--", *command, "---",
                                 "sleep", "0.01"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def test_what_a_signal_fell_into_does_not_count(self):
        """Also when the command takes it for a wish and ends well."""
        folder = self.path("runs")
        command = ["/bin/sh", "-c", f"trap 'exit 0' INT TERM; touch {self.path('here')}; while :; do sleep 0.05; done"]
        for number, all_of_them in ((signal.SIGINT, True), (signal.SIGTERM, False)):
            with self.subTest(number):
                shutil.rmtree(folder, ignore_errors=True)
                if os.path.exists(self.path("here")):
                    os.unlink(self.path("here"))
                with self.start(folder, command) as run:
                    eventually(lambda: os.path.exists(self.path("here")), "the command runs")
                    (os.killpg if all_of_them else os.kill)(run.pid, number)
                    _, errors = run.communicate(timeout=LIMIT_S)
                self.assertIn("goes on", errors)
                self.assertEqual(run.returncode, 128 + number, errors)
                self.assertFalse([name for name in os.listdir(folder) if name.startswith("a-") and name.endswith(".nrg")])

    def test_cools_down_to_the_idle_machine(self):
        """Of a machine whose power is constant: it is back at once, and the idle one is measured only once."""
        scenario = self.path("machine.txt")
        with open(scenario, "w", encoding="utf-8") as out:
            out.write("domain package-0\n power 50\n")
        arguments = ["compare", "--run", "1", "--warmup", "0", "--cool-down", "60s", "-o", self.path("runs"), "--with=--sensor=simulate:" + scenario,
                     "--", "true", "---", "true"]
        done = self.nrg(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("measuring the idle machine"), 1)
        self.assertEqual(sorted(os.listdir(self.path("runs"))), ["a-001.nrg", "a-001.nrg.log", "b-001.nrg", "b-001.nrg.log", "idle.nrg"])
        os.unlink(self.path("runs", "b-001.nrg"))
        self.assertNotIn("measuring the idle machine", self.nrg(*arguments).stderr)


if __name__ == "__main__":
    unittest.main()
