"""Tokens of generate() and of loops with a cache, counted against true: a table of kinds (generations.py).

All kinds run in one process, as programs know nothing of nrg but for the span around each kind. What is counted is
read from the recording, with the span that it was counted in.
"""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_nrg_torch import BUILD, NRG, PYTHON, Case, has  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "generations.py")
DUMP = os.path.join(BUILD, "tests", "spans-dump")
PLACES = {"input": ("input tokens", "prefill"), "cached": ("cached tokens", "prefill"), "output": ("output tokens", "decode"),
          "made": ("generated tokens", "generate"), "requests": ("requests", "generate")}
BOTH = "prefill and decode"
NOT_KINDS = {"turns", "answer", "room", "tokenizer", "ids", "size", "truth", "llama", "counted", "force", "loop"}


def kinds():
    with open(PROGRAM, encoding="utf-8") as program:
        return [name for name in re.findall(r"^def (\w+)\(", program.read(), re.M) if name not in NOT_KINDS]


def lines(*command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


@unittest.skipUnless(has("transformers"), "transformers is not installed")
class Kinds(Case):
    def counted(self, begin, end):
        """Of the time between two: the sum of each counter by the innermost span, and notes."""
        found, notes = {}, []
        for row in self.counts:
            if not begin <= row["t_ns"] <= end:
                continue
            if row["kind"] == "mark":
                notes.append(row["name"])
            elif row["kind"] == "counter":
                key = row["name"], row["open"][-1] if row["open"] else ""
                found[key] = found.get(key, 0) + row["amount"]
        return found, notes

    def check(self, kind, true, found, notes):
        for what, (name, place) in PLACES.items():
            got = found.pop((name, place), 0) + found.pop((name, BOTH), 0)
            self.assertEqual(got, true[what], f"{kind}: {name} in {place}, counted and true")
        if kind == "own_generate":
            found.pop(("samples", kind), None)  # the call of the model, where it is the first
        self.assertEqual(found, {}, f"{kind}: counted elsewhere")
        text = " ".join(notes)
        self.assertEqual(bool(text), kind in ("speech", "own_generate"), f"{kind}: {text}")

    def test_all(self):
        done = self.recorded(PYTHON, PROGRAM, *kinds())
        self.assertNotIn("Traceback", done.stderr)
        self.counts = lines(DUMP, "--counts", self.out)
        spans = lines(DUMP, self.out)
        self.assertEqual([s for s in spans if "end_ns" not in s], [])
        truths = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
        self.assertEqual(set(truths), set(kinds()))
        self.assertGreaterEqual(len(truths), 12)
        for kind, true in truths.items():
            with self.subTest(kind=kind):
                span = next(s for s in spans if s["name"] == kind)
                self.check(kind, true, *self.counted(span["begin_ns"], span["end_ns"]))

    def test_a_program_is_the_same_without_nrg(self):
        some = ["turns_with_a_cache", "assisted", "raises", "batches", "own_drafts"]
        with_nrg = self.recorded(PYTHON, PROGRAM, *some).stdout
        program = "import sys, types, contextlib; m = types.ModuleType('nrg'); m.span = lambda n: contextlib.nullcontext(); " \
            f"sys.modules['nrg'] = m; import runpy; sys.argv = sys.argv[1:]; runpy.run_path({PROGRAM!r}, run_name='__main__')"
        alone = self.run_process(PYTHON, "-c", program, PROGRAM, *some)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual(with_nrg, alone.stdout)


if __name__ == "__main__":
    unittest.main()
