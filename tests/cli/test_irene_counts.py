"""IrEne's FLOP and byte counts: nrg's convention `irene`, operator by operator, composed to modules.

The counts of each operator come from nrg graph, from a graph text with one operator per line. What
a module of the six models is made of stands here and nowhere in nrg. Every row of IrEne's files must
come out exactly. Needs the data (NRG_SHARED); skipped without.
"""
import collections
import csv
import json
import os
import subprocess
import unittest

from support import NRG, TOP

SHARED = os.environ.get("NRG_SHARED", os.path.join(TOP, "..", "shared"))
DATA = os.path.join(SHARED, "data", "irene")
FILES = ["ml1", "ml2", "module", "model"]
ROWS = {"device_1": 24633, "device_2": 28448}
TINY = "sshleifer/tiny-ctrl"
H, I, A, D = 768, 3072, 12, 64


class Text:
    """A graph text that grows by operators; each is counted by its name."""

    def __init__(self):
        self.inputs, self.lines, self.n = [], [], 0

    def value(self, dtype, *dims):
        self.n += 1
        self.inputs.append(f"%i{self.n} : {dtype}({', '.join(map(str, dims))})")
        return f"%i{self.n}"

    def add(self, name, kind, dtype, dims, *operands):
        self.lines.append(f"  %{name} : {dtype}({', '.join(map(str, dims))}) = aten::{kind}"
                          f"({', '.join(operands)})")

    def text(self):
        last = self.lines[-1].split()[0]
        return f"graph({', '.join(self.inputs)}):\n" + "\n".join(self.lines) + f"\n  return ({last})\n"


def operators(b, s):
    """The operators that the six models have at this size."""
    t = Text()
    none = "%i0"
    t.inputs.append("%i0 : int")
    f, h, scores = "Float", (b, s, H), (b, A, s, s)
    for name, k, n in (("hh", H, H), ("hi", H, I), ("ih", I, H)):
        t.add("mm_" + name, "matmul", f, (b, s, n), t.value(f, b, s, k), t.value(f, k, n))
        t.add("add_" + name, "add_", f, (b, s, n), t.value(f, b, s, n), t.value(f, n), none)
    for name, rows, k, n in (("pool", b, H, H), ("c_attn", b * s, H, 3 * H), ("c_hh", b * s, H, H),
                             ("c_hi", b * s, H, I), ("c_ih", b * s, I, H)):
        t.add(name, "addmm", f, (rows, n), t.value(f, n), t.value(f, rows, k), t.value(f, k, n), none, none)
    t.add("qk", "matmul", f, scores, t.value(f, b, A, s, D), t.value(f, b, A, D, s))
    t.add("av", "matmul", f, (b, A, s, D), t.value(f, b, A, s, s), t.value(f, b, A, s, D))
    t.add("softmax", "softmax", f, scores, t.value(f, *scores), none, none)
    t.add("ln", "layer_norm", f, h, t.value(f, *h), none, t.value(f, H), t.value(f, H), none, none)
    t.add("emb", "embedding", f, h, t.value(f, 30522, H), t.value("Long", b, s), none, none, none)
    t.add("emb1", "embedding", f, (1, s, H), t.value(f, 512, H), t.value("Long", 1, s), none, none, none)
    t.add("tanh_b", "tanh", f, (b, H), t.value(f, b, H))
    t.add("gelu", "gelu", f, (b, s, I), t.value(f, b, s, I))
    wide = (b, s, I)
    for name, kind, dims in (("add_h", "add", h), ("add_s", "add", scores), ("div_s", "div", scores),
                             ("div_h", "div", h), ("mul_s", "mul", scores), ("mul_i", "mul", wide),
                             ("pow_i", "pow", wide), ("add_i", "add", wide), ("mul_ss", "mul", (s, s)),
                             ("rsub_ss", "rsub", (s, s)), ("mul_bs", "mul", (b, s)),
                             ("rsub_bs", "rsub", (b, s))):
        t.add(name, kind, f, dims, t.value(f, *dims), t.value(f, *dims))
    t.add("tanh_i", "tanh", f, wide, t.value(f, *wide))
    t.add("mul_int", "mul", "Int", (b, s), t.value("Int", b, s), t.value("Int", b, s))
    t.add("add_long", "add", "Long", (b, s), t.value("Long", b, s), t.value("Long", b, s))
    return t.text()


