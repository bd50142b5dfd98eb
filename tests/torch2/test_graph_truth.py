"""nrg graph against onnx's reference and PyTorch's counters, over generated models.

Run by `make test-torch2`, which sets the Python. make_onnx.py and make_nets.py say what is made. A shape may be
unknown, never wrong; how many are known is tested as well, so that "unknown" is no way out.
"""
import json
import os
import subprocess
import tempfile
import unittest

PYTHON = os.environ.get("NRG_TORCH_PYTHON")
NRG = os.environ.get("NRG_BIN") or "build/nrg"
HERE = os.path.dirname(os.path.abspath(__file__))
AT_ONCE = 200


def can_import(module):
    return PYTHON and not subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True,
                                         check=False).returncode


class Made(unittest.TestCase):
    """Models that a script of this folder makes, with their truth.json."""

    MAKER = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        done = subprocess.run([PYTHON, os.path.join(HERE, cls.MAKER), cls.folder], capture_output=True, text=True,
                              timeout=900, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        with open(os.path.join(cls.folder, "truth.json"), encoding="utf-8") as text:
            cls.truth = json.load(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def graphs(self, *arguments):
        done = subprocess.run([NRG, "graph", "--json", *arguments], capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-1000:])
        return json.loads(done.stdout)


def fits(dims, truth):
    """None: unknown. True or False: right or wrong as far as it is known."""
    if dims is None:
        return None
    if len(dims) != len(truth) or any(d not in (None, t) for d, t in zip(dims, truth)):
        return False
    return None if None in dims else True


@unittest.skipUnless(can_import("onnx"), "no onnx in the virtual environment")
class OnnxShapes(Made):
    MAKER = "make_onnx.py"

    def outputs(self, names):
        """Of each file: dims by the output's name."""
        for start in range(0, len(names), AT_ONCE):
            part = names[start:start + AT_ONCE]
            graphs = self.graphs(*[self.path(name + ".onnx") for name in part])["graphs"]
            for name, graph in zip(part, graphs):
                yield name, {output["id"]: output.get("dims") for output in graph["outputs"]}

    def check(self, names, known):
        wrong, counts = [], {True: 0, False: 0, None: 0}
        for name, outputs in self.outputs(names):
            for value, truth in self.truth[name].items():
                if truth is None:
                    continue
                verdict = fits(outputs.get(value), truth)
                counts[verdict] += 1
                if verdict is False:
                    wrong.append(f"{name} {value}: {outputs[value]}, not {truth}")
        self.assertEqual(wrong, [])
        self.assertGreater(counts[True], known * sum(counts.values()), counts)

    def names(self, start="", end=""):
        return sorted(n for n in self.truth if n.startswith(start) and n.endswith(end))

    def test_random_chains(self):
        names = self.names(start="chain")
        self.assertEqual(len(names), 300)
        self.check(names, 0.85)

    def test_node_tests(self):
        """Where sizes are inputs, shapes depend on contents that nobody has."""
        self.check(self.names(end=".open"), 0.6)

    def test_node_tests_with_known_sizes(self):
        self.check(self.names(end=".fixed"), 0.75)


@unittest.skipUnless(PYTHON, "NRG_TORCH_PYTHON is not set")
class RandomNets(Made):
    MAKER = "make_nets.py"

    def files(self):
        """Truth and arguments: each traced graph with its list of modules, and the programs."""
        self.assertGreater(len(self.truth), 100)
        for name, truth in self.truth.items():
            yield truth, [self.path(name + ".txt"), "--params", self.path(name + ".json")]
            if os.path.exists(self.path(name + ".pt2")):
                yield truth, [self.path(name + ".pt2")]

    def test_counts_and_outputs(self):
        for truth, arguments in self.files():
            with self.subTest(arguments[0]):
                got = self.graphs(*arguments)
                totals = got["totals"]
                self.assertEqual(totals["unknown_operators"], 0)
                self.assertEqual((totals["macs"], totals["params"], totals["buffers"]),
                                 (truth["macs"], truth["params"], truth["buffers"]))
                self.assertEqual(got["outputs"][0]["dims"], truth["output"])

    @unittest.skipUnless(can_import("torchinfo"), "no torchinfo in the virtual environment")
    def test_torchinfo(self):
        for truth, arguments in self.files():
            with self.subTest(arguments[0]):
                totals = self.graphs("--convention", "torchinfo", *arguments)["totals"]
                self.assertEqual(totals["macs"], truth["torchinfo"])


if __name__ == "__main__":
    unittest.main()
