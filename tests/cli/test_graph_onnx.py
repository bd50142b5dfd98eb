"""nrg graph on ONNX models and TensorRT engines, against PyTorch's own counts.

Real files are outside the project (NRG_SHARED, default ../shared). Where a Python with PyTorch is at
hand, small models that use many operators are exported with it, in an old and a new opset, and
counted by its dispatcher.

Known exceptions, none of which changes MACs:
  parameters  the exporter folds BatchNorm into convolutions (fewer), merges equal tensors through
              Identity (fewer, a warning says how many) and drops parts it folds away
  FLOPs       LayerNorm, GELU and the like are spelled out in small operators (more)
  MACs        of matrix-vector products: PyTorch's counters see mm and bmm, not mv and dot
"""
import glob
import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NRG = os.environ.get("NRG_BIN", os.path.join(ROOT, "build", "nrg"))
SHARED = os.environ.get("NRG_SHARED", os.path.join(ROOT, "..", "shared"))
MODELS = os.path.join(SHARED, "data", "graphs", "torch-1.13")
JETSON = os.path.join(SHARED, "data", "jetson")
PYTHON = "/usr/bin/python3"

# MACs as PyTorch counts them for the models whose engines are in the data.
ENGINES = {"alexnet": 714188480, "resnet18": 1814073344, "mobilenet_v2": 300774272,
           "vgg16": 15470264320}

# Modules, inputs and what is done with them; run by a Python that has PyTorch.
EXPORT = r'''
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

class Count(TorchDispatchMode):
    macs = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name, a = str(func).split(".")[1], args
        if name in ("mm", "bmm"):
            self.macs += a[0].numel() * a[1].shape[-1]
        elif name in ("addmm", "baddbmm"):
            self.macs += a[1].numel() * a[2].shape[-1]
        elif name == "convolution":
            places = (a[0] if a[6] else out).shape
            self.macs += a[1].numel() * places[0] * torch.Size(places[2:]).numel()
        return out

class Net(nn.Module):
    def __init__(self, f, *parts):
        super().__init__()
        self.f, self.m = f, nn.ModuleList(parts)
    def forward(self, *x):
        return self.f(self.m, *x)

R = torch.randn
NETS = {
    "conv": (lambda m, x: m[2](m[1](m[0](x))), [nn.Conv2d(8, 16, (3, 5), (2, 1), (1, 2), groups=4),
             nn.BatchNorm2d(16), nn.ConvTranspose2d(16, 6, 3, 2, 1, 1, groups=2)], R(2, 8, 17, 19)),
    "conv1": (lambda m, x: m[0](x), [nn.Conv1d(4, 8, 3, 2, 1, 2)], R(2, 4, 33)),
    "conv3": (lambda m, x: m[0](x), [nn.Conv3d(2, 4, 3, padding=1)], R(1, 2, 5, 6, 7)),
    "pools": (lambda m, x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool2d(x, 2, 2),
              F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.adaptive_avg_pool2d(x, 7)), [],
              R(1, 3, 14, 14)),
    "resize": (lambda m, x, y: (F.interpolate(x, scale_factor=2), F.interpolate(x,
               size=y.shape[-2:], mode="bilinear", align_corners=False) + y), [],
               R(1, 3, 7, 9), R(1, 3, 20, 31)),
    "pad": (lambda m, x: (F.pad(x, (1, 2, 3, 4)), F.pad(x, (0, x.size(3) % 4, 0, x.size(2) // 2))),
            [], R(1, 3, 7, 9)),
    "lstm": (lambda m, x: m[0](x)[0], [nn.LSTM(10, 20, 2, bidirectional=True, batch_first=True)],
             R(3, 7, 10)),
    "gru": (lambda m, x: m[0](x)[0], [nn.GRU(10, 20, bidirectional=True)], R(7, 3, 10)),
    "norms": (lambda m, x: m[1](m[0](x).flatten(1)), [nn.GroupNorm(3, 6), nn.LayerNorm(120)],
              R(2, 6, 5, 4)),
    "picks": (lambda m, x: (x.topk(3, 1), x.argmax(1), x.split([1, 2, 3], 1), x.chunk(2, 2),
              x[:, 1:-1:2], x[..., -3:], x[:, -1], torch.cat([x, x], 1), torch.stack([x, x], 2)),
              [], R(2, 6, 10)),
    "views": (lambda m, x: (x.view(x.shape[0], -1), x.reshape(-1, 5), x.permute(2, 0, 1),
              x.transpose(1, 2).reshape(2, -1), x.unsqueeze(1).expand(-1, 4, -1, -1),
              x.repeat(1, 2, 3), x.view(2, 3, 2, 5).mean((1, 2)), x.std(1), x.norm(dim=1)), [],
              R(2, 6, 5)),
    "shuffle": (lambda m, x: x.view(x.size(0), 2, x.size(1) // 2, x.size(2), x.size(3)).transpose(
                1, 2).reshape(x.size(0), -1, x.size(2), x.size(3)), [], R(2, 8, 5, 4)),
    "made": (lambda m, x: (x + torch.arange(x.size(1))[None, :, None], torch.zeros(x.size(0), 4) + 1,
             torch.full((x.size(1),), 2.) + 1), [], R(2, 6, 5)),
    "mlp": (lambda m, x: m[1](F.gelu(m[0](x))), [nn.Linear(5, 9), nn.Linear(9, 3, bias=False)],
            R(2, 6, 5)),
    "heads": (lambda m, x: m[0](x), [nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32), 2)],
              R(5, 2, 16)),
    "attend": (lambda m, x: (lambda q, k, v: (torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
               .transpose(1, 2).reshape(x.size(0), x.size(1), -1))(*[y.view(x.size(0), x.size(1), 4,
               -1).transpose(1, 2) for y in m[0](x).chunk(3, -1)]), [nn.Linear(16, 48)], R(2, 5, 16)),
}
result = {}
for name, (f, parts, *x) in NETS.items():
    net = Net(f, *parts).eval()
    with torch.no_grad(), Count() as count:
        net(*x)
    for opset in (11, 16):
        path = "%s/%s_%d.onnx" % (sys.argv[1], name, opset)
        with torch.no_grad():
            torch.onnx.export(net, tuple(x), path, opset_version=opset)
        result[path] = count.macs
json.dump(result, sys.stdout)
'''


