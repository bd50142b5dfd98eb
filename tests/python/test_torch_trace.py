"""nrg.torch.trace: the graph that is made, read back by `nrg graph`, and a model that is left as it was.

What the graph must say follows from the models: names from named_modules(), MACs from their shapes.
"""
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder_standin import SOURCE, api, log  # noqa: E402  (before nrg)

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed")

import nrg.torch  # noqa: E402

NRG = os.environ.get("NRG_BIN") or os.path.join(SOURCE, "build", "nrg")
HAS_EXPORT = hasattr(torch, "export")


class Attend(nn.Module):
    """Arguments of every kind: tensors by keyword, in a dict, constants, flags that steer the control flow."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.conv = nn.Conv1d(8, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.calls = 0

    def forward(self, ids, mask=None, scale=1.0, extra=None, return_dict=False, depth=3):
        self.calls += 1
        h = self.embed(ids)
        for layer in list(self.layers)[:depth]:
            h = torch.relu(layer(h)) * scale
        if mask is not None:
            h = h * mask.unsqueeze(-1)
        if extra is not None:
            h = h + extra["bias"]
        h = self.drop(self.norm(self.conv(h.transpose(1, 2))))
        return {"out": h, "none": None, "n": 3} if return_dict else h


IDS = torch.arange(10).reshape(2, 5)
MASK = torch.ones(2, 5)
EXTRA = {"bias": torch.ones(8), "flag": True}


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        api.listening = True
        api.current += 1
        log.reset()

    def read(self, traced, suffix):
        """What `nrg graph` says of it."""
        if not os.path.exists(NRG):
            self.skipTest("nrg is not built")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model" + suffix)
            traced.save(path)
            done = subprocess.run([NRG, "graph", "--json", "--format", traced.format, path],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def check_graph(self, graph, net, depth):
        modules = {m["name"]: m for m in graph["modules"]}
        known = {name for name, _ in net.named_modules()}
        self.assertLessEqual(set(modules), known)
        self.assertEqual(modules["layers.1"]["class"].rsplit(".", 1)[-1], "Linear")
        self.assertEqual(modules["conv"]["macs"], 2 * 5 * 4 * 8 * 3)
        self.assertEqual(modules["layers.0"]["macs"], 2 * 5 * 8 * 8)
        self.assertEqual(graph["totals"]["macs"], depth * 2 * 5 * 8 * 8 + 2 * 5 * 4 * 8 * 3)
        self.assertEqual("layers.2" in modules and modules["layers.2"].get("macs", 0) > 0, depth == 3)


class Script(Case):
    def test_constants_keywords_and_dicts(self):
        net = Attend()
        traced = nrg.torch.trace(net, IDS, mask=MASK, scale=2.0, extra=EXTRA, return_dict=True, depth=2,
                                 nrg_way="script")
        self.assertEqual(traced.format, "torchscript")
        self.assertIn("scope: __module.layers.1", traced.graph_text)
        self.check_graph(self.read(traced, ".txt"), net, depth=2)

    def test_it_is_kept_in_the_recording(self):
        traced = nrg.torch.trace(Attend(), IDS, nrg_name="first", nrg_way="script")
        self.assertTrue(traced.stored)
        self.assertEqual(log.models, [("first", "torchscript", traced.data)])
        api.listening = False
        self.assertFalse(nrg.torch.trace(Attend(), IDS).stored)

    def test_the_model_is_left_as_it_was(self):
        net = Attend()
        net.layers[1].eval()
        state = {k: v.clone() for k, v in net.state_dict().items()}
        flags = {name: m.training for name, m in net.named_modules()}
        attributes = {name: dict(vars(m)) for name, m in net.named_modules()}
        before = torch.get_rng_state()
        nrg.torch.trace(net, IDS, mask=MASK)
        self.assertTrue(torch.equal(torch.get_rng_state(), before))
        self.assertEqual({name: m.training for name, m in net.named_modules()}, flags)
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(value, state[name]), name)
        self.assertEqual(net.calls, 0)
        self.assertIs(type(net), Attend)
        for name, module in net.named_modules():
            self.assertEqual(set(vars(module)), set(attributes[name]))
        self.assertEqual([p.grad for p in net.parameters()], [None] * len(list(net.parameters())))
        net(IDS).sum().backward()

    def test_the_mode_of_the_model_is_kept(self):
        net = Attend()
        self.assertIn("aten::dropout", nrg.torch.trace(net, IDS, nrg_way="script").graph_text)
        operators = self.read(nrg.torch.trace(net.eval(), IDS, nrg_way="script"), ".txt")["operators"]
        self.assertNotIn("aten::dropout", [o["kind"] for o in operators])

    def test_scopes_are_the_names_of_the_spans(self):
        net = Attend()
        with nrg.torch.watch(net):
            net(IDS)
            traced = nrg.torch.trace(net, IDS, nrg_way="script")
        spans = set(log.texts("module")) - {"Attend", "drop"}
        self.assertEqual(spans, {m["name"] for m in self.read(traced, ".txt")["modules"]
                                 if m["name"] not in ("", "drop", "layers")})
        self.assertEqual(log.texts("module").count("Attend"), 1)

    def test_tied_weights(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
                self.head.weight = self.embed.weight

            def forward(self, ids):
                return self.head(self.embed(ids))

        graph = self.read(nrg.torch.trace(Tied(), IDS, nrg_way="script"), ".txt")
        self.assertEqual(graph["totals"]["macs"], 2 * 5 * 8 * 20)

    def test_what_can_not_be_traced_raises_its_own_error(self):
        class Bad(nn.Module):
            def forward(self, x):
                raise ArithmeticError("no way")

        with self.assertRaisesRegex(ArithmeticError, "no way"):
            nrg.torch.trace(Bad(), IDS)
        with self.assertRaises(ValueError):
            nrg.torch.trace(Attend(), IDS, nrg_way="else")


@unittest.skipUnless(HAS_EXPORT, "torch.export came with PyTorch 2")
class Export(Case):
    def test_an_archive_without_weights(self):
        net = Attend().eval()
        traced = nrg.torch.trace(net, IDS, mask=MASK, scale=2.0, depth=2, nrg_way="export")
        self.assertEqual(traced.format, "pt2")
        with zipfile.ZipFile(io.BytesIO(traced.data)) as archive:
            self.assertFalse([n for n in archive.namelist()
                              if "/weights/" in n and not n.endswith(".json")])
        self.check_graph(self.read(traced, ".pt2"), net, depth=2)

    def test_it_stands_in_for_the_tracer(self):
        class Untraceable(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                if torch.jit.is_tracing():
                    raise RuntimeError("not with me")
                return self.fc(x)

        traced = nrg.torch.trace(Untraceable(), torch.ones(2, 4))
        self.assertEqual(traced.format, "pt2")
        self.assertEqual(self.read(traced, ".pt2")["totals"]["macs"], 32)

    def test_the_tracer_stands_in_for_it(self):
        class Unexportable(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                return self.fc(x) if float(x.sum()) > 0 else x

        self.assertEqual(nrg.torch.trace(Unexportable(), torch.ones(2, 4), nrg_way="auto-export").format,
                         "torchscript")

    def test_the_model_is_left_as_it_was(self):
        net = Attend()
        state = {k: v.clone() for k, v in net.state_dict().items()}
        nrg.torch.trace(net, IDS, nrg_way="export")
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(value, state[name]), name)
        self.assertEqual((net.calls, net.training), (0, True))


if __name__ == "__main__":
    unittest.main()
