"""The TorchScript reader against graphs walked through PyTorch's own API.

Every graph.txt and inlined_graph.txt of the shared data is compared node by node with the
graph.json.gz beside it: kinds, inputs, outputs, names, dims, strides, dtypes, devices, scopes,
attributes, blocks. Texts without ground truth must be read completely, with as many nodes as they
have node lines. The data is not part of the project: without it (NRG_SHARED) these tests skip.
"""
import glob
import gzip
import json
import math
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.abspath(os.environ.get("NRG_BIN", os.path.join(ROOT, "build", "nrg"))))
DUMP = os.environ.get("NRG_GRAPH_DUMP", os.path.join(BUILD, "tests", "graph-dump"))
SHARED = os.environ.get("NRG_SHARED", os.path.join(ROOT, "..", "shared"))
GRAPHS = os.path.join(SHARED, "data", "graphs")

DTYPES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "ComplexHalf": "complex32", "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32",
}


def dump(path):
    run = subprocess.run([DUMP, path], capture_output=True, text=True, timeout=60, check=False)
    if run.returncode:
        raise AssertionError(f"{path}: {run.stderr}")
    return json.loads(run.stdout)


def node_lines(path):
    """Lines that are nodes, counted without any knowledge of the grammar."""
    with open(path, encoding="utf-8") as text:
        return sum(1 for line in text if re.match(r"\s+(%.* )?= (\^|\w+::)\w", line))


def all_nodes(graph):
    for node in graph["nodes"]:
        yield node
        for block in node.get("blocks", []):
            yield from all_nodes(block)


def same_number(a, b):
    a, b = float(a), float(b)
    return a == b or (math.isnan(a) and math.isnan(b))


@unittest.skipUnless(os.path.isdir(GRAPHS), "the shared graphs are not here")
class GroundTruth(unittest.TestCase):
    maxDiff = 2000

    def same_type(self, ours, truth, where):
        # A function's type prints without its name.
        name = "Function" if truth["kind"] == "FunctionType" else truth["str"]
        self.assertEqual(ours["str"], name, where)
        if truth["kind"] != "TensorType":
            return
        self.assertEqual(ours["sizes"], truth["sizes"], where)
        # The printer leaves the strides out where there are none to print.
        self.assertEqual(ours["strides"] or None, truth["strides"] or None, where)
        self.assertEqual(ours["scalar"], truth["scalar"] and DTYPES[truth["scalar"]], where)
        self.assertEqual(ours["device"], truth["device"], where)

    def same_values(self, ours, truth, where):
        self.assertEqual([v["name"] for v in ours], [v["name"] for v in truth], where)
        for mine, theirs in zip(ours, truth):
            self.same_type(mine["type"], theirs["type"], f"{where} %{mine['name']}")

    def same_tensor(self, ours, truth, where):
        if "type" in ours:
            self.assertEqual(ours["type"]["sizes"], truth["tensor"], where)
            self.assertEqual("torch." + ours["type"]["scalar"], truth["dtype"], where)
        if "value" in ours and truth.get("value") is not None:
            for mine, theirs in zip(ours["value"], truth["value"], strict=True):
                self.assertTrue(math.isclose(float(mine), float(theirs), rel_tol=1e-4), where)

    def same_attrs(self, ours, truth, where):
        mine = {k: v for k, v in ours.items() if k != "scalar_args"}
        self.assertEqual(list(mine), list(truth), where)
        for name, theirs in truth.items():
            if theirs["k"] == "tys":
                continue
            self.assertEqual(mine[name]["k"], theirs["k"], where)
            if theirs["k"] == "t":
                self.same_tensor(mine[name]["v"], theirs["v"], where)
            elif theirs["k"] == "f":
                self.assertTrue(same_number(mine[name]["v"], theirs["v"]), where)
            else:
                self.assertEqual(mine[name]["v"], theirs["v"], where)

    def same_block(self, ours, truth, where):
        self.same_values(ours["in"], truth["in"], where)
        self.assertEqual([n["kind"] for n in ours["nodes"]], [n["kind"] for n in truth["nodes"]])
        for mine, theirs in zip(ours["nodes"], truth["nodes"]):
            at = f"{where}:{mine['line']}"
            self.assertEqual(mine["in"], theirs["in"], at)
            self.same_values(mine["out"], theirs["out"], at)
            self.assertEqual(mine["scope"], theirs["scope"], at)
            self.same_attrs(mine.get("attrs", {}), theirs.get("attrs", {}), at)
            self.assertEqual(len(mine.get("blocks", [])), len(theirs.get("blocks", [])), at)
            for a, b in zip(mine.get("blocks", []), theirs.get("blocks", [])):
                self.same_block(a, b, at)
        self.assertEqual(ours["out"], truth["out"], where)

    def test_every_graph_agrees_with_pytorch(self):
        paths = glob.glob(os.path.join(GRAPHS, "*", "*", "*graph.json.gz"))
        self.assertGreater(len(paths), 40)
        for path in paths:
            text = path.replace(".json.gz", ".txt")
            with self.subTest(text), gzip.open(path) as truth:
                ours = dump(text)
                self.assertEqual(ours["warnings"], [])
                self.assertEqual(len(ours["graphs"]), 1)
                self.assertTrue(ours["graphs"][0]["complete"])
                self.same_block(ours["graphs"][0], json.load(truth), text)

    def test_modules_of_traced_graphs_exist(self):
        """op->module from the scope is a name in the model's own list of modules."""
        for path in glob.glob(os.path.join(GRAPHS, "torch-1.13", "*", "inlined_graph.txt")):
            with open(os.path.join(os.path.dirname(path), "modules.json"), encoding="utf-8") as f:
                names = {module["name"] for module in json.load(f)}
            with self.subTest(path):
                found = {n.get("module", "") for n in all_nodes(dump(path)["graphs"][0])}
                self.assertLessEqual(found, names | {""})


