"""Programs and traces of a current PyTorch, with its own flop counter as the truth.

Run by `make test-torch2`, which sets the Python. See make_models.py for what is made.
"""
import json
import os
import subprocess
import tempfile
import unittest

PYTHON = os.environ.get("NRG_TORCH_PYTHON")
NRG = os.environ.get("NRG_BIN") or "build/nrg"
BUILD = os.environ.get("NRG_BUILD") or "build"
HERE = os.path.dirname(os.path.abspath(__file__))


@unittest.skipUnless(PYTHON, "NRG_TORCH_PYTHON is not set")
class Torch2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        done = subprocess.run([PYTHON, os.path.join(HERE, "make_models.py"), cls.folder.name], capture_output=True,
                              text=True, timeout=500)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        with open(os.path.join(cls.folder.name, "truth.json"), encoding="utf-8") as text:
            cls.truth = json.load(text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def graph(self, *arguments):
        done = subprocess.run([NRG, "graph", "--json", *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def rows(self, path):
        done = subprocess.run([os.path.join(BUILD, "tests/params-dump"), path], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_exported(self):
        for name, truth in self.truth.items():
            with self.subTest(name):
                totals = self.graph(self.path(name + ".pt2"))["totals"]
                self.assertEqual(totals["params"], truth["params"])
                if name == "dynamic":
                    self.assertEqual(totals["unknown_operators"], 1)
                else:
                    self.assertEqual(totals["unknown_operators"], 0)
                    self.assertEqual(totals["macs"], truth["macs"])

    def test_names_and_shapes(self):
        for name, truth in self.truth.items():
            for ending in (".pt2", ".pt"):
                if not os.path.exists(self.path(name + ending)):
                    continue
                with self.subTest(name + ending):
                    rows = [r for r in self.rows(self.path(name + ending)) if "param" in r and not r["extra"]]
                    params = {r["param"]: r["dims"] for r in rows if not r["buffer"]}
                    # A tied parameter has two names in a file; named_parameters() gives the first.
                    self.assertEqual({k: params.get(k) for k in truth["shapes"]}, truth["shapes"])
                    self.assertEqual({r["param"]: r["dims"] for r in rows if r["buffer"]}, truth["buffers"])

    def test_traced(self):
        """The printed graph with the archive's shapes counts as the exported program does."""
        for name, truth in self.truth.items():
            if not os.path.exists(self.path(name + ".txt")):
                continue
            with self.subTest(name):
                totals = self.graph(self.path(name + ".txt"), "--params", self.path(name + ".pt"))["totals"]
                self.assertEqual(totals["params"], truth["params"])
                self.assertEqual(totals["unknown_operators"], 0)
                self.assertEqual(totals["macs"], truth["macs"])


if __name__ == "__main__":
    unittest.main()
