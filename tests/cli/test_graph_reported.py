"""nrg graph on files that an earlier version got wrong, and on small siblings written here.

The reported files are outside the project (NRG_SHARED, default ../shared); README.md there says what
is right. Without them the siblings are tested.
"""
import json
import os
import struct
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NRG = os.environ.get("NRG_BIN", os.path.join(ROOT, "build", "nrg"))
SHARED = os.environ.get("NRG_SHARED", os.path.join(ROOT, "..", "shared"))
REPORTED = os.path.join(SHARED, "data", "reported")
needs_reported = unittest.skipUnless(os.path.isdir(REPORTED), "no reported files at hand")


def run(*args, text=None):
    return subprocess.run([NRG, "graph", *args], input=text, capture_output=True, text=True, timeout=60)


def graph(*args, text=None):
    done = run("--json", *args, text=text)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def reported(*parts):
    return os.path.join(REPORTED, *parts)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path


class WeightsAsInputs(Case):
    @needs_reported
    def test_reported(self):
        params = {"alexnet.2018-03-01.txt": 61100840, "alexnet.2018-07-15.txt": 61100840,
                  "alexnet.2018-09-15.txt": 61100840, "alexnet.2018-11-01.txt": 61100840,
                  "alexnet.2018-12-15.txt": 61100840, "d06_pt2.0_exported_graph_prefix.txt": 5088,
                  "d07_pt1.10_lenet_log.txt": 61706, "d17_pt1.0_mnn475.txt": 147712}
        for name, want in params.items():
            with self.subTest(name):
                got = graph(reported("02-params-zero", name))
                self.assertEqual(got["totals"]["params"], want)
                self.assertEqual(len(got["inputs"]), 1)
        buffers = graph(reported("02-params-zero", "d17_pt1.0_mnn475.txt"))["totals"]["buffers"]
        self.assertEqual(buffers, 257)

    @needs_reported
    def test_weights_belong_to_their_modules(self):
        got = graph(reported("02-params-zero", "alexnet.2018-07-15.txt"))
        modules = {m["name"]: m["params"] for m in got["modules"]}
        self.assertEqual((modules["features.0"], modules["classifier.1"]), (23296, 37752832))

    def test_data_before_weights_is_named(self):
        """A class token that is only concatenated could be an input as well."""
        got = graph("-", text="""graph(%0 : Float(2, 4, 8),
      %1 : Float(2, 1, 8),
      %2 : Float(3, 8),
      %3 : Float(3)) {
  %4 : Dynamic[] = prim::ListConstruct(%1, %0)
  %5 : int = prim::Constant[value=1]()
  %6 : Float(2, 5, 8) = aten::cat(%4, %5)
  %7 : Float(2, 5, 3) = aten::linear(%6, %2, %3)
  return (%7);
}
""")
        self.assertEqual(got["totals"]["params"], 27)
        self.assertTrue(any("before the first weight (%2)" in w for w in got["warnings"]), got["warnings"])

    def test_a_function_has_no_parameters(self):
        """Products of two inputs, and a module's own weights, are as they were."""
        got = graph("-", text="""graph(%a : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu),
      %b : Float(8, 3, strides=[3, 1], requires_grad=0, device=cpu)):
  %2 : Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::matmul(%a, %b)
  return (%2)
""")
        self.assertEqual((got["totals"]["params"], len(got["inputs"])), (0, 2))

    def test_recurrent_weights_are_a_list(self):
        got = graph("-", text="""graph(%0 : Float(7, 2, 5),
      %1 : Float(24, 5),
      %2 : Float(24, 6),
      %3 : Float(24),
      %4 : Float(24)) {
  %5 : Float(1, 2, 6) = aten::zeros()
  %6 : Dynamic[] = prim::ListConstruct(%5, %5)
  %7 : Dynamic[] = prim::ListConstruct(%1, %2, %3, %4)
  %8 : bool = prim::Constant[value=1]()
  %9 : int = prim::Constant[value=1]()
  %10 : float = prim::Constant[value=0]()
  %11 : bool = prim::Constant[value=0]()
  %12 : Float(7, 2, 6), %13 : Float(1, 2, 6), %14 : Float(1, 2, 6) = aten::lstm(%0, %6, %7, %8, %9, %10, %11, %11, %11), scope: Net/LSTM[rnn]
  return (%12);
}
""")
        self.assertEqual(got["totals"]["params"], 24 * 5 + 24 * 6 + 48)
        self.assertEqual({m["name"]: m["params"] for m in got["modules"]}["rnn"], 312)