@unittest.skipUnless(os.path.isdir(GRAPHS), "the shared graphs are not here")
class OtherTexts(unittest.TestCase):
    def texts(self):
        for pattern in ("torch-1.13/*/*graph*.txt", "torch-1.13-variants/*.txt",
                        "synthetic-old-syntax/*.syntax*.txt"):
            for path in sorted(glob.glob(os.path.join(GRAPHS, pattern))):
                if os.path.getsize(path):  # a model without submodules has an empty list of them
                    yield path

    def test_every_text_is_read_completely(self):
        paths = list(self.texts())
        self.assertGreater(len(paths), 100)
        for path in paths:
            with self.subTest(path):
                model = dump(path)
                self.assertEqual(model["warnings"], [])
                self.assertTrue(all(graph["complete"] for graph in model["graphs"]))
                nodes = sum(graph["n_ops"] for graph in model["graphs"])
                self.assertEqual(nodes, node_lines(path))

    def test_old_syntax_gives_the_same_graph(self):
        for path in glob.glob(os.path.join(GRAPHS, "synthetic-old-syntax", "*.syntax*.txt")):
            model = os.path.basename(path).split(".syntax")[0]
            new = os.path.join(GRAPHS, "torch-1.13", model, "inlined_graph.txt")
            if not os.path.exists(new):
                continue
            new = dump(new)["graphs"][0]
            old = dump(path)["graphs"][0]
            strides = ".syntax1.6rc" in path or ".syntax1.7" in path
            with self.subTest(path):
                for a, b in zip(all_nodes(old), all_nodes(new), strict=True):
                    self.assertEqual((a["kind"], a["in"], a["scope"], a.get("attrs")),
                                     (b["kind"], b["in"], b["scope"], b.get("attrs")))
                    for mine, theirs in zip(a["out"], b["out"], strict=True):
                        self.assertEqual(mine["name"], theirs["name"])
                        self.assertEqual(mine["type"]["str"], theirs["type"]["str"])
                        self.assertEqual(mine["type"].get("sizes"), theirs["type"].get("sizes"))
                        if strides:
                            self.assertEqual(mine["type"].get("strides"),
                                             theirs["type"].get("strides"))

    def test_subgraphs_are_tied_to_their_nodes(self):
        tied = 0
        for path in glob.glob(os.path.join(GRAPHS, "torch-1.13", "*", "executed_graph.txt")):
            model = dump(path)
            names = [graph["name"] for graph in model["graphs"]]
            refs = [node["attrs"]["Subgraph"]["v"] for graph in model["graphs"]
                    for node in all_nodes(graph) if "Subgraph" in node.get("attrs", {})]
            with self.subTest(path):
                self.assertEqual(sorted(refs), sorted(names[1:]))
            tied += len(refs)
        self.assertGreater(tied, 10)

    def test_submodule_graphs_have_their_names(self):
        path = os.path.join(GRAPHS, "torch-1.13", "mlp", "submodule_graphs.txt")
        names = [graph["name"] for graph in dump(path)["graphs"]]
        self.assertEqual(names[:3], ["net", "net.0", "net.1"])

    def test_a_cut_text_is_recovered_wherever_it_is_cut(self):
        path = os.path.join(GRAPHS, "torch-1.13", "script_control_flow", "inlined_graph.txt")
        with open(path, "rb") as whole:
            text = whole.read()
        full = [n["kind"] for n in all_nodes(dump(path)["graphs"][0])]
        for cut in range(200, len(text) - 20, 397):
            run = subprocess.run([DUMP, "-", "torchscript"], input=text[:cut], capture_output=True,
                                 timeout=60, check=False)
            with self.subTest(cut=cut):
                self.assertEqual(run.returncode, 0, run.stderr)
                model = json.loads(run.stdout)
                kinds = [n["kind"] for n in all_nodes(model["graphs"][0])]
                self.assertFalse(model["graphs"][0]["complete"])
                self.assertEqual(kinds, full[:len(kinds)])
                self.assertGreaterEqual(len(kinds), text[:cut].count(b" = ") - 1)
                self.assertIn("without its return", model["warnings"][0])


if __name__ == "__main__":
    unittest.main()
