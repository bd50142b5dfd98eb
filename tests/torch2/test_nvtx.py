"""Ranges of PyPI's nvtx under nrg run --gpu-trace: they come through NVTX's functions for domains (CORE2), with registered strings."""
import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ.get("NRG_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("NRG_PLAIN_BUILD", os.path.join(SOURCE, "build"))
PYTHON = os.environ.get("NRG_TORCH_PYTHON", sys.executable)
HAS = subprocess.run([PYTHON, "-c", "import nvtx"], capture_output=True).returncode == 0

PROGRAM = """
import nvtx

@nvtx.annotate("decorated", domain="lib", category="calls")
def work():
    with nvtx.annotate("inner", payload=7):
        pass

for i in range(5):
    with nvtx.annotate("step", color="green"):
        work()
started = nvtx.start_range("started", domain="lib")
nvtx.mark("marked")
nvtx.end_range(started)
nvtx.push_range("pushed")
nvtx.pop_range()
print("ok")
"""


@unittest.skipUnless(HAS, "nvtx is not installed")
class Nvtx(unittest.TestCase):
    def test_ranges_are_spans(self):
        with tempfile.TemporaryDirectory() as folder:
            recording, program = os.path.join(folder, "run.nrg"), os.path.join(folder, "program.py")
            with open(program, "w") as f:
                f.write(PROGRAM)
            done = subprocess.run([os.path.join(BUILD, "nrg"), "run", "-q", "--sensor", "machine", "--gpu-trace", "-o", recording, "--",
                                   PYTHON, program], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
            shown = subprocess.run([os.path.join(BUILD, "nrg"), "attribute", "--json", recording], check=True, capture_output=True,
                                   text=True).stdout
        rows = json.loads(shown)["rows"]
        calls = collections.Counter()
        for row in rows:
            calls[row["name"]] += row["calls"]
        self.assertEqual(calls, {"step": 5, "decorated": 5, "inner": 5, "started": 1, "pushed": 1})
        named = {r["name"]: r for r in rows}
        self.assertIn("lib", named["decorated"]["detail"])
        self.assertEqual(rows[named["decorated"]["parent"]]["name"], "step")
        self.assertEqual(rows[named["inner"]["parent"]]["name"], "decorated")


if __name__ == "__main__":
    unittest.main()