class OldAttributes(Case):
    @needs_reported
    def test_reported(self):
        got = graph("--ops", reported("12-torch-0.4-attributes", "TestJit.test_alexnet.0d3a5f.txt"))
        pools = [o for o in got["operators"] if o["kind"] == "aten::max_pool2d_with_indices"]
        # Eight comparisons for each of the outputs of a window of nine.
        self.assertEqual([o["flops"] for o in pools], [8 * 64 * 27 * 27, 8 * 192 * 13 * 13, 8 * 256 * 6 * 6])

    def test_dropout_is_nothing_in_eval(self):
        text = """graph(%0 : Float(2, 8)) {
  %1 : Float(2, 8) = aten::dropout[p=0.5, train=TRAIN](%0)
  return (%1);
}
"""
        for train, operators in (("0", 0), ("1", 1)):
            got = graph("-", text=text.replace("TRAIN", train))
            self.assertEqual(got["totals"]["operators"], operators)


class Buffers(Case):
    @staticmethod
    def safetensors(tensors):
        header, at, sizes = {}, 0, {"F32": 4, "I64": 8, "I32": 4, "U8": 1, "I8": 1, "BOOL": 1}
        for name, (dtype, shape) in tensors.items():
            size = sizes[dtype]
            for dim in shape:
                size *= dim
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + bytes(at)

    def test_integers_of_a_state_dict(self):
        path = self.write("model.safetensors", self.safetensors({
            "attn.qkv.weight": ("F32", [6, 2]), "attn.relative_index": ("I64", [49, 49]),
            "attn.causal_mask": ("F32", [4, 4]), "attn.g_idx": ("I32", [5]), "fc.weight": ("I8", [3, 2])}))
        totals = graph(path)["totals"]
        self.assertEqual((totals["params"], totals["buffers"]), (12 + 6, 49 * 49 + 16 + 5))


class Engines(Case):
    @needs_reported
    def test_reported(self):
        # Batch, positions and weights, from the files by hand; 112x112 are the positions before the pool.
        kinds = {"trt::ConvActPool": [32 * 112 * 112 * 9408], "trt::CublasConvolution": [32 * 2048000],
                 "trt::FusedConvActConvolution": [14 * 14 * 12288, 14 * 14 * 36864], "trt::Padding": [0]}
        found = {}
        for name in sorted(os.listdir(reported("07-trt-conv-unknown"))):
            got = graph(reported("07-trt-conv-unknown", name))
            self.assertEqual(got["totals"]["unknown_operators"], 0, name)
            for operator in got["operators"]:
                found.setdefault(operator["kind"], []).append(operator["macs"])
        self.assertEqual({kind: found[kind] for kind in kinds}, kinds)

    def layer(self, **changes):
        layer = {"Name": "conv + relu + conv", "LayerType": "FusedConvActConvolution",
                 "Inputs": [{"Name": "x", "Dimensions": [1, 8, 5, 5], "Format/Datatype": "FP16"}],
                 "Outputs": [{"Name": "y", "Dimensions": [1, 4, 5, 5], "Format/Datatype": "FP16"}],
                 "Kernel": [3, 3], "OutMaps": 4, "Groups": 1, "Weights": {"Type": "Half", "Count": 288}}
        layer.update(changes)
        text = json.dumps({"Layers": [layer], "Bindings": ["x", "y"]})
        return graph(self.write("engine.json", text))["totals"]

    def test_a_fused_kind_counts_only_as_one_convolution(self):
        self.assertEqual(self.layer()["macs"], 25 * 288)
        self.assertEqual(self.layer(Weights={"Type": "Half", "Count": 288 + 1152})["unknown_operators"], 1)

    def test_padding_before_a_pool(self):
        totals = self.layer(LayerType="ConvActPool", ConvKernel=[3, 3], ConvStride=[2, 2], ConvPrePadding=[0, 0],
                            ConvPostPadding=[0, 1], ConvPaddingMode="kEXPLICIT_ROUND_UP", PoolingWindowSize=[2, 2],
                            ConvWeights={"Type": "Half", "Count": 288}, Weights=None)
        self.assertEqual(totals["macs"], 2 * 3 * 288)


