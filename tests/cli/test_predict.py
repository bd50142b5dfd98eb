"""nrg dataset, train, evaluate, predict and profile on IrEne's and the Jetson study's data.

Ground truth are the files themselves, the results of the earlier system's own code (its seeds' spread),
and measured energies of models whose graphs are written here. Needs the data (NRG_SHARED); what does
not is in the classes at the end.
"""
import csv
import json
import os
import unittest

import support
from support import TOP, Case

SHARED = os.environ.get("NRG_SHARED", os.path.join(TOP, "..", "shared"))
IRENE = os.path.abspath(os.path.join(SHARED, "data", "irene"))
JETSON = os.path.abspath(os.path.join(SHARED, "data", "jetson"))
BERT = os.path.abspath(os.path.join(SHARED, "data", "graphs", "torch-1.13", "bert_base_kwargs", "inlined_graph.txt"))
TINY = "sshleifer/tiny-ctrl"
DEVICES = ["device_1", "device_2"]

needs_irene = unittest.skipUnless(os.path.isdir(IRENE), "needs IrEne's data")
needs_jetson = unittest.skipUnless(os.path.isdir(JETSON), "needs the Jetson study's data")


class Predict(Case):
    def json(self, *args):
        done = self.nrg(*args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def refused(self, *args, code=1):
        done = self.nrg(*args)
        self.assertEqual(done.returncode, code, done.stdout.decode())
        return self.one_line(done.stderr)

    def train(self, device, *options):
        path = self.path(device + ".json")
        done = self.nrg("train", "-q", os.path.join(IRENE, device), "--exclude", TINY, "-o", path, *options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return path


class Plain(Predict):
    """Long sums, which take minutes with sanitizers; other classes run the same code through those."""

    def setUp(self):
        super().setUp()
        self.sanitized = support.NRG
        if os.environ.get("NRG_PLAIN_BUILD"):
            support.NRG = os.path.join(os.path.abspath(os.environ["NRG_PLAIN_BUILD"]), "nrg")

    def tearDown(self):
        support.NRG = self.sanitized
        super().tearDown()


@needs_irene
class Evaluate(Plain):
    """The bars, strictly: rows of a held-out model are used nowhere."""

    def levels(self, device, *options):
        result = self.json("evaluate", os.path.join(IRENE, device), *options)
        self.assertEqual(result["out_of_range"]["models"], [TINY])
        return result, [result["levels"][level]["mape_percent"] for level in ("operator", "module", "model")]

    def within(self, got, bars):
        for value, bar in zip(got, bars):
            self.assertLessEqual(value, bar, (got, bars))

    def test_static_leave_one_model_out(self):
        for device, bars in zip(DEVICES, ((4.8, 3.3, 2.4), (6.1, 4.4, 3.4))):
            result, got = self.levels(device)
            self.within(got, bars)
            self.assertEqual(len(result["folds"]), 6)

    def test_rows_are_those_of_the_files(self):
        for device, rows, distinct in (("device_1", (17259, 7208, 166), (1386, 890, 166)),
                                       ("device_2", (19936, 8320, 192), (1600, 1024, 192))):
            levels = self.levels(device)[0]["levels"]
            names = ("operator", "module", "model")
            self.assertEqual(tuple(levels[n]["rows"] for n in names), rows)
            self.assertEqual(tuple(levels[n]["distinct"] for n in names), distinct)

    def test_meter_rebuilt(self):
        for device, bars in zip(DEVICES, ((0.55, 0.50, 0.50), (0.40, 0.40, 0.40))):
            result, got = self.levels(device, "--features", "all")
            self.within(got, bars)
            self.assertLessEqual(result["levels"]["operator"]["worst_percent"], 3.3)

    def test_leave_one_family_out(self):
        for device in DEVICES:
            result, got = self.levels(device, "--protocol", "leave-one-family-out")
            self.assertEqual(len(result["folds"]), 2)
            self.assertLessEqual(got[2], 5)

    def test_intervals_of_unseen_families(self):
        # The held-out family's products were never measured, only their other form.
        for device in DEVICES:
            result = self.levels(device, "--protocol", "leave-one-family-out")[0]["levels"]
            for level in ("operator", "module"):
                self.assertTrue(90 <= result[level]["covered_percent"] <= 99.8, (device, level, result[level]))
            self.assertGreaterEqual(result["model"]["covered_percent"], 95)
            usual = self.levels(device)[0]["levels"]
            for level in ("operator", "module", "model"):
                self.assertTrue(usual[level]["width_percent"] < result[level]["width_percent"] < 50, (device, level))

    def test_intervals_hold_for_every_kind(self):
        # Embeddings are the worst predicted modules: 12 to 54 % when all kinds shared one half width.
        for device in DEVICES:
            result = self.levels(device)[0]["levels"]
            for level in ("operator", "module"):
                for kind, scores in result[level]["by_kind"].items():
                    self.assertGreaterEqual(scores["covered_percent"], 80, (device, kind))

    def test_small_kinds_of_the_rebuilt_meter(self):
        for device in DEVICES:
            result = self.levels(device, "--features", "all")[0]
            for kind, scores in result["levels"]["operator"]["by_kind"].items():
                self.assertGreaterEqual(scores["covered_percent"], 90, (device, kind))

    def test_families_given_are_the_ones_found(self):
        options = ["--protocol", "leave-one-family-out"]
        given = ["--family", "enc=bert-base-uncased,distilbert-base-uncased,roberta-base",
                 "--family", "gpt=gpt2,distilgpt2,openai-gpt"]
        self.assertEqual(self.levels("device_1", *options)[1], self.levels("device_1", *options, *given)[1])

    def test_size_extrapolation(self):
        for device in DEVICES:
            self.assertLessEqual(self.levels(device, "--protocol", "size-extrapolation")[1][2], 3.5)

    def test_intervals_cover_and_widen(self):
        for device in DEVICES:
            for features in ("static", "all"):
                result = self.levels(device, "--features", features)[0]
                for level, scores in result["levels"].items():
                    self.assertTrue(90 <= scores["covered_percent"] <= 99, (device, features, level, scores))
            static = self.levels(device)[0]
            for level in ("operator", "module", "model"):
                apart = static["out_of_range"]["levels"][level]
                self.assertGreater(apart["width_percent"], 3 * static["levels"][level]["width_percent"])
                self.assertGreater(apart["covered_percent"], 80)

    def test_tiny_model_of_the_rebuilt_meter(self):
        # One busy thread in training, many here: 12.7 and 21.0 % low, and the interval must say so.
        for device, error in (("device_1", 12.7), ("device_2", 21.0)):
            apart = self.levels(device, "--features", "all")[0]["out_of_range"]["levels"]["model"]
            self.assertAlmostEqual(apart["mape_percent"], error, delta=0.1)
            self.assertEqual(apart["covered_percent"], 100)

    def test_all_models(self):
        result = self.json("evaluate", os.path.join(IRENE, "device_1"), "--all-models")
        self.assertNotIn("out_of_range", result)
        self.assertEqual(len(result["folds"]), 7)

    def test_text(self):
        done = self.nrg("evaluate", os.path.join(IRENE, "device_1"), "--features", "all")
        self.assertIn(b"wall meter rebuilt, no prediction", done.stdout)
        self.assertIn(b"BertSelfAttention", done.stdout)


@needs_irene
class Tree(Plain):
    """The earlier system's own results: means of its seeds, and their spread at model level."""

    def run_tree(self, device, features, *options):
        levels = self.json("evaluate", os.path.join(IRENE, device), "--model", "tree", "--features", features,
                           *options)["levels"]
        return [levels[name]["mape_percent"] for name in ("operator", "module", "model")]

    def test_end_to_end(self):
        for device, features, operator, module, spread in (
                ("device_1", "all", 0.70, 8.59, (3.5, 9.0)), ("device_1", "static", 5.76, 11.50, (4.5, 8.5)),
                ("device_2", "all", 0.53, 10.19, (4.3, 10.5)), ("device_2", "static", 7.57, 12.92, (5.5, 17))):
            for seed in ("1", "2"):
                got = self.run_tree(device, features, "--seed", seed)
                self.assertAlmostEqual(got[0], operator, delta=0.04)
                self.assertAlmostEqual(got[1], module, delta=0.15)
                self.assertTrue(spread[0] <= got[2] <= spread[1], got)

    def test_sum(self):
        for device, module, model in (("device_1", 16.41, 17.67), ("device_2", 17.39, 20.98)):
            got = self.run_tree(device, "all", "--variant", "sum")
            self.assertAlmostEqual(got[1], module, delta=0.05)
            self.assertAlmostEqual(got[2], model, delta=0.05)

    def test_stepwise_and_unstructured(self):
        self.assertAlmostEqual(self.run_tree("device_1", "all", "--variant", "stepwise")[1], 9.30, delta=0.3)
        self.assertGreater(self.run_tree("device_1", "all", "--variant", "unstructured")[2], 80)

    def test_deterministic(self):
        self.assertEqual(self.run_tree("device_1", "static", "--seed", "5"),
                         self.run_tree("device_1", "static", "--seed", "5"))


@needs_irene
class Dataset(Predict):
    def test_round_trip(self):
        for name in ("d.csv", "d.json"):
            path = self.path(name)
            self.assertEqual(self.nrg("dataset", "-q", os.path.join(IRENE, "device_1"), "-o", path).returncode, 0)
            again = self.path("again-" + name)
            self.assertEqual(self.nrg("dataset", "-q", path, "-o", again).returncode, 0)
            with open(path, "rb") as a, open(again, "rb") as b:
                self.assertEqual(a.read(), b.read())
            self.assertEqual(self.json("evaluate", path), self.json("evaluate", os.path.join(IRENE, "device_1")))

    def test_energies_are_those_of_the_files(self):
        path = self.path("d.csv")
        self.nrg("dataset", "-q", os.path.join(IRENE, "device_2"), "-o", path)
        with open(path, encoding="utf-8") as f:
            got = sum(float(row["energy_j"]) * int(row["multiplicity"]) for row in csv.DictReader(f))
        want = 0
        for name in ("ml1", "ml2", "module", "model"):
            with open(os.path.join(IRENE, "device_2", name + "_level_features.csv"), encoding="utf-8") as f:
                want += sum(float(row["energy_mean"]) for row in csv.DictReader(f))
        self.assertAlmostEqual(got, want, delta=1e-9 * want)

    def test_parameters_of_whole_models(self):
        path = self.path("d.csv")
        self.nrg("dataset", "-q", os.path.join(IRENE, "device_1"), "-o", path)
        params = {}
        with open(path, encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if row["level"] == "model":
                    params[row["model"]] = float(row["params"] or "nan")
        for model, count in (("bert-base-uncased", 109482240), ("roberta-base", 124645632),
                             ("distilbert-base-uncased", 66362880)):
            self.assertEqual(params[model], count)
        # The files do not tell a Conv1D's inputs from its outputs: its bias is off by their difference.
        for model, count in (("gpt2", 124439808), ("distilgpt2", 81912576), ("openai-gpt", 116534784)):
            self.assertAlmostEqual(params[model], count, delta=3e-4 * count)

    def test_noise_floor(self):
        kinds = self.json("dataset", os.path.join(IRENE, "device_2"))["kinds"]
        for kind, percent in (("LayerNorm", 16), ("Softmax", 7.4), ("MatMul", 4.4)):
            self.assertAlmostEqual(kinds[kind]["noise"]["median_percent"], percent, delta=0.1)

    def test_damaged_files_are_counted(self):
        for name in ("ml1", "ml2", "module", "model"):
            with open(os.path.join(IRENE, "device_1", name + "_level_features.csv"), encoding="utf-8") as f:
                lines = f.readlines()
            if name == "ml1":
                for at, energy in ((1, "nan"), (2, "-1"), (3, "")):
                    cells = lines[at].split(",")
                    cells[12] = energy
                    lines[at] = ",".join(cells)
            self.write(f"dev/{name}_level_features.csv", "".join(lines))
        done = self.nrg("dataset", self.path("dev"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"ml1_level_features.csv:2: energy is not a positive number: row left out (3 times)", done.stderr)
        self.write("dev/ml1_level_features.csv", "batch_size,seq_len\n1,2\n")
        self.assertIn("misses the column 'energy_mean'", self.refused("dataset", self.path("dev")))


@needs_irene
class Profiles(Predict):
    def test_deterministic_and_readable(self):
        first = self.train("device_1")
        with open(first, "rb") as f:
            text = f.read()
        self.train("device_1")
        with open(first, "rb") as f:
            self.assertEqual(f.read(), text)
        self.assertLess(len(text), 8000)
        profile = json.loads(text)
        self.assertEqual(profile["trained_on"]["rows"], 24633)
        self.assertNotIn(TINY, profile["trained_on"]["models"])
        self.assertEqual(profile["provenance"], "measured")
        gemm = next(g for g in profile["operators"] if g["group"] == "gemm")
        self.assertTrue(1e-11 < gemm["mac_j"] < 1e-9)
        for group in profile["operators"]:
            for unit in ("call_j", "mac_j", "byte_j"):
                self.assertGreaterEqual(group[unit], 0)

    def test_law_of_the_meter(self):
        for device, gpu, watts in (("device_1", 1.044, 100.0), ("device_2", 0.985, 116.8)):
            with open(self.train(device, "--features", "all"), encoding="utf-8") as f:
                law = json.load(f)["law"]
            self.assertAlmostEqual(law["gpu_energy"], gpu, delta=1e-3)
            self.assertAlmostEqual(law["time_w"], watts, delta=0.1)

    def test_one_error_figure(self):
        # What a profile says of its own error is what nrg evaluate says of the same data.
        data = os.path.join(IRENE, "device_2")
        levels = self.json("evaluate", data, "--all-models", "--exclude", TINY)["levels"]
        path = self.train("device_2")
        with open(path, encoding="utf-8") as f:
            said = json.load(f)["expected_error_percent"]
        for level in ("operator", "module", "model"):
            self.assertAlmostEqual(said[level], levels[level]["mape_percent"], delta=1e-6 * said[level])
        self.assertIn(f"{levels['model']['mape_percent']:.2f} % off on unseen models", self.nrg("profile", "list", self.dir).stdout.decode())
        self.assertIn(f"model     {levels['model']['mape_percent']:5.2f} % off", self.nrg("profile", "show", path).stdout.decode())

    def test_commands(self):
        a, b = self.train("device_1"), self.train("device_2")
        listed = self.json("profile", "list", self.dir)["profiles"]
        self.assertEqual([p["device"] for p in listed], ["device_1", "device_2"])
        self.assertIn(b"gemm", self.nrg("profile", "show", a).stdout)
        self.assertIn(b"ratio", self.nrg("profile", "compare", a, b).stdout)
        self.assertEqual(len(self.json("profile", "compare", a, b)["profiles"]), 2)
        self.assertIn("schema", self.refused("profile", "show", self.write("x.json", "{}")))
        self.assertIn("list", self.refused("profile", code=2))


def bert(b, s, hidden=768, heads=12, layers=12):
    """A graph text of BERT as PyTorch 1.7 ran it: operators, shapes and scopes, nothing else."""
    inputs = [f"%ids : Long({b}, {s})", f"%pos : Long(1, {s})", "%n : int"]
    lines, d = [], hidden // heads
    wide = 4 * hidden

    def value(dims):
        inputs.append(f"%p{len(inputs)} : Float({', '.join(map(str, dims))})")
        return inputs[-1].split()[0]

    def op(kind, dims, operands, scope):
        name = f"%v{len(lines)}"
        parts = scope.split(".") if scope else []
        path = "/".join("__module." + ".".join(parts[:i + 1]) for i in range(len(parts)))
        lines.append(f"  {name} : Float({', '.join(map(str, dims))}) = aten::{kind}({', '.join(operands)})"
                     f", scope: {path or '__module'}")
        return name

    h, scores = (b, s, hidden), (b, heads, s, s)

    def linear(x, k, n, scope):
        return op("linear", (b, s, n), (x, value((n, k)), value((n,))), scope)

    def norm(x, scope):
        return op("layer_norm", h, (x, "%n", value((hidden,)), value((hidden,)), "%n", "%n"), scope)

    def heads_of(x, scope):
        return op("permute", (b, heads, s, d), (op("view", (b, s, heads, d), (x, "%n"), scope), "%n"), scope)

    x = op("embedding", h, (value((30522, hidden)), "%ids", "%n", "%n", "%n"), "embeddings.word_embeddings")
    x = op("add", h, (x, op("embedding", h, (value((2, hidden)), "%ids", "%n", "%n", "%n"),
                            "embeddings.token_type_embeddings"), "%n"), "embeddings")
    x = op("add", h, (x, op("embedding", (1, s, hidden), (value((512, hidden)), "%pos", "%n", "%n", "%n"),
                            "embeddings.position_embeddings"), "%n"), "embeddings")
    x = norm(x, "embeddings.LayerNorm")
    for i in range(layers):
        at = f"encoder.layer.{i}"
        own = at + ".attention.self"
        q, k, v = (heads_of(linear(x, hidden, hidden, f"{own}.{n}"), own) for n in ("query", "key", "value"))
        y = op("matmul", scores, (q, op("transpose", (b, heads, d, s), (k, "%n", "%n"), own)), own)
        y = op("add", scores, (op("div", scores, (y, "%n"), own), value((b, 1, 1, s)), "%n"), own)
        y = op("matmul", (b, heads, s, d), (op("softmax", scores, (y, "%n", "%n"), own), v), own)
        y = op("contiguous", (b, s, heads, d), (op("permute", (b, s, heads, d), (y, "%n"), own), "%n"), own)
        y = linear(op("view", h, (y, "%n"), own), hidden, hidden, at + ".attention.output.dense")
        x = norm(op("add", h, (y, x, "%n"), at + ".attention.output"), at + ".attention.output.LayerNorm")
        y = op("gelu", (b, s, wide), (linear(x, hidden, wide, at + ".intermediate.dense"),), at + ".intermediate")
        y = linear(y, wide, hidden, at + ".output.dense")
        x = norm(op("add", h, (y, x, "%n"), at + ".output"), at + ".output.LayerNorm")
    y = op("linear", (b, hidden), (op("select", (b, hidden), (x, "%n", "%n"), "pooler"), value((hidden, hidden)),
                                   value((hidden,))), "pooler.dense")
    last = op("tanh", (b, hidden), (y,), "pooler.activation")
    return f"graph({', '.join(inputs)}):\n" + "\n".join(lines) + f"\n  return ({last})\n"


@needs_irene
class FromGraph(Predict):
    """BERT's graph, written here, against what IrEne measured for BERT."""

    def measured(self, device):
        energy = {}
        with open(os.path.join(IRENE, device, "model_level_features.csv"), encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if row["model_name"] == "bert-base-uncased":
                    energy[int(float(row["batch_size"])), int(float(row["seq_len"]))] = float(row["energy_mean"])
        return energy

    def test_against_measured(self):
        for device in DEVICES:
            # BERT itself is not trained on, nor is its twin.
            profile = self.train(device, "--exclude", "bert-base-uncased", "--exclude", "roberta-base")
            truth = self.measured(device)
            for size in ((8, 32), (16, 64), (24, 128), (8, 256)):
                text = self.write("bert.txt", bert(*size))
                got = self.json("predict", text, "--profile", profile)
                self.assertLess(abs(got["energy_j"] / truth[size] - 1), 0.15, (device, size, got["energy_j"]))
                self.assertTrue(got["low_j"] <= truth[size] <= got["high_j"], (device, size))
                # Only the pooler's product: the models left to train on have no such small one.
                self.assertEqual([r.split(" are")[0] for r in got["reasons"]], ["1 operators of gemm"])

    def test_tree_adds_up(self):
        profile = self.train("device_1")
        got = self.json("predict", self.write("bert.txt", bert(8, 64)), "--profile", profile)
        nodes = {n["name"]: n for n in got["nodes"]}
        self.assertAlmostEqual(nodes[""]["energy_j"], got["energy_j"])
        self.assertAlmostEqual(sum(n["self_j"] for n in got["nodes"]), got["energy_j"], delta=1e-9)
        self.assertAlmostEqual(sum(t["energy_j"] for t in got["terms"]), got["energy_j"], delta=1e-9)
        self.assertAlmostEqual(sum(o["energy_j"] for o in got["operators"]), got["energy_j"], delta=1e-9)
        for term in got["terms"]:
            self.assertAlmostEqual(term["coefficient"] * term["amount"], term["energy_j"], delta=1e-9)
        parts = sum(nodes[n]["energy_j"] for n in ("embeddings", "encoder", "pooler"))
        self.assertAlmostEqual(parts, got["energy_j"], delta=1e-6)
        for node in got["nodes"]:
            if node["operators"]:
                self.assertTrue(node["low_j"] <= node["energy_j"] <= node["high_j"], node)
        copied = next(t for t in got["terms"] if t["unit"] == "copied_byte_j")
        self.assertEqual(copied["amount"], 12 * 4 * 8 * 64 * 768 * 4)  # q, k, v and the context
        scores = next(t for t in got["terms"] if t["unit"] == "score_byte_j")
        self.assertEqual(scores["amount"], 12 * 8 * 12 * 64 * 64 * 4)

    def coherent(self, got):
        """Bounds of a node lie within those of the nodes below it and of its own work, end to end."""
        below = {n["name"]: [n["self_low_j"], n["self_high_j"]] for n in got["nodes"] if n["operators"]}
        for node in got["nodes"]:
            if node["name"] and node["operators"]:
                parent = below[node["name"].rpartition(".")[0]]
                parent[0] += node["low_j"]
                parent[1] += node["high_j"]
        for node in got["nodes"]:
            if node["operators"]:
                low, high = below[node["name"]]
                self.assertGreaterEqual(node["low_j"], low * (1 - 1e-9), node)
                self.assertLessEqual(node["high_j"], high * (1 + 1e-9), node)

    def test_whole_is_as_certain_as_its_parts(self):
        no_tanh = [o for m in ("bert-base-uncased", "roberta-base") for o in ("--exclude", m)]
        for options in ([], no_tanh):  # the pooler's two operators: out of range, and of no measured kind
            profile = self.train("device_1", *options)
            for size in ((8, 32), (16, 64), (1, 8), (32, 512)):
                got = self.json("predict", self.write("bert.txt", bert(*size)), "--profile", profile)
                self.coherent(got)
                whole, most = got["nodes"][0], next(n for n in got["nodes"] if n["name"] == "encoder")
                self.assertLess(whole["high_j"] / whole["low_j"], 1.05 * most["high_j"] / most["low_j"], (options, size))

    def test_other_sizes(self):
        profile = self.train("device_1")
        a, b, c = (self.write(f"{x}-{y}.txt", bert(x, y)) for x, y in ((8, 32), (16, 96), (24, 128)))
        want = self.json("predict", c, "--profile", profile)
        got = self.json("predict", a, "--trace", b, "--batch", "24", "--seq", "128", "--profile", profile)
        self.assertAlmostEqual(got["energy_j"], want["energy_j"], delta=1e-9)
        table = self.json("predict", a, "--trace", b, "--seq", "128", "--what-if", "batch=8,24",
                          "--profile", profile)["rows"]
        self.assertAlmostEqual(table[1]["energy_j"], want["energy_j"], delta=1e-9)
        self.assertAlmostEqual(table[1]["energy_per_item_j"], want["energy_j"] / 24, delta=1e-9)
        self.assertIn("no symbolic dimension 'batch'", self.refused("predict", a, "--batch", "9", "--profile", profile))

    def test_out_of_range_is_said(self):
        profile = self.train("device_1")
        usual = self.json("predict", self.write("bert.txt", bert(8, 32)), "--profile", profile)
        small = self.json("predict", self.write("tiny.txt", bert(1, 8, 32, 2, 2)), "--profile", profile)
        self.assertTrue(small["out_of_range"])
        self.assertIn("smaller than any that was measured", " ".join(small["reasons"]))
        self.assertGreater(small["high_j"] / small["low_j"], 3 * usual["high_j"] / usual["low_j"])
        self.assertNotIn("out_of_range", usual)

    def test_unknown_kinds_are_said(self):
        text = self.write("conv.txt", "graph(%x : Float(8, 64, 56, 56), %w : Float(64, 64, 3, 3), %n : int):\n"
                          "  %y : Float(8, 64, 56, 56) = aten::conv2d(%x, %w, %n, %n, %n, %n, %n)\n  return (%y)\n")
        got = self.json("predict", text, "--profile", self.train("device_1"))
        self.assertIn("aten::conv2d: none was measured on device_1", got["reasons"][0])
        self.assertTrue(got["out_of_range"])

    def test_other_form_is_said(self):
        # Trained on GPT alone: its products are Conv1D's, BERT's are linear layers'.
        only_gpt = [o for m in ("bert-base-uncased", "roberta-base", "distilbert-base-uncased") for o in ("--exclude", m)]
        text = self.write("bert.txt", bert(8, 64))
        both, one = (self.json("predict", text, "--profile", self.train("device_1", *o)) for o in ([], only_gpt))
        self.assertIn("aten::linear: none was measured on device_1, taken as another form of the same", " ".join(one["reasons"]))
        self.assertNotIn("another form", " ".join(both["reasons"]))
        self.assertGreater(one["high_j"] / one["low_j"], both["high_j"] / both["low_j"])

    def test_refusals(self):
        profile = self.train("device_1")
        text = self.write("u.txt", "graph(%x : Tensor, %w : Float(4, 4), %n : int):\n"
                          "  %y : Tensor = aten::linear(%x, %w, %n)\n  return (%y)\n")
        self.assertIn("1 of 1 operators is unknown", self.refused("predict", text, "--profile", profile))
        meter = self.train("device_2", "--features", "all")
        self.assertIn("can't predict before", self.refused("predict", self.write("b.txt", bert(8, 32)), "--profile", meter))
        self.assertIn("--profile", self.refused("predict", text, code=2))

    def test_steps_and_compare(self):
        a, b = self.train("device_1"), self.train("device_2")
        text = self.write("bert.txt", bert(8, 32))
        got = self.json("predict", text, "--profile", a, "--for", "10000", "steps")
        self.assertAlmostEqual(got["for"]["energy_j"], 1e4 * got["energy_j"], delta=1e-6)
        both = self.json("predict", text, "--profile", a, "--compare", b)["predictions"]
        self.assertEqual([p["device"] for p in both], DEVICES)
        self.assertIn(b"ratio", self.nrg("predict", text, "--profile", a, "--compare", b).stdout)

    @unittest.skipUnless(os.path.exists(BERT), "needs the stored graphs")
    def test_graph_of_pytorch(self):
        done = self.nrg("predict", BERT, "--profile", self.train("device_1"), "--all", "--explain")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        for word in ("encoder", "×12", "BertSelfAttention", "J x", "smaller than any"):
            self.assertIn(word.encode(), done.stdout)


@needs_jetson
class Jetson(Predict):
    STUDY = os.path.join(JETSON, "model_training")
    EXAMPLE = os.path.join(STUDY, "tests", "test_data", "example_preprocessed_data", "model1")
    LENET = os.path.join(JETSON, "jetson", "power_logging", "raw_data_pruned", "prebuilt_models", "lenet")

    def rows(self, *args):
        done = self.nrg("dataset", *args, "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return {row["node"]: row for row in csv.DictReader(done.stdout.decode().splitlines())}

    def test_original_features_are_the_study_s(self):
        with open(os.path.join(self.EXAMPLE, "expected_features.json"), encoding="utf-8") as f:
            expected = json.load(f)
        rows = self.rows(self.EXAMPLE, "--layer-features", "original")
        names = {"batch_size": "batch", **{f"{a}_size_{i}": f"{b}_{i}" for a, b in (("input", "in"), ("output", "out"))
                                           for i in range(3)}}
        for node, kind in (("conv_relu_layer", "convolutional"), ("maxpool_layer", "pooling")):
            for name, value in expected[kind].items():
                self.assertEqual(float(rows[node][names.get(name, name)]), value, (node, name))

    def test_corrected_window(self):
        rows = self.rows(self.EXAMPLE)
        self.assertEqual((rows["maxpool_layer"]["kernel_0"], rows["maxpool_layer"]["kernel_1"]), ("3", "3"))

    def test_lenet_statistics(self):
        rows = self.rows(os.path.join(self.STUDY, "preprocessed_pruned_data", "lenet"), "--layers",
                         os.path.join(self.LENET, "model_summary.json"))
        self.assertEqual(len(rows), 5)
        conv = rows["_feat_conv2"]
        self.assertAlmostEqual(float(conv["energy_j"]), 1.039552173092211 * 0.23883284374773503e-3, delta=1e-12)
        self.assertEqual((conv["in_0"], conv["out_0"], conv["repeats"]), ("128", "16", "5670"))
        self.assertEqual(conv["provenance"], "derived")

    def test_train_and_predict(self):
        path = self.path("orin.json")
        done = self.nrg("train", "--model", "layer", os.path.join(self.STUDY, "data"), "--device", "orin", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(b"holds no layers", done.stderr)
        got = self.json("predict", os.path.join(self.STUDY, "sample_data", "resnet18_trt_engine_info.json"),
                        "--profile", path)
        self.assertIn("not in the sum", " ".join(got["reasons"]))
        self.assertTrue(0 < got["low_j"] < got["energy_j"] < got["high_j"])

    def test_one_model_can_t_be_held_out(self):
        line = self.refused("evaluate", "-q", "--model", "layer", os.path.join(self.STUDY, "data"))
        self.assertIn("needs two models or more", line)


class BadData(Predict):
    """Errors name file and line, and everything that is left out is counted."""
    HEAD = "device,model,kind,level,macs,read_bytes,written_bytes,energy_j\n"

    def test_mixed_devices(self):
        path = self.write("d.csv", self.HEAD + "a,m,K,operator,1,1,1,1\nb,m,K,operator,1,1,1,2\n")
        self.assertIn("of 2 devices (a, b)", self.refused("train", path, "-o", self.path("p.json")))
        self.assertIn("of 2 devices (a, b)", self.refused("evaluate", path))
        self.assertEqual(self.nrg("dataset", path).returncode, 0)

    def test_single_row(self):
        path = self.write("d.csv", self.HEAD + "a,m,K,operator,1,1,1,1\n")
        done = self.nrg("train", path, "-o", self.path("p.json"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"one size only", done.stderr)
        self.assertIn(b"the data are of one model", done.stderr)
        self.assertIn("needs two models", self.refused("evaluate", path))
        graph = self.write("m.txt", "graph(%x : Float(64, 256), %w : Float(128, 256), %n : int):\n"
                           "  %y : Float(64, 128) = aten::linear(%x, %w, %n)\n  return (%y)\n")
        got = self.json("predict", graph, "--profile", self.path("p.json"))
        self.assertIn("too few rows were measured on a to tell an interval", got["reasons"])
        self.assertNotIn("low_j", got)
        self.assertIn(b"without an interval", self.nrg("predict", graph, "--profile", self.path("p.json")).stdout)

    def test_nothing_usable(self):
        path = self.write("d.csv", self.HEAD + "a,m,K,operator,1,1,1,-1\na,m,K,operator,1,1,1,0\na,m,K,operator,1,1,1,nan\n")
        for command in (["dataset"], ["evaluate"], ["train", "-o", self.path("p.json")]):
            self.assertIn("d.csv:2: energy is not a positive number: row left out (3 times)", self.refused(*command, path))

    def test_not_numbers(self):
        for cells, text in (("1,1,1,abc", "energy_j is not a number"), ("1,inf,1,1", "read_bytes is not a number"),
                            ("1,1,1", "has 7 cells")):
            path = self.write("d.csv", self.HEAD + "a,m,K,operator," + cells + "\n")
            self.assertIn("d.csv:2: ", self.refused("dataset", path))
            self.assertIn(text, self.refused("train", path, "-o", self.path("p.json")))

    def test_mixed_units(self):
        path = self.write("d.csv", self.HEAD.replace("energy_j", "energy_j,energy_mj") + "a,m,K,operator,1,1,1,1,1000\n")
        self.assertIn("the same quantity", self.refused("dataset", path))

    def test_equal_sizes(self):
        rows = "".join(f"a,m{i % 3},K,operator,9,5,5,{1 + i / 100}\n" for i in range(9))
        done = self.nrg("train", self.write("d.csv", self.HEAD + rows), "-o", self.path("p.json"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"can't be told apart", done.stderr)

    def test_unusable_rows_are_counted(self):
        path = self.write("d.csv", self.HEAD + "a,m,K,operator,,,,1\na,m,K,operator,2,1,1,1\na,n,K,operator,2,1,1,-1\n")
        done = self.nrg("train", path, "-o", self.path("p.json"))
        self.assertIn(b"d.csv:4: energy is not a positive number: row left out", done.stderr)
        self.assertIn(b"1 measurements lack the features", done.stderr)

    def test_missing(self):
        self.assertIn("No such file", self.refused("dataset", self.path("none.csv")))
        self.assertIn("without data", self.refused("dataset", self.dir))
        self.assertIn("misses the column", self.refused("dataset", self.write("x.csv", "a,b\n1,2\n")))
        self.assertIn("--features", self.refused("evaluate", "x", "--features", "some", code=2))
        self.assertIn("--model", self.refused("evaluate", "x", "--model", "magic", code=2))
        self.assertIn("-o", self.refused("train", "x", code=2))

    def test_many_rows(self):
        rows = "".join(f"a,m{i % 5},K,operator,{i + 1},{7 * i + 3},5,{1e-3 + 1e-9 * i:.12g}\n" for i in range(60000))
        path = self.write("d.csv", self.HEAD + rows)
        got = self.json("evaluate", path)["levels"]["operator"]
        self.assertEqual(got["rows"], 60000)
        self.assertLess(got["mape_percent"], 1)


if __name__ == "__main__":
    unittest.main()