def counted(texts):
    """{operator: (flops, bytes)} for each text."""
    done = subprocess.run([NRG, "graph", "--quiet", "--convention", "irene", "--json", "-"], input=texts,
                          capture_output=True, text=True, check=True)
    return {op["id"].lstrip("%"): (op["flops"], op["read_bytes"] + op["written_bytes"])
            for op in json.loads(done.stdout)["operators"]}


class Sum(collections.Counter):
    """A bag of operators."""


def bag(*parts):
    total = Sum()
    for part in parts:
        times, what = part if isinstance(part, tuple) else (1, part)
        for name, n in (what if isinstance(what, Sum) else {what: 1}).items():
            total[name] += times * n
    return total


# Scalars in the trace are counted too: a 0-d long, 8 bytes each.
SCALAR = {"scalar_add": (1, 16), "scalar_sub": (1, 16), "scalar_mul": (1, 24)}


def linear(name):
    return bag("mm_" + name, "add_" + name)


def compositions():
    """{class: bag}, and {model: bag}: what modules of the six models run."""
    gelu_new = bag((4, "mul_i"), "pow_i", (2, "add_i"), "tanh_i")
    attention = bag("qk", "av", "softmax")
    self_attention = bag((3, linear("hh")), attention, "div_s", "add_s")
    self_output = bag(linear("hh"), "ln", "add_h")
    intermediate = bag(linear("hi"), "gelu")
    output = bag(linear("ih"), "ln", "add_h")
    layer = bag(self_attention, self_output, intermediate, output)
    pooler = bag("pool", "tanh_b")
    bert_embeddings = bag((2, "emb"), "emb1", "ln", (2, "add_h"))
    roberta_embeddings = bag((3, "emb"), "ln", (2, "add_h"), "mul_int", "add_long")
    modules = {}
    for prefix, embeddings in (("Bert", bert_embeddings), ("Roberta", roberta_embeddings)):
        modules.update({prefix + "SelfAttention": self_attention, prefix + "SelfOutput": self_output,
                        prefix + "Attention": bag(self_attention, self_output),
                        prefix + "Intermediate": intermediate, prefix + "Output": output,
                        prefix + "Layer": layer, prefix + "Encoder": bag((12, layer)),
                        prefix + "Pooler": pooler, prefix + "Embeddings": embeddings})
    distil_attention = bag((4, linear("hh")), attention, "div_h")
    ffn = bag(linear("hi"), linear("ih"), "gelu")
    block = bag(distil_attention, ffn, (2, "ln"), (2, "add_h"))
    modules.update({"MultiHeadSelfAttention": distil_attention, "FFN": ffn, "TransformerBlock": block,
                    "Transformer": bag((6, block)), "Embeddings": bag((2, "emb"), "ln", "add_h")})
    mlp = bag("c_hi", "c_ih", gelu_new)
    gpt2_attention = bag("c_attn", "c_hh", attention, "div_s", "scalar_sub", "scalar_mul")
    openai_attention = bag("c_attn", "c_hh", attention, "div_s", "mul_s", "add_s", "rsub_ss", "mul_ss",
                           "scalar_mul")
    modules["MLP"] = mlp
    blocks = {}
    for model, own in (("gpt2", gpt2_attention), ("distilgpt2", gpt2_attention), ("openai-gpt", openai_attention)):
        blocks[model] = bag(own, mlp, (2, "ln"), (2, "add_h"))
        modules[model, "Attention"] = own
        modules[model, "Block"] = blocks[model]
    head = bag(modules["BertEncoder"], pooler, "rsub_bs", "mul_bs")
    models = {"bert-base-uncased": bag(bert_embeddings, head),
              "roberta-base": bag(roberta_embeddings, head),
              "distilbert-base-uncased": bag(modules["Embeddings"], modules["Transformer"]),
              "gpt2": bag("emb", "emb1", "add_h", (12, blocks["gpt2"]), "ln", "scalar_add"),
              "distilgpt2": bag("emb", "emb1", "add_h", (6, blocks["distilgpt2"]), "ln", "scalar_add"),
              "openai-gpt": bag("emb", "emb1", (2, "add_h"), (12, blocks["openai-gpt"]))}
    return modules, models