def graph(*args):
    done = subprocess.run([NRG, "graph", "--json", *args], capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def onnx_files():
    return sorted(glob.glob(os.path.join(MODELS, "*", "model.onnx")))


def reported(*parts):
    """A file that an earlier version got wrong; its README says what is right."""
    return os.path.join(SHARED, "data", "reported", *parts)


def truth(path, name):
    with open(os.path.join(os.path.dirname(path), name), encoding="utf-8") as text:
        return json.load(text)


@unittest.skipUnless(os.path.isdir(reported("05-onnx-wrong-shape")), "no reported files at hand")
class Reported(unittest.TestCase):
    # What onnx's own reference gives. None: a dimension that only the inputs' contents decide.
    DIMS = {
        "05-onnx-wrong-shape/test_loop11.onnx": [[1], [None, 1]],
        "05-onnx-wrong-shape/test_scan_sum.onnx": [None, None],
        "05-onnx-wrong-shape/test_range_float_type_positive_delta_expanded.onnx": [[None]],
        "05-onnx-wrong-shape/test_resize_downsample_sizes_nearest_not_larger.onnx": [[1, 1, 1, 2]],
        "05-onnx-wrong-shape/test_resize_downsample_sizes_nearest_not_smaller.onnx": [[1, 1, 2, 3]],
        "05-onnx-wrong-shape/test_resize_upsample_sizes_nearest_not_larger.onnx": [[1, 1, 7, 7]],
        "05-onnx-wrong-shape/test_resize_upsample_sizes_nearest_not_smaller.onnx": [[1, 1, 8, 8]],
        "05-onnx-wrong-shape/test_maxunpool_export_with_output_shape.onnx": [[1, 1, None, None]],
        "06-onnx-output-view/test_depthtospace_example_expanded.onnx": [[1, 2, 4, 6]],
        "06-onnx-output-view/test_flatten_axis1.onnx": [[2, 60]],
        "06-onnx-output-view/test_group_normalization_example_expanded.onnx": [[3, 4, 2, 2]],
        "06-onnx-output-view/test_layer_normalization_4d_axis1_expanded.onnx":
            [[2, 3, 4, 5], [2, 1, 1, 1], [2, 1, 1, 1]],
    }

    def test_outputs(self):
        for name, want in self.DIMS.items():
            with self.subTest(name):
                got = graph(reported(name))
                self.assertEqual([o.get("dims") for o in got["outputs"]], want)
                self.assertEqual(got["modules"][0].get("output", {}).get("dims"), want[0])

    def test_a_view_says_what_it_is_of(self):
        output = graph(reported("06-onnx-output-view/test_flatten_axis1.onnx"))["outputs"][0]
        self.assertEqual((output["id"], output["of"]), ("b", "a"))


@unittest.skipUnless(onnx_files(), "no exported models at hand")
class Exported(unittest.TestCase):
    def test_macs_in_total_and_per_module(self):
        for path in onnx_files():
            with self.subTest(path):
                got = graph(path)
                self.assertEqual(got["totals"]["macs"], truth(path, "info.json")["macs_total"])
                # A module with an unknown operator has no sum (the bags, and what holds them).
                modules = {m["name"]: m.get("macs") for m in got["modules"]}
                for name, want in truth(path, "module_macs.json").items():
                    if want["macs"] and modules.get(name, 0) is not None:
                        self.assertEqual(modules.get(name), want["macs"], name)

    def test_parameters_are_never_more_than_the_models(self):
        for path in onnx_files():
            with self.subTest(path):
                want = truth(path, "info.json")["total_params"]
                got = graph(path)["totals"]["params"]
                self.assertLessEqual(got, want)
                self.assertGreater(got, want * 0.99)

    def test_all_shapes_are_known(self):
        for path in onnx_files():
            with self.subTest(path):
                totals = graph(path)["totals"]
                # Bags of the embedding are cut out of data: their sizes are not shapes.
                self.assertEqual(totals["unknown_operators"], 8 if "dlrm" in path else 0)


class ExportedHere(unittest.TestCase):
    def test_many_operators_in_two_opsets(self):
        probe = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
        if probe.returncode:
            self.skipTest("no PyTorch for " + PYTHON)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PYTHON, "-c", EXPORT, folder], capture_output=True, text=True,
                                  timeout=300, check=False)
            if done.returncode:
                self.skipTest("this PyTorch does not export: " + done.stderr.strip()[-200:])
            for path, macs in json.loads(done.stdout[done.stdout.index("{"):]).items():
                with self.subTest(os.path.basename(path)):
                    got = graph(path)
                    self.assertEqual(got["totals"]["macs"], macs)
                    self.assertEqual(got["totals"]["unknown_operators"], 0)
                    warnings = [w for w in got.get("warnings", []) if "Identity" not in w]
                    self.assertEqual(warnings, [])