class Gguf(Case):
    @needs_reported
    def test_reported(self):
        got = graph(reported("10-gguf-bytes-zero", "all.gguf"))
        sizes = {m["name"].split(".")[-1]: m["param_bytes"] for m in got["modules"]}
        self.assertEqual((sizes["nvfp4"], sizes["q1_0"], sizes["q4_0"]), (2304, 576, 2304))
        self.assertEqual((got["totals"]["params"], got["warnings"]), (34 * 4096, []))

    @staticmethod
    def text(word):
        return struct.pack("<Q", len(word)) + word.encode()

    def test_an_unknown_type_has_unknown_bytes(self):
        """What comes after this version: missing, never 0."""
        tensors = b"".join(self.text(name) + struct.pack("<IQIQ", 1, 64, kind, 0)
                           for name, kind in (("a.weight", 0), ("b.weight", 250)))
        path = self.write("new.gguf", b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + tensors + bytes(1000))
        got = graph(path)
        modules = {m["name"]: m for m in got["modules"]}
        self.assertEqual((modules["a"]["param_bytes"], modules["b"].get("param_bytes")), (256, None))
        self.assertEqual((got["totals"]["param_bytes"], got["totals"]["unsized_params"]), (256, 1))
        self.assertTrue(any("type 250 of 'b.weight'" in w for w in got["warnings"]), got["warnings"])
        self.assertIn("256.0 B+?", run(path).stdout)


MODEL = os.path.join(SHARED, "data", "graphs", "torch-1.13", "mlp", "model.pt")
HAS_TORCH = not subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode


@unittest.skipUnless(os.path.exists(MODEL), "no archive at hand")
class Archives(Case):
    def test_says_how_to_get_operators(self):
        path = self.write("my model.pt", open(MODEL, "rb").read())
        command = graph(path)["dump_command"]
        self.assertIn(f'torch.jit.load("{path}")', command)
        self.assertIn(command, run(path).stdout)
        self.assertNotIn("dump_command", graph("-", text=SeveralGraphs.GRAPH))

    def test_no_name_breaks_the_command(self):
        path = self.write("it's.pt", open(MODEL, "rb").read())
        self.assertIn('torch.jit.load("model.pt")', graph(path)["dump_command"])

    @unittest.skipUnless(HAS_TORCH, "no PyTorch at hand")
    def test_the_command_works(self):
        path = self.write("model.pt", open(MODEL, "rb").read())
        command = graph(path)["dump_command"].replace("(1, 3, 224, 224)", "(8, 1, 28, 28)")
        command = command.replace("python3", "/usr/bin/python3", 1)
        subprocess.run(["sh", "-c", command], cwd=self.folder.name, check=True, capture_output=True, timeout=120)
        self.assertEqual(graph(path[:-3] + ".onnx")["totals"]["macs"], 1741824)


class SeveralGraphs(Case):
    GRAPH = """graph(%a : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
  %1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::relu(%a)
  return (%1)

"""

    @needs_reported
    def test_reported(self):
        got = graph(reported("11-messages", "d19_nnc_log_many.txt"))
        self.assertIn("only the first graph is counted, not the other 3: line 15, line 27, line 42", got["warnings"])

    def test_one_is_no_news(self):
        self.assertEqual(graph("-", text=self.GRAPH)["warnings"], [])

    def test_very_many(self):
        warning = graph("-", text=self.GRAPH * 90)["warnings"][0]
        self.assertIn("the other 89: line 5, line 9", warning)
        self.assertTrue(warning.endswith(", ..."), warning)


if __name__ == "__main__":
    unittest.main()