def operator_candidates(kind, path):
    """Bags that a layer may be, by its class; its counts tell which."""
    if kind == "Linear":
        return [bag("pool")] if "pooler" in path else [linear("hh"), linear("hi"), linear("ih")]
    if kind == "Embedding":
        return [bag("emb"), bag("emb1")]
    return {"Conv1D": [bag("c_attn"), bag("c_hh"), bag("c_hi"), bag("c_ih")], "MatMul": [bag("qk"), bag("av")],
            "Softmax": [bag("softmax")], "LayerNorm": [bag("ln")], "Tanh": [bag("tanh_b")]}[kind]


@unittest.skipUnless(os.path.isdir(DATA), "needs IrEne's data")
class Counts(unittest.TestCase):
    def total(self, counts, what):
        flops = sum(n * (SCALAR.get(name) or counts[name])[0] for name, n in what.items())
        return flops, sum(n * (SCALAR.get(name) or counts[name])[1] for name, n in what.items())

    def check_device(self, device):
        modules, models = compositions()
        counts, checked = {}, 0
        for name in FILES:
            with open(os.path.join(DATA, device, name + "_level_features.csv"), encoding="utf-8") as f:
                for row in csv.DictReader(f):
                    if row["model_name"] == TINY:
                        continue
                    size = int(float(row["batch_size"])), int(float(row["seq_len"]))
                    if size not in counts:
                        counts[size] = counted(operators(*size))
                    path, _, kind = row["level_name"].rpartition(":")
                    if name == "model":
                        bags = [models[row["model_name"]]]
                    elif name == "module":
                        bags = [modules.get((row["model_name"], kind)) or modules[kind]]
                    else:
                        bags = operator_candidates(kind, path)
                    given = round(float(row["flops"]) * 1e6), round(float(row["mem_bytes"]) * 2**20)
                    self.assertIn(given, [self.total(counts[size], b) for b in bags],
                                  f"{device} {name} {row['model_name']} {row['level_name']} {size}")
                    checked += 1
        self.assertEqual(checked, ROWS[device])

    def test_device_1(self):
        self.check_device("device_1")

    def test_device_2(self):
        self.check_device("device_2")


class LinearOfLaterTraces(unittest.TestCase):
    """aten::linear counts as the operators that PyTorch 1.7 traced for it."""

    def count(self, line, inputs):
        done = subprocess.run([NRG, "graph", "--quiet", "--convention", "irene", "--json", "-"],
                              input=f"graph({inputs}):\n  {line}\n  return (%y)\n", capture_output=True,
                              text=True, check=True)
        totals = json.loads(done.stdout)["totals"]
        return totals["flops"], totals["read_bytes"] + totals["written_bytes"]

    def test_three_dimensions(self):
        got = self.count("%y : Float(2, 3, 5) = aten::linear(%x, %w, %b)",
                         "%x : Float(2, 3, 4), %w : Float(5, 4), %b : Float(5)")
        self.assertEqual(got, (2 * 2 * 3 * 4 * 5 + 30, 4 * 2 * (3 * 4 + 3 * 5 + 4 * 5) + 8 * 30))

    def test_two_dimensions(self):
        got = self.count("%y : Float(3, 5) = aten::linear(%x, %w, %b)",
                         "%x : Float(3, 4), %w : Float(5, 4), %b : Float(5)")
        self.assertEqual(got, (2 * 3 * 4 * 5, 4 * (3 * 4 + 3 * 5 + 4 * 5)))


if __name__ == "__main__":
    unittest.main()
