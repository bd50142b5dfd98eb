"""Parameters out of model files: exact for every model.pt of the shared data, and hostile files.

Runs build/tests/params-dump (NRG_BUILD/tests/params-dump under tests/run_all): one JSON object a
line for every module, parameter, operator and warning.
"""
import glob
import io
import json
import os
import pickle
import struct
import subprocess
import tempfile
import unittest
import zipfile

SOURCE = os.environ.get("NRG_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NRG_BUILD") or os.path.join(SOURCE, "build")
DUMP = os.path.join(BUILD, "tests", "params-dump")
SHARED = os.environ.get("NRG_SHARED") or os.path.join(SOURCE, "..", "shared")
DATA = os.path.join(SOURCE, "tests", "data", "graph")
MODELS = sorted(glob.glob(os.path.join(SHARED, "data/graphs/torch-1.13/*/model.pt")))


def dump(path, *options):
    done = subprocess.run([DUMP, path, *options], capture_output=True, text=True, timeout=120)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def shapes(rows, buffers):
    return {r["param"]: [r["dims"], r["dtype"]] for r in rows
            if "param" in r and r["buffer"] == buffers and not r["extra"]}


class Dumped(unittest.TestCase):
    def read(self, path, *options):
        code, rows, err = dump(path, *options)
        self.assertEqual(code, 0, err)
        return rows

    def refused(self, content, name="model.pt"):
        """The error of a file with this content: a clean exit, never a signal or a sanitizer."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            code, _, err = dump(path)
        self.assertEqual(code, 1, err)
        self.assertNotIn("Sanitizer", err)
        return err


@unittest.skipUnless(MODELS, "no shared data")
class Shared(Dumped):
    def test_archives(self):
        for path in MODELS:
            with self.subTest(path.split("/")[-2]):
                rows = self.read(path)
                with open(os.path.join(os.path.dirname(path), "modules.json"), encoding="utf-8") as text:
                    modules = json.load(text)
                with open(os.path.join(os.path.dirname(path), "info.json"), encoding="utf-8") as text:
                    info = json.load(text)
                want = {"params": {}, "bufs": {}}
                for module in modules:
                    prefix = module["name"] + "." if module["name"] else ""
                    for kind, names in want.items():
                        names.update({prefix + k: v for k, v in module[kind].items()})
                self.assertEqual(shapes(rows, False), want["params"])
                self.assertEqual(shapes(rows, True), want["bufs"])
                self.assertEqual([(r["module"], r["class"]) for r in rows if "class" in r],
                                 [(m["name"], m["class"]) for m in modules])
                own = {(r["storage"], r["offset"]): r for r in rows if "param" in r and not r["buffer"]}
                self.assertEqual(sum(r["bytes"] for r in own.values()), info["param_bytes"])
                self.assertFalse([r for r in rows if "warning" in r])

    def test_modules_json_equals_archive(self):
        for path in MODELS:
            with self.subTest(path.split("/")[-2]):
                rows = self.read(os.path.join(os.path.dirname(path), "modules.json"))
                archive = self.read(path)
                for buffers in (False, True):
                    self.assertEqual(shapes(rows, buffers), shapes(archive, buffers))

    def test_quantized_weights(self):
        rows = self.read(os.path.join(SHARED, "data/graphs/torch-1.13/quant_static_qnnpack/model.pt"))
        extra = {r["param"]: (r["dims"], r["dtype"]) for r in rows if r.get("extra")}
        self.assertEqual(extra["c1._packed_params.weight"], ([16, 3, 3, 3], "qint8"))
        self.assertEqual(extra["fc._packed_params._packed_params.weight"], ([10, 16], "qint8"))
        self.assertEqual(extra["fc._packed_params._packed_params.bias"], ([10], "float32"))


class Checkpoints(Dumped):
    NAMES = ["emb.weight", "bn.weight", "bn.bias", "out.weight", "fixed.weight", "fixed.bias"]

    def test_forms_of_one_model(self):
        for name in ("tied.pt", "state.pt", "state_legacy.pt", "checkpoint.pt"):
            with self.subTest(name):
                rows = self.read(os.path.join(DATA, name))
                params = {r["param"]: r for r in rows if "param" in r and not r["buffer"]}
                self.assertEqual(sorted(params), sorted(self.NAMES))
                self.assertEqual(params["emb.weight"]["storage"], params["out.weight"]["storage"])
                self.assertNotEqual(params["emb.weight"]["storage"], params["bn.bias"]["storage"])
                self.assertEqual(sorted(shapes(rows, True)),
                                 ["bn.num_batches_tracked", "bn.running_mean", "bn.running_var"])
                self.assertEqual([r["module"] for r in rows if "class" in r], ["", "emb", "bn", "out", "fixed"])

    def test_trainable(self):
        rows = {r["param"]: r for r in self.read(os.path.join(DATA, "tied.pt")) if "param" in r}
        self.assertEqual(rows["fixed.weight"]["trainable"], 0)
        self.assertEqual(rows["fixed.bias"]["trainable"], 1)
        state = {r["param"]: r for r in self.read(os.path.join(DATA, "state.pt")) if "param" in r}
        self.assertEqual(state["fixed.bias"]["trainable"], -1)

    def test_whole_module(self):
        rows = self.read(os.path.join(DATA, "module.pt"))
        self.assertIn({"module": "1", "class": "torch.nn.modules.batchnorm.BatchNorm1d"}, rows)
        self.assertEqual(len(shapes(rows, False)), 4)
        self.assertEqual(len(shapes(rows, True)), 3)

    def test_newer_protocols(self):
        """Plain containers by protocol 4 and 5 (frames, memoize, short texts)."""
        for protocol in (2, 3, 4, 5):
            data = pickle.dumps({"a": [1, 2.5, -3, 10**12, b"x", None, True], "b": {"c": "é" * 300}}, protocol)
            self.assertIn("holds no tensors", self.refused(archive({"data.pkl": data})))


def archive(entries, root="m"):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        for name, content in entries.items():
            out.writestr((root + "/" if root else "") + name, content)
    return data.getvalue()


class Call:
    """Pickles as a call of a global by name, whatever it is."""

    def __init__(self, module, name, *args):
        self.module, self.name, self.args = module, name, args

    def stream(self):
        out = b"\x80\x02c" + f"{self.module}\n{self.name}\n".encode() + b"("
        for arg in self.args:
            out += b"X" + struct.pack("<I", len(arg)) + arg.encode()
        return out + b"tR."


class Hostile(Dumped):
    def test_pickle_that_calls(self):
        for module, name in (("os", "system"), ("builtins", "eval"), ("posix", "system"), ("subprocess", "Popen"),
                             ("torch.hub", "load"), ("__main__", "Net"), ("torch", "load"), ("numpy", "load")):
            err = self.refused(archive({"data.pkl": Call(module, name, "touch pwned").stream()}))
            self.assertIn(f"asks for {module}.{name}: refused", err)
        stacked = b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."
        self.assertIn("asks for os.system: refused", self.refused(archive({"data.pkl": stacked})))
        self.assertFalse(os.path.exists("pwned"))

    def test_deep_nesting(self):
        deep = b"\x80\x02" + b"](" * 10**6 + b"e" * 10**6 + b"."
        self.assertIn("no tensors", self.refused(archive({"data.pkl": b"\x80\x02]."})))
        self.assertIn("nested deeper than 1000", self.refused(archive({"data.pkl": deep})))

    def test_cycles_and_sharing(self):
        cycle = b"\x80\x02]q\x00h\x00a."
        self.assertIn("nested deeper", self.refused(archive({"data.pkl": cycle})))
        doubled = b"\x80\x02]" + b"".join(b"q" + bytes([i]) + b"](h" + bytes([i]) + b"h" + bytes([i]) + b"e"
                                            for i in range(60)) + b"."
        self.assertIn("values to visit", self.refused(archive({"data.pkl": doubled})))

    def test_broken_pickles(self):
        for stream in (b"", b"\x80", b"\x80\x09.", b"\x80\x02.", b"\x80\x02t.", b"\x80\x02h\x00.", b"\x80\x02(.",
                       b"\x80\x02Nr\xff\xff\xff\xff.", b"\x80\x02X\xff\xff\xff\xff.", b"\x80\x02Nb.", b"\x80\x02NNa.",
                       b"\x80\x02}NNNu.", b"I1\n.", b"\x80\x02NNR.", b"\x80\x02\x8b\xff\xff\xff\xff.",
                       b"\x80\x04\x8d" + b"\xff" * 8 + b"."):
            self.assertTrue(self.refused(archive({"data.pkl": stream})), stream)

    def test_overflowing_shape(self):
        stream = (b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage"
                  b"ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQK\x00"
                  b"\x8a\x05\x00\x00\x00\x00\x10\x8a\x05\x00\x00\x00\x00\x10\x86K\x01K\x01\x86\x89}tRs.")
        self.assertIn("more elements than 63 bits", self.refused(archive({"data.pkl": stream})))

    def test_zip_bomb(self):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("m/data.pkl", b"\0" * (64 << 20))
        self.assertIn("would unpack", self.refused(data.getvalue()))
        with zipfile.ZipFile(io.BytesIO(data.getvalue())) as check:
            self.assertLess(check.infolist()[0].compress_size, 100000)

    def test_two_entries_of_one_name(self):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as out, self.assertWarns(UserWarning):
            out.writestr("m/data.pkl", b"\x80\x02N.")
            out.writestr("m/data.pkl", b"\x80\x02N.")
        self.assertIn("two ZIP entries named 'm/data.pkl'", self.refused(data.getvalue()))

    def test_overlapping_entries(self):
        data = bytearray(archive({"data.pkl": b"\x80\x02N." * 50, "other": b"\x80\x02N."}))
        at = data.rindex(b"PK\x01\x02")
        data[at + 42:at + 46] = struct.pack("<I", 40)
        self.assertIn("overlaps", self.refused(bytes(data)))
        at = data.index(b"PK\x01\x02")
        data[at + 20:at + 28] = struct.pack("<II", 10**6, 10**6)
        self.assertIn("overlaps", self.refused(bytes(data)))

    def test_names_with_tricks(self):
        for name in ("../evil", "m/../../evil", "/etc/passwd", "m\\evil", "m/a\x01b"):
            info = zipfile.ZipInfo("x")
            info.filename = name
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w") as out:
                out.writestr(info, b"\x80\x02N.")
            self.assertIn("name that no model has", self.refused(data.getvalue()), name)

    def test_truncated_at_every_byte(self):
        with open(os.path.join(DATA, "module.pt"), "rb") as file:
            whole = file.read()
        for cut in list(range(1, len(whole), 97)) + [len(whole) - 1]:
            self.assertTrue(self.refused(whole[:cut]))

    def test_other_families(self):
        for name, content, word in (
                ("model.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 64, "tf2onnx"),
                ("saved_model.pb", b"\x08\x01\x12\x00", "SavedModel"),
                ("m.tflite", b"\x1c\0\0\0TFL3" + b"\0" * 32, "Lite"),
                ("m.keras", archive({"config.json": "{}", "metadata.json": "{}", "model.weights.h5": b"x"}, ""), "Keras"),
                ("m.pt", archive({"model.json": "{}", "tensors/0": b"x"}), "1.3 or older"),
                ("m.pt2", archive({"data/aotinductor/model/a.so": b"x"}), "AOTInductor"),
                ("m.pkl", pickle.dumps([1, 2], 4), "pickle"),
                ("m.zip", archive({"readme.txt": "x"}), "none that nrg knows")):
            self.assertIn(word, self.refused(content, name), name)

    def test_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("folder without a model", dump(folder)[2])
            with open(os.path.join(folder, "saved_model.pb"), "wb") as file:
                file.write(b"\x08\x01")
            self.assertIn("tf2onnx", dump(folder)[2])


def safetensors(tensors, cut=0):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * (at - cut)


class Weights(Dumped):
    def write(self, folder, name, content):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_safetensors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = self.write(folder, "model.safetensors", safetensors({
                "a.w": ("F32", [3, 4], 48), "a.h": ("BF16", [5], 10), "b.q": ("F8_E4M3", [2, 2], 4), "s": ("I64", [], 8)}))
            rows = {r["param"]: r for r in self.read(path) if "param" in r}
            self.assertEqual(rows["a.w"]["dims"], [3, 4])
            self.assertEqual((rows["a.h"]["dtype"], rows["a.h"]["bytes"]), ("bfloat16", 10))
            self.assertEqual(rows["b.q"]["dtype"], "float8_e4m3fn")
            self.assertEqual(rows["s"]["dims"], [])
            cut = self.read(self.write(folder, "cut.safetensors", safetensors({"a": ("F32", [100], 400)}, 300)))
            self.assertTrue([r for r in cut if "warning" in r])
        self.assertIn("63 bits", self.refused(safetensors({"a": ("F32", [2**40, 2**40], 4)}), "x.safetensors"))
        self.assertIn("not a JSON object", self.refused(struct.pack("<Q", 9) + b"{\"a\": [1}" + b"x" * 9, "x.safetensors"))
        self.assertIn("cut off", self.refused(struct.pack("<Q", 5000) + b"{\"a\":", "x.safetensors"))

    def test_shards(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "m-00001-of-00002.safetensors", safetensors({"x.a": ("F32", [2], 8)}))
            self.write(folder, "m-00002-of-00002.safetensors", safetensors({"y.b": ("F16", [3], 6)}))
            index = {"metadata": {"total_size": 14}, "weight_map": {
                "x.a": "m-00001-of-00002.safetensors", "y.b": "m-00002-of-00002.safetensors"}}
            path = self.write(folder, "model.safetensors.index.json", json.dumps(index).encode())
            for name in (path, folder):
                self.assertEqual(shapes(self.read(name), False), {"x.a": [[2], "float32"], "y.b": [[3], "float16"]})
            index["weight_map"]["z"] = "gone.safetensors"
            rows = self.read(self.write(folder, "model.safetensors.index.json", json.dumps(index).encode()))
            self.assertIn("gone.safetensors", [r for r in rows if "warning" in r][0]["warning"])
            index["weight_map"]["z"] = "../secret"
            path = self.write(folder, "model.safetensors.index.json", json.dumps(index).encode())
            self.assertIn("outside its folder", dump(path)[2])

    def gguf(self, version, tensors, pairs=()):
        count = "<I" if version == 1 else "<Q"

        def text(s):
            return struct.pack(count, len(s)) + s.encode()
        out = b"GGUF" + struct.pack("<I", version) + struct.pack(count, len(tensors)) + struct.pack(count, len(pairs))
        for key, kind, value in pairs:
            out += text(key) + struct.pack("<I", kind) + value
        for name, (dims, kind) in tensors.items():
            out += text(name) + struct.pack("<I", len(dims))
            out += b"".join(struct.pack(count, d) for d in dims) + struct.pack("<IQ", kind, 0)
        return out

    def test_gguf(self):
        with tempfile.TemporaryDirectory() as folder:
            for version in (1, 2, 3):
                count = "<I" if version == 1 else "<Q"
                words = struct.pack("<I", 8) + struct.pack(count, 2) + (struct.pack(count, 1) + b"a") * 2
                data = self.gguf(version, {"blk.0.attn_q.weight": ([4096, 512], 12), "out.bias": ([7], 0)},
                                 [("general.architecture", 8, struct.pack(count, 5) + b"llama"),
                                  ("tokenizer.tokens", 9, words), ("x.n", 4, struct.pack("<I", 3))])
                rows = self.read(self.write(folder, "m.gguf", data))
                self.assertEqual(rows[0]["producer"], "llama")
                params = {r["param"]: r for r in rows if "param" in r}
                self.assertEqual(params["blk.0.attn_q.weight"]["dims"], [512, 4096])
                self.assertEqual(params["blk.0.attn_q.weight"]["bytes"], 512 * 4096 // 256 * 144)
                self.assertEqual(params["out.bias"]["bytes"], 28)
        whole = self.gguf(3, {"a": ([4], 0)}, [("k", 9, struct.pack("<IQ", 8, 2**60))])
        self.assertIn("beyond the file", self.refused(whole, "m.gguf"))
        self.assertIn("beyond the file", self.refused(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "m.gguf"))
        self.assertIn("big-endian", self.refused(b"GGUF" + struct.pack(">IQQ", 3, 1, 0), "m.gguf"))
        self.assertIn("63 bits", self.refused(self.gguf(3, {"a": ([2**40, 2**40], 0)}), "m.gguf"))
        nested = struct.pack("<IQ", 9, 1) * 100
        self.assertIn("nested", self.refused(self.gguf(3, {"a": ([1], 0)}, [("k", 9, nested)]), "m.gguf"))
        good = self.gguf(3, {"a": ([4], 0), "b": ([2, 2], 1)}, [("k", 8, struct.pack("<Q", 1) + b"v")])
        for cut in range(4, len(good)):
            self.assertTrue(self.refused(good[:cut], "m.gguf"))

    def test_modules_json(self):
        listed = [{"name": "", "class": "N"}, {"name": "f", "class": "L", "bufs": {"s": [[], "int64"]}, "params": {
            "w": [[3, 2], "float32", {"trainable": False, "storage": "a"}], "v": [[6], "float32", {"storage": "a", "offset": 2}]}}]
        with tempfile.TemporaryDirectory() as folder:
            for form in (listed, {"schema": "nrg.modules/1", "modules": listed}):
                rows = self.read(self.write(folder, "modules.json", json.dumps(form).encode()))
                params = {r["param"]: r for r in rows if "param" in r}
                self.assertEqual((params["f.w"]["trainable"], params["f.w"]["storage"]), (0, "a"))
                self.assertEqual((params["f.v"]["trainable"], params["f.v"]["offset"]), (-1, 2))
                self.assertTrue(params["f.s"]["buffer"])
        listed[1]["params"]["w"] = [["x"], "float32"]
        self.assertIn("'f.w' is not", self.refused(json.dumps(listed).encode(), "modules.json"))
        self.assertIn("JSON", self.refused(b'[{"name": "", "class": "N", "params": ' + b"[" * 10**6, "modules.json"))


class Exported(Dumped):
    def test_net(self):
        rows = self.read(os.path.join(DATA, "net.pt2"))
        params = [r for r in rows if "param" in r and not r["buffer"]]
        self.assertEqual(sum(r["bytes"] for r in params) // 4, 565)
        ops = [r for r in rows if "op" in r]
        linear = [r for r in ops if r["op"] == "aten::linear"]
        self.assertEqual([r["module"] for r in linear], ["block.qkv", "block.out", "head"])
        self.assertEqual(linear[0]["inputs"][1]["dims"], [24, 8])
        self.assertEqual(linear[0]["outputs"][0]["dims"], [2, 16, 24])
        self.assertIn("aten::cos", [r["op"] for r in ops])  # out of the no_grad region
        self.assertFalse([r for r in ops if "higher_order" in r["op"]])
        chunk = next(i for i, r in enumerate(ops) if r["op"] == "aten::chunk")
        self.assertEqual((ops[chunk + 1]["op"], len(ops[chunk + 1]["outputs"])), ("prim::ListUnpack", 3))
        names = [v["name"] for r in ops for v in r["outputs"]]
        self.assertEqual(len(names), len(set(names)))
        made = {v["name"] for r in rows if "graph" in r for v in r["inputs"]}
        for op in ops:
            for value in op["inputs"]:
                self.assertIn(value["name"], made)
            made.update(v["name"] for v in op["outputs"])

    def test_symbolic(self):
        rows = self.read(os.path.join(DATA, "dynamic.pt2"))
        graph = next(r for r in rows if "graph" in r)
        self.assertEqual(graph["inputs"][0]["dims"], [-2, 4])
        self.assertEqual(graph["outputs"][0]["dims"], [-2, 3])
        self.assertIn("2 in the example", [r for r in rows if "warning" in r][0]["warning"])

    def program(self, **changes):
        with zipfile.ZipFile(os.path.join(DATA, "dynamic.pt2")) as file:
            program = json.loads(file.read("dynamic/models/model.json"))
        return program

    def test_old_layout(self):
        data = archive({"serialized_exported_program.json": json.dumps(self.program()), "version": "8.7",
                        "serialized_state_dict.pt": b"", "serialized_constants.pt": b""}, "")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "old.pt2")
            with open(path, "wb") as file:
                file.write(data)
            rows = self.read(path)
        self.assertEqual(rows[0]["format"], "pt2")
        self.assertEqual(len(shapes(rows, False)), 2)

    def test_branches_and_deep_graphs(self):
        program = self.program()
        graph = program["graph_module"]["graph"]
        inner = {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "x"}}], "nodes": [],
                 "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}
        node = {"target": "torch.ops.higher_order.cond", "metadata": {}, "outputs": [{"as_tensors": [{"name": "r"}]}],
                "inputs": [{"name": "", "arg": a, "kind": 1} for a in (
                    {"as_tensor": {"name": "linear"}}, {"as_graph": {"name": "t", "graph": inner}},
                    {"as_graph": {"name": "f", "graph": inner}}, {"as_tensors": [{"name": "linear"}]})]}
        graph["nodes"].append(node)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.pt2")
            with open(path, "wb") as file:
                file.write(archive({"models/model.json": json.dumps(program)}))
            self.assertIn("prim::If", [r.get("op") for r in self.read(path)])
        for _ in range(100):
            inner = dict(inner, nodes=[dict(node, target="torch.ops.higher_order.wrap_with_set_grad_enabled", inputs=[
                {"name": "", "arg": {"as_graph": {"name": "t", "graph": inner}}, "kind": 1},
                {"name": "", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}])])
        node["inputs"][1]["arg"]["as_graph"]["graph"] = inner
        err = self.refused(archive({"models/model.json": json.dumps(program)}), "m.pt2")
        self.assertIn("nested deeper than 64", err)

    def test_broken_programs(self):
        program = self.program()
        for text in ("", "{", "[]", "{}", '{"graph_module": 3}', '{"graph_module": {"graph": {"nodes": [{}]}}}', "[" * 10**5):
            self.assertTrue(self.refused(archive({"models/model.json": text}), "m.pt2"))
        del program["graph_module"]["graph"]["tensor_values"]["p_0_weight"]
        self.assertIn("has no shape", self.refused(archive({"models/model.json": json.dumps(program)}), "m.pt2"))


if __name__ == "__main__":
    unittest.main()