class Engines(unittest.TestCase):
    def files(self):
        found = [p for p in glob.glob(os.path.join(JETSON, "**", "*.json"), recursive=True)
                 if "trt_engine_info" in p or ".graph." in os.path.basename(p)
                 or p.endswith("graph.json")]
        if not found:
            self.skipTest("no engines at hand")
        return sorted(found)

    def test_all_read(self):
        for path in self.files():
            with self.subTest(path):
                got = graph(path)
                self.assertEqual(got["format"], "tensorrt")
                self.assertGreater(got["totals"]["macs"], 0)

    def test_macs_where_every_kernel_is_known(self):
        checked = 0
        for path in self.files():
            model = next((m for m in ENGINES if m in path), None)
            got = graph(path)
            if not model or "tests" in path.split(os.sep) or "multiple" in path:
                continue
            with self.subTest(path):
                if got["totals"]["unknown_operators"]:
                    self.assertLessEqual(got["totals"]["macs"], ENGINES[model])
                else:
                    self.assertEqual(got["totals"]["macs"], ENGINES[model])
                    checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_a_summary(self):
        found = glob.glob(os.path.join(JETSON, "**", "model_summary.json"), recursive=True)
        if not found:
            self.skipTest("no summary at hand")
        got = graph(found[0])
        self.assertEqual(got["totals"]["macs"], 900 * 128 * 9 + 169 * 16 * 128 * 9
                         + 576 * 120 + 120 * 84 + 84 * 10)


if __name__ == "__main__":
    unittest.main()
