"""What is divided by what: counts belong to the innermost span, PER to its class.

Recordings are made by spans_file.py at 10 W, then 20 W from 1 s on, so that joules are known in closed form.
"""
import json
import os
import subprocess
import unittest

import support
from spans_file import Spans
from test_attribute import Attribute as _Attribute


# What is loaded into Python can't be sanitized.
PLAIN = os.path.abspath(os.environ.get("NRG_PLAIN_BUILD") or os.path.dirname(support.NRG))


class Case(_Attribute):
    def per(self, spans, *args, **kw):
        path = self.recording(spans, **kw)
        got = self.attribute(path, "--method", "integrate", "--idle", "none", *args)
        return {(u["name"], u["of"], u["counted"]): u for u in got["per"] if u["kind"] == "counter"}

    def assert_per(self, unit, amount, energy_j):
        self.assertEqual(unit["amount"], amount)
        self.assertAlmostEqual(unit["energy_j"], energy_j, delta=1e-6)
        self.assertAlmostEqual(unit["energy_per_unit_j"], energy_j / amount, delta=1e-9)
        self.assertLessEqual(unit["low_per_unit_j"], unit["energy_per_unit_j"])
        self.assertGreaterEqual(unit["high_per_unit_j"], unit["energy_per_unit_j"])

    def measure(self, name, program, *options):
        """Runs Python beside a machine of 20 W."""
        machine = self.write("machine.txt", "domain package-0\n  power 0s:20\n")
        done = subprocess.run([os.path.join(PLAIN, "nrg"), "run", "-q", *options, "--sensor", "simulate:" + machine, "-o", self.path(name),
                               "--", support.PYTHON, "-c", program], env=self.env(PYTHONPATH=os.path.join(PLAIN, "python")), capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def nested(self):
        """outer { A; B { count 1000 } }, B at 20 W for 0.5 s."""
        spans = Spans()
        spans.span(0.1, 1.9, "outer", "phase", inside=[
            (0.2, 0.6, "A"), dict(begin_s=1.1, end_s=1.6, text="B", counts=[("tokens", 1000)])])
        return spans


class Counts(Case):
    def test_a_count_belongs_to_the_innermost_span(self):
        per = self.per(self.nested())
        self.assertEqual(list(per), [("tokens", "B", "directly")])
        unit = per["tokens", "B", "directly"]
        self.assert_per(unit, 1000, 10)
        self.assertEqual((unit["of_kind"], unit["provenance"], unit["flags"]), ("span", "derived", []))
        text = self.run_attribute("--method", "integrate", "--idle", "none", self.path("run.nrg")).stdout.decode()
        self.assertRegex(text, r"(?m)^tokens of B +10\.00 mJ +\S+ mJ … \S+ mJ +500\.0 [uµ]s +1000 +10\.00 J$")

    def test_every_view_says_the_same(self):
        path = self.recording(self.nested())
        whole = self.attribute(path, "--method", "integrate")["per"]
        for by in ("module", "name", "operator", "epoch"):
            self.assertEqual(self.attribute(path, "--method", "integrate", "--by", by)["per"], whole, by)

    def test_spans_inside_of_single_steps(self):
        """Rows by step have nothing inside; what was counted there still belongs to it."""
        spans = Spans()
        for i in range(3):
            spans.span(1.1 + 0.25 * i, 1.3 + 0.25 * i, "step", "step", number=i, inside=[
                dict(begin_s=1.15 + 0.25 * i, end_s=1.25 + 0.25 * i, text="net", kind="module", counts=[("tokens", 10)])])
        path = self.recording(spans)
        for by in ("path", "step", "epoch"):
            step, tokens = self.attribute(path, "--method", "integrate", "--idle", "none", "--by", by)["per"]
            self.assertEqual((step["name"], step["of"], tokens["of"]), ("step", "step", "net"), by)
            self.assert_per(tokens, 30, 3 * 0.1 * 20)

    def test_a_class_at_several_places_is_pooled(self):
        spans = Spans()
        spans.span(0.1, 0.5, "one", inside=[dict(begin_s=0.2, end_s=0.4, text="B", counts=[("tokens", 30)])])
        spans.span(1.1, 1.5, "two", inside=[dict(begin_s=1.2, end_s=1.4, text="B", counts=[("tokens", 10)])])
        spans.span(1.6, 1.7, "B", counts=[("tokens", 2)])
        spans.span(1.8, 1.9, "B", "phase", counts=[("tokens", 1)])  # of another kind: another class
        path = self.recording(spans)
        got = self.attribute(path, "--method", "integrate", "--idle", "none")["per"]
        self.assertEqual([(u["of"], u["of_kind"]) for u in got], [("B", "phase"), ("B", "span")])
        self.assert_per(got[0], 1, 2)
        self.assert_per(got[1], 42, 2 + 4 + 2)

    def test_recursion_divides_the_outermost_energy(self):
        spans = Spans()
        spans.span(1.1, 1.9, "R", counts=[("tokens", 1)], inside=[
            dict(begin_s=1.2, end_s=1.8, text="R", counts=[("tokens", 2)], inside=[
                dict(begin_s=1.3, end_s=1.5, text="leaf", inside=[
                    dict(begin_s=1.35, end_s=1.45, text="R", counts=[("tokens", 4)])])])])
        self.assert_per(self.per(spans)["tokens", "R", "directly"], 7, 0.8 * 20)
        asked = self.per(spans, "--per", "tokens/leaf", "--per", "tokens/R")
        self.assertEqual(len(asked), 2)
        self.assert_per(asked["tokens", "leaf", "inside"], 4, 0.2 * 20)

    def test_threads_have_their_own_innermost_span(self):
        spans = Spans()
        main, other, idle = (spans.track(name, tid=tid) for name, tid in (("main", 1), ("other", 2), ("idle", 3)))
        spans.span(0.1, 0.9, "outer", track=main, inside=[(0.2, 0.8, "B")])
        spans.span(1.1, 1.5, "C", track=other, counts=[("tokens", 8)])
        spans.event(0.5, "count", spans.name("tokens", "counter"), 5, idle)
        spans.event(1.2, "count", spans.name("tokens", "counter"), 16, main)
        got = self.per(spans)
        self.assertEqual(sorted(got), [("tokens", "C", "directly"), ("tokens", "the machine", "directly")])
        self.assert_per(got["tokens", "C", "directly"], 8, 0.4 * 20)
        # an imported log names no program, so that the machine's total is divided, and named
        whole = got["tokens", "the machine", "directly"]
        self.assert_per(whole, 21, 30.05)
        self.assertEqual(whole["of_kind"], "machine")

    def test_outside_of_spans_the_programs_energy_is_divided(self):
        program = "import nrg, time\nwith nrg.span('a'):\n    nrg.count('tokens', 3)\n    sum(range(10**6))\nnrg.count('tokens', 4)\n"
        self.measure("p.nrg", program)
        report = json.loads(self.nrg("report", "--json", self.path("p.nrg")).stdout)
        per = {u["of"]: u for u in self.attribute(self.path("p.nrg"))["per"]}
        self.assertEqual({of: u["amount"] for of, u in per.items()}, {"a": 3, "this program": 4})
        self.assertAlmostEqual(per["this program"]["energy_j"], report["program"]["energy_j"])
        self.assertAlmostEqual(per["this program"]["high_per_unit_j"], report["program"]["high_j"] / 4)
        per = {u["of"]: u for u in self.attribute(self.path("p.nrg"), "--per", "tokens")["per"] if u["counted"] == "inside"}
        self.assertEqual(per["this program"]["amount"], 7)
        per = {u["of"]: u for u in self.attribute(self.path("p.nrg"), "--domain", "package-0")["per"]}
        self.assertEqual(sorted(per), ["a", "the machine"])

    def test_of_one_run_only_its_counts(self):
        """Joules of one run must not be divided by what all of them counted."""
        program = "import nrg\nwith nrg.span('a'):\n    nrg.count('tokens', 10)\n"
        self.measure("r.nrg", program, "--repeat", "3")
        amounts = [[u["amount"] for u in self.attribute(self.path("r.nrg"), *run)["per"]] for run in ((), ("--run", "2"))]
        self.assertEqual(amounts, [[30], [10]])

    def test_a_span_without_energy_says_so(self):
        spans = Spans()
        spans.span(0.1, 0.5, "known", counts=[("tokens", 5)])
        spans.span(2.2, 2.4, "late", counts=[("tokens", 5)])  # after the last reading
        got = self.per(spans)
        self.assertEqual(got["tokens", "late", "directly"]["amount"], 5)
        self.assertNotIn("energy_per_unit_j", got["tokens", "late", "directly"])
        text = self.run_attribute("--method", "integrate", self.path("run.nrg")).stdout.decode()
        self.assertRegex(text, r"(?m)^tokens of late +- +- ")

    def test_flags_and_interval_are_those_of_the_row(self):
        """Spans far below the sensor's period."""
        spans = Spans()
        for i in range(20):
            spans.span(0.1 + 0.05 * i, 0.1005 + 0.05 * i, "short", counts=[("tokens", 2)])
        path = self.recording(spans, powers=[10, 30] * 10, period_s=0.1)
        got = self.attribute(path, "--method", "integrate", "--by", "name")
        row = self.rows(got)["span", "short"]
        (unit,) = got["per"]
        self.assertIn("not resolved", row["flags"])
        self.assertEqual(unit["flags"], row["flags"])
        self.assertEqual((unit["low_j"], unit["high_j"], unit["energy_j"]), (row["low_j"], row["high_j"], row["energy_j"]))
        self.assertRegex(self.run_attribute("--method", "integrate", path).stdout.decode(), r"(?m)^tokens of short .* not resolved")

    def test_rows_keep_what_was_counted_inside(self):
        rows = self.rows(self.attribute(self.recording(self.nested())))
        self.assertEqual([rows[key].get("counts") for key in (("phase", "outer"), ("span", "A"), ("span", "B"))],
                         [{"tokens": 1000}, None, {"tokens": 1000}])


class Asked(Case):
    def test_another_divisor_on_request(self):
        got = self.per(self.nested(), "--per", "tokens/outer", "--per=tokens/outer")
        self.assertEqual(sorted(got), [("tokens", "B", "directly"), ("tokens", "outer", "inside")])
        self.assert_per(got["tokens", "outer", "inside"], 1000, 0.89 * 10 + 0.01 * 15 + 0.9 * 20)
        text = self.run_attribute("--per", "tokens/outer", self.path("run.nrg")).stdout.decode()
        self.assertRegex(text, r"(?m)^tokens inside of outer ")

    def test_beside_what_else_is_attributed(self):
        """Waiting of GPUs and single steps are attributions of their own, in which nothing was counted."""
        spans = Spans()
        gpu = spans.track("GPU 0 stream 7", "gpu", domain="VDD_IN")
        for i in range(6):
            at = 0.2 + 0.25 * i
            spans.span(at, at + 0.2, "step", "step", number=i, inside=[dict(begin_s=at + 0.05, end_s=at + 0.15, text="net", counts=[("tokens", 4)])])
        for i in range(6):
            spans.span(0.25 + 0.25 * i, 0.35 + 0.25 * i, "gemm", "kernel", track=gpu)
        path = self.recording(spans)
        for method in ("auto", "integrate", "nearest", "window"):
            for by in ("path", "step"):
                got = self.attribute(path, "--method", method, "--by", by, "--per", "tokens/step")
                self.assertEqual([(u["name"], u["of"], u["amount"]) for u in got["per"]], [("step", "step", 6), ("tokens", "net", 24), ("tokens", "step", 24)])
                self.assertEqual("waiting" in got, True)

    def test_the_whole_program(self):
        got = self.per(self.nested(), "--per", "tokens")
        self.assert_per(got["tokens", "the machine", "inside"], 1000, 30.05)

    def test_what_is_counted_directly_is_said_once(self):
        self.assertEqual(len(self.per(self.nested(), "--per", "tokens/B")), 1)

    def test_names_with_slashes(self):
        spans = Spans()
        spans.span(1.1, 1.9, "a/b", inside=[dict(begin_s=1.2, end_s=1.4, text="c", counts=[("in/out", 4)])])
        got = self.per(spans, "--per", "in/out/a/b")
        self.assert_per(got["in/out", "a/b", "inside"], 4, 0.8 * 20)

    def test_unknown_names_are_errors_that_list_the_known_ones(self):
        path = self.recording(self.nested())
        for asked, words in (("tokns", "did you mean tokens?"), ("tokens/outr", "did you mean outer?"), ("tokens/A", "B, outer|outer, B"),
                             ("samples/outer", "tokens"), ("", "tokens"), ("tokens/", "outer"), ("/outer", "tokens"), ("\x1b[31m\n", "tokens")):
            with self.subTest(asked):
                done = self.run_attribute("--per", asked, path, code=1)
                self.assertRegex(self.one_line(done.stderr), words)
        spans = Spans()
        spans.span(0.1, 0.2, "a")
        none = self.recording(spans, name="none.nrg")
        self.assertIn("counted nothing", self.one_line(self.run_attribute("--per", "tokens", none, code=1).stderr))

    def test_not_of_a_part_of_the_run(self):
        done = self.run_attribute("--per", "tokens", "--from", "1", self.recording(self.nested()), code=2)
        self.assertIn("whole run", done.stderr.decode())
        self.assertEqual(self.attribute(self.path("run.nrg"), "--from", "1")["per"], [])


if __name__ == "__main__":
    unittest.main()
