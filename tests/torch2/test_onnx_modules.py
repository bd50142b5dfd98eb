"""nrg graph on ONNX files: each module's own MACs, whoever exported the file and whatever was fused, as forward hooks
on the model itself count them.

Run by `make test-torch2`, which sets the Python. make_exports.py says what is made.
"""
import unittest

from test_graph_truth import Made, can_import

# The weight of a layer without bias, transposed, has no name left, and its container was never called: "v" is all.
LOST = ("text-script", "text-script-params")


@unittest.skipUnless(can_import("onnxscript, onnx"), "no onnxscript in the virtual environment")
class Exporters(Made):
    MAKER = "make_exports.py"

    def own_macs(self, name):
        graph = self.graphs(self.path(name + ".onnx"))
        return {m["name"]: m["macs_self"] for m in graph["modules"] if m.get("macs_self")}

    def test_every_module_has_its_macs(self):
        """Products that no module has for itself (attention) stand on its parent, and are not in the truth."""
        wrong = {}
        for name, truth in self.truth.items():
            macs = self.own_macs(name)
            if name in LOST:
                truth = {module: n for module, n in truth.items() if not module.endswith(".v")}
            found = {module: macs.get(module) for module in truth}
            others = {module for module in macs if module not in truth}
            if found != truth or (others and not name.startswith("text")):
                wrong[name] = {m: (found[m], truth[m]) for m in truth if found[m] != truth[m]}, others
        self.assertEqual(wrong, {})
        self.assertGreater(len(self.truth), 20)


if __name__ == "__main__":
    unittest.main()
