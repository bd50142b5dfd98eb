"""nrg evaluate, train and predict for language models on servers.

The bars are measured on ML.ENERGY's rows (NRG_SHARED), which are skipped where they are absent. Truth of the rest:
rows that are made here by a law, arithmetic on configs, and files that lie.
"""
import csv
import json
import math
import os
import re
import struct
import unittest

import spans_file
from llm_files import gguf, safetensors
from llm_rows import made_rows
from support import TOP, Case

SHARED = os.environ.get("NRG_SHARED", os.path.join(TOP, "..", "shared"))
ROWS = os.path.abspath(os.path.join(SHARED, "data", "llm", "mlenergy_h100.json"))
TASKS = "lm-arena-chat,gpqa,sourcegraph-fim"

needs_rows = unittest.skipUnless(os.path.exists(ROWS), "needs ML.ENERGY's rows")

QWEN = {"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
MOE = {"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
       "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
       "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "tie_word_embeddings": False}

SMALL = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 500, "tie_word_embeddings": True}


class Llm(Case):
    def json(self, *args):
        done = self.nrg(*args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def refused(self, *args, code=1):
        done = self.nrg(*args)
        self.assertEqual(done.returncode, code, done.stdout.decode())
        self.assertEqual(done.stdout, b"")
        return self.one_line(done.stderr)

    def write(self, name, value):
        path = self.path(name)
        with open(path, "wb") as out:
            out.write(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path

    def profile(self, rows=None):
        data = self.write("rows.json", rows or made_rows())
        path = self.path("device.json")
        done = self.nrg("train", "-q", data, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return path


@needs_rows
class Bars(Llm):
    def evaluate(self, path=ROWS, *options):
        return self.json("evaluate", path, "--protocol", "leave-one-model-out", "--task", TASKS, *options)

    def test_models_that_were_not_seen(self):
        found = self.evaluate()
        level = found["levels"]["model"]
        self.assertEqual(level["rows"], 274)
        self.assertEqual(len(level["by_model"]), 16)
        self.assertEqual(set(level["by_task"]), set(TASKS.split(",")))
        self.assertLessEqual(level["median_percent"], 7.8)
        self.assertLessEqual(level["mape_percent"], 10.9)
        self.assertGreaterEqual(level["covered_percent"], 93.8)
        self.assertLessEqual(level["median_half_width_percent"], 30.3)
        self.assertEqual(found["device"], "H100")

    def test_the_file_as_it_is(self):
        """Pictures and films have no tokens; those two tasks' prompts are not known."""
        found = self.json("evaluate", ROWS)
        self.assertIs(type(found["levels"]["model"]["rows"]), int)
        self.assertEqual(found["levels"]["model"]["rows"], 274)

    def test_nothing_of_the_held_out_model_is_used(self):
        """Another latency and power of one model changes no error of that model; of others it does."""
        with open(ROWS, encoding="utf-8") as text:
            rows = json.load(text)
        for row in rows:
            if "Qwen3-32B" in row["model"]:
                for key in ("avg_power_watts", "output_throughput_tokens_per_sec", "median_itl_ms", "p90_itl_ms"):
                    row[key] = row.get(key, 1) * 7
        before = self.evaluate()["levels"]["model"]["by_model"]
        after = self.evaluate(self.write("twisted.json", rows))["levels"]["model"]["by_model"]
        self.assertEqual(before["Qwen3-32B"], after["Qwen3-32B"])
        self.assertNotEqual(before["Qwen3-14B"], after["Qwen3-14B"])

    def test_converted_data_give_the_same(self):
        csv = self.path("rows.csv")
        done = self.nrg("dataset", ROWS, "--task", TASKS, "-o", csv)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        again = self.json("evaluate", csv)["levels"]["model"]
        first = self.evaluate()["levels"]["model"]
        self.assertAlmostEqual(again["mape_percent"], first["mape_percent"], places=6)
        self.assertAlmostEqual(again["median_percent"], first["median_percent"], places=6)

    def test_times_are_not_needed(self):
        with open(ROWS, encoding="utf-8") as text:
            rows = [{k: v for k, v in row.items() if "itl" not in k and "throughput" not in k and "power" not in k}
                    for row in json.load(text)]
        level = self.evaluate(self.write("untimed.json", rows))["levels"]["model"]
        self.assertLessEqual(level["median_percent"], 12)
        self.assertLessEqual(level["mape_percent"], 18)

    def test_models_of_unknown_names(self):
        """Their architecture is made up from the number of parameters, and that is said."""
        with open(ROWS, encoding="utf-8") as text:
            rows = json.load(text)
        names = {name: f"x/New{i}" for i, name in enumerate(sorted({r["model"] for r in rows}))}
        for row in rows:
            row["model"] = names[row["model"]]
        done = self.nrg("evaluate", self.write("new.json", rows), "--task", TASKS, "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("made up", self.one_line(done.stderr))
        level = json.loads(done.stdout)["levels"]["model"]
        self.assertLess(level["mape_percent"], 40)
        self.assertGreaterEqual(level["covered_percent"], 85)

    def test_static_power_of_a_gpu(self):
        path = self.path("h100.json")
        done = self.nrg("train", ROWS, "--task", TASKS, "--memory", "80GB", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(path, encoding="utf-8") as text:
            law = json.load(text)["llm"]
        self.assertTrue(60 < law["static_w"] < 250, law["static_w"])
        self.assertTrue(1e12 < 1 / law["seconds"]["dense_bytes"] < 3.4e12)  # the memory's 3.35 TB/s at most
        found = self.json("predict", "--llm", self.write("config.json", QWEN), "--profile", path, "--batch", "64",
                          "--prompt", "100", "--output", "645")
        measured = 0.1192  # J per output token, prompt included: a row of the data
        request = found["llm"]["j_per_request"]
        self.assertTrue(request["low"] < measured * 645 < request["high"])
        self.assertTrue(found["memory"]["fits"])


class Rows(Llm):
    def test_rows_made_by_a_law(self):
        level = self.json("evaluate", self.write("rows.json", made_rows()))["levels"]["model"]
        self.assertEqual(level["rows"], 50)
        self.assertLess(level["mape_percent"], 5)
        self.assertGreaterEqual(level["covered_percent"], 90)

    def test_rows_that_lack_something(self):
        rows = made_rows()
        for i, key in enumerate(["num_gpus", "avg_batch_size", "energy_per_token_joules", "model", "task"]):
            del rows[i][key]
        rows[5]["energy_per_token_joules"] = -1
        rows[6]["energy_per_token_joules"] = 1e300
        rows[7]["avg_output_len"] = 0
        rows[8]["num_gpus"], rows[8]["tp"] = 8, 3
        rows[12]["prec"] = "float7"
        del rows[9]["tp"], rows[10]["prec"], rows[11]["gpu_model"]
        rows[11]["gpu_model"] = "Z9"
        done = self.nrg("evaluate", self.write("rows.json", rows), "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(json.loads(done.stdout)["levels"]["model"]["rows"], 40)
        self.assertIn(b"row left out", done.stderr)
        self.assertIn(b"precision", done.stderr)

    def test_files_that_lie(self):
        good = made_rows()
        cases = {
            "number": ([{**good[0], "avg_batch_size": "many"}], "avg_batch_size is not a number"),
            "object": ([1, 2], "a row is not an object"),
            "cut": (json.dumps(good).encode()[:-30], ""),
            "nan": (b'[{"model": "x", "task": "gpqa", "energy_per_token_joules": NaN}]', ""),
            "nothing": ([], ""),
            "one": (good[:1], "two models"),
            "devices": (made_rows("A") + made_rows("B"), "2 devices"),
            "config": ([{**good[0], "config": {"model_type": "llama", "hidden_size": -4}}], "hidden_size is negative"),
        }
        for name, (content, says) in cases.items():
            with self.subTest(name):
                self.assertIn(says, self.refused("evaluate", self.write(name + ".json", content)))

    def test_several_devices(self):
        both = self.write("both.json", made_rows("A") + [{**r, "energy_per_token_joules": 1} for r in made_rows("B")])
        one = self.json("evaluate", both, "--device", "A")
        self.assertEqual(one["levels"], self.json("evaluate", self.write("a.json", made_rows("A")))["levels"])
        self.assertEqual(one["device"], "A")
        self.assertEqual(self.json("evaluate", self.write("a.json", made_rows("A")), "--device", "mine")["device"], "mine")

    def test_config_of_a_model(self):
        """A file that the user names, and one in the row itself, are what the public name stands for."""
        rows = made_rows()
        first = self.json("evaluate", self.write("rows.json", rows))["levels"]["model"]["by_model"]["Qwen3-8B"]
        for row in rows:
            if row["model"] == "a/Qwen3-8B":
                row["model"] = "a/Private"
        option = "Private=" + self.write("config.json", QWEN)
        named = self.json("evaluate", self.write("private.json", rows), "--config", option)
        self.assertEqual(named["levels"]["model"]["by_model"]["Private"], first)
        for row in rows:
            if row["model"] == "a/Private":
                row["config"] = QWEN
        inside = self.json("evaluate", self.write("inside.json", rows))
        self.assertEqual(inside["levels"]["model"]["by_model"]["Private"], first)

    def test_profile(self):
        path = self.profile()
        for arguments in (["profile", "show", path], ["profile", "compare", path, path], ["profile", "list", path]):
            done = self.nrg(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(path, encoding="utf-8") as text:
            profile = json.load(text)
        for key, value in (("joules", {"macs": -1}), ("joules", 3), ("static_w", -5), ("limits", {"batch": [9, 2]}),
                           ("interval_ln", None)):
            broken = {**profile, "llm": {**profile["llm"], key: value}}
            config = self.write("config.json", QWEN)
            self.assertIn("is not a profile", self.refused("predict", "--llm", config, "--profile",
                                                           self.write("broken.json", broken)))
        graph = self.write("graph.txt", b"graph(%x : Float(1)):\n  return (%x)\n")
        self.assertIn("--llm", self.refused("predict", graph, "--profile", path))


class OnADevice(Llm):
    def predict(self, config, *options):
        return self.json("predict", "--llm", config, "--profile", self.device, *options)

    def setUp(self):
        super().setUp()
        self.device = self.profile()


class Predict(OnADevice):
    def test_sums_and_counts(self):
        found = self.predict(self.write("config.json", QWEN), "--prompt", "512", "--output", "256", "--batch", "32")
        self.assertEqual(found["model"]["params"], 8190735360)
        counts, cost = found["counts"], found["llm"]
        self.assertEqual(counts["cache_token_bytes"], 36 * 2 * 8 * 128 * 2)
        self.assertEqual(counts["cache_bytes"], 32 * 768 * counts["cache_token_bytes"])
        self.assertEqual(counts["weight_bytes"], 2 * 8190735360)
        self.assertEqual(found["provenance"], "estimated")
        token = sum(term["token_energy_j"] for term in found["terms"])
        self.assertAlmostEqual(cost["j_per_request"]["value"], 256 * token, delta=1e-6 * token)
        parts = 512 * cost["j_per_input_token"]["value"] + 256 * cost["j_per_output_token"]["value"]
        self.assertAlmostEqual(cost["j_per_request"]["value"], parts, delta=1e-6 * parts)
        for value in cost.values():
            if isinstance(value, dict):
                self.assertLess(value["low"], value["value"])
                self.assertLess(value["value"], value["high"])

    def test_types_and_gpus(self):
        config = self.write("config.json", QWEN)
        base = self.predict(config)["counts"]
        fp8 = self.predict(config, "--dtype", "fp8", "--kv-dtype", "fp8", "--tp", "2")
        self.assertEqual(fp8["counts"]["cache_token_bytes"], base["cache_token_bytes"] / 2)
        table = 2 * 2 * 151936 * 4096  # embedding and head stay as they are
        small = 2 * (36 * (2 * 4096 + 256) + 4096)
        self.assertEqual(fp8["counts"]["weight_bytes"], (base["weight_bytes"] - table - small) / 2 + table + small)
        self.assertEqual(fp8["load"]["gpus"], 2)
        for name in ("bf16", "bfloat16", "FP16", "float16"):
            self.assertEqual(self.predict(config, "--dtype", name)["counts"], base)

    def test_experts(self):
        found = self.predict(self.write("config.json", MOE), "--batch", "16")
        self.assertAlmostEqual(found["counts"]["touched_experts"], 128 * (1 - (1 - 8 / 128) ** 16), places=6)
        self.assertTrue(any("experts" in reason for reason in found["reasons"]))  # none was measured

    def test_memory(self):
        config = self.write("config.json", QWEN)
        for memory, fits in (("16GB", False), ("24GB", True), ("15.5GiB", True), ("15GiB", False)):
            load = ["--memory", memory, "--batch", "1", "--prompt", "100", "--output", "10"]
            done = self.nrg("predict", "--llm", config, "--profile", self.device, *load, "--json")
            self.assertEqual(json.loads(done.stdout)["memory"]["fits"], fits, memory)
            self.assertEqual(done.returncode, 0 if fits else 1)
        self.assertNotIn("fits", self.predict(config)["memory"])

    def test_what_if(self):
        config = self.write("config.json", QWEN)
        rows = self.predict(config, "--what-if", "batch=8,64", "--what-if", "context=128,4096", "--memory", "30GB")
        rows = rows["rows"]
        self.assertEqual([(r["batch"], r["prompt"]) for r in rows], [(8, 128), (8, 4096), (64, 128), (64, 4096)])
        self.assertGreater(rows[0]["llm"]["j_per_output_token"]["value"], rows[2]["llm"]["j_per_output_token"]["value"])
        self.assertEqual([r["fits"] for r in rows], [True, True, True, False])
        done = self.nrg("predict", "--llm", config, "--profile", self.device, "--what-if", "batch=1,2")
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_encoder(self):
        config = self.write("config.json", {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12,
                                            "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522})
        found = self.predict(config, "--prompt", "128")
        self.assertEqual(found["model"]["params"], 109482240)
        self.assertNotIn("j_per_output_token", found["llm"])
        self.assertIn("encoder", self.refused("predict", "--llm", config, "--profile", self.device, "--output", "5"))

    def test_memory_of_the_profile(self):
        path = self.path("with_memory.json")
        self.assertEqual(self.nrg("train", "-q", self.path("rows.json"), "--memory", "16GiB", "-o", path).returncode, 0)
        config = self.write("config.json", QWEN)
        for options, fits in (([], True), (["--batch", "64"], False), (["--batch", "64", "--memory", "80GB"], True)):
            found = self.json("predict", "--llm", config, "--profile", path, "--prompt", "1000", "--force", *options)
            self.assertEqual(found["memory"]["fits"], fits)

    def test_profile_of_operators(self):
        """Prices of matrix products that are known exactly; the sum of a step by them."""
        call_j, mac_j, byte_j = 1e-5, 2e-12, 3e-10
        rows = ["id,device,model,node,kind,level,energy_j,macs,read_bytes,written_bytes"]
        for i in range(60):
            macs, read = 10 ** (6 + i % 7), 10 ** (4 + i // 7 % 5)
            energy = call_j + mac_j * macs + byte_j * (read + 100)
            rows.append(f"{i},x,m{i % 3},n{i},aten::linear,operator,{energy!r},{macs},{read},100")
        path = self.path("operators.json")
        done = self.nrg("train", "-q", self.write("operators.csv", "\n".join(rows).encode() + b"\n"), "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = self.json("predict", "--llm", self.write("config.json", QWEN), "--profile", path, "--batch", "8")
        energy = {term["term"]: (term["token_energy_j"], term["step_amount"] / 8) for term in found["terms"]}
        self.assertAlmostEqual(energy["macs"][0] / (mac_j * energy["macs"][1]), 1, delta=0.02)
        self.assertAlmostEqual(energy["dense_bytes"][0] / (byte_j * energy["dense_bytes"][1]), 1, delta=0.02)
        self.assertAlmostEqual(energy["launches"][0] / (13 * call_j * energy["launches"][1]), 1, delta=0.02)
        request = found["llm"]["j_per_request"]
        self.assertLessEqual(request["low"], request["value"] / 1.99)
        self.assertNotIn("step_s", found["time"])
        self.assertTrue(any("operators" in reason for reason in found["reasons"]))

    def test_bits_that_are_not_known(self):
        """The advice of the message works."""
        for other in ({"quantization_config": {"quant_method": "novel"}}, {"torch_dtype": "float7"}):
            config = self.write("config.json", {**QWEN, **other})
            self.assertIn("--dtype", self.refused("predict", "--llm", config, "--profile", self.device))
            self.assertEqual(self.predict(config, "--dtype", "fp8")["load"]["dtype"], "fp8")

    def test_configs_that_lie(self):
        lies = {
            "html": (b"<html><body>404</body></html>", "HTML"),
            "negative": ({**QWEN, "num_hidden_layers": -1}, "num_hidden_layers is negative"),
            "huge": ({**QWEN, "hidden_size": 10 ** 14}, "hidden size"),
            "text": ({**QWEN, "vocab_size": "many"}, "vocab_size is not a number"),
            "missing": ({k: v for k, v in QWEN.items() if k != "vocab_size"}, "vocab_size is missing"),
            "nan": (json.dumps({**QWEN, "hidden_size": math.nan}).encode(), "hidden_size is missing"),
            "zero": ({**QWEN, "num_attention_heads": 0}, "heads"),
            "family": ({**QWEN, "model_type": "novel"}, "novel"),
            "empty": (b"", "empty"),
            "flag": ({**QWEN, "tie_word_embeddings": "false"}, "neither true nor false"),
            "group": ({**QWEN, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 1e-9}}, "group_size"),
            "bits": ({**QWEN, "quantization_config": {"quant_method": "gptq", "bits": "4"}}, "bits"),
            "list": ({**QWEN, "quantization_config": [4]}, "quantization_config is no object"),
            "step": ({**MOE, "decoder_sparse_step": 0}, "decoder_sparse_step"),
            "layers": ({**MOE, "mlp_only_layers": "all"}, "mlp_only_layers"),
            "keys": (gguf({**SMALL, "num_hidden_layers": 2}, blocks=200), "its keys make"),
            "twice": (gguf(SMALL, twice=True), "block_count twice"),
            "bytes": (safetensors(SMALL).replace(b"[0, ", b"[9, "), "bytes"),
            "gguf": (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60), "GGUF"),
            "safetensors": (struct.pack("<Q", 1 << 40) + b"{}", ""),
            "noise": (bytes(range(1, 200)), ""),
        }
        for name, (content, says) in lies.items():
            with self.subTest(name):
                line = self.refused("predict", "--llm", self.write(name + ".x", content), "--profile", self.device)
                self.assertIn(says, line)
                self.assertIn(name + ".x", line)

    def test_usage(self):
        config = self.write("config.json", QWEN)
        for arguments in (["--prompt", "5", "model.txt"], ["--llm", config, "model.txt"], ["--llm", config, "--seq", "4"],
                          ["--llm", config, "--what-if", "seq=4,5"], ["--llm", config, "--memory", "-3GB"],
                          ["--llm", config, "--dtype", "f7"]):
            self.refused("predict", "--profile", self.device, *arguments, code=2)
        for first, second in (("batch=1", "batch=2"), ("prompt=1,2", "context=3")):
            self.assertIn("twice", self.refused("predict", "--llm", config, "--profile", self.device, "--what-if", first,
                                                "--what-if", second, code=2))
        self.assertIn("--tp", self.refused("predict", "--llm", config, "--profile", self.device, "--gpus", "4", "--tp",
                                           "3"))


class Recordings(Llm):
    """generate() of transformers, in recordings that are made here: 20 W for a second is 20 J."""

    CONFIG = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 99, "vocab_size": 101}

    @staticmethod
    def made_name():
        """What nrg.torch calls the tokens that generate() made, in its own words."""
        with open(os.path.join(TOP, "python", "nrg", "torch", "_generate.py"), encoding="utf-8") as text:
            return re.search(r'name_id\("([^"]+)", "counter"\), made\)', text.read())[1]

    def recording(self, name, batch, made, watts=20):
        spans = spans_file.Spans()
        for begin in (0.5, 2.5):
            spans.span(begin, begin + 1, "generate", detail="GPT2LMHeadModel",
                       counts=(("requests", batch), (self.made_name(), made)), inside=[
                           dict(begin_s=begin, end_s=begin + 0.3, text="prefill", kind="phase",
                                counts=(("input tokens", 7 * batch),)),
                           dict(begin_s=begin + 0.3, end_s=begin + 1, text="decode", kind="phase",
                                counts=(("output tokens", made - batch),))])
        path, log = self.path(name), self.path("power.log")
        with open(log, "w", encoding="utf-8") as out:
            out.write(spans_file.power_log([watts] * 400))
        done = self.nrg("import", "-q", "-f", "-o", path, log)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        spans.write(path)
        return path

    def test_a_row(self):
        path, out = self.recording("a.nrg", 4, 40), self.path("rows.csv")
        config = self.write("config.json", self.CONFIG)
        for option in (config, "GPT2=" + config):
            done = self.nrg("dataset", path, "--config", option, "--idle", "none", "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            with open(out, encoding="utf-8", newline="") as rows:
                row, = csv.DictReader(rows)
            self.assertEqual((row["model"], row["kind"], row["level"]), ("GPT2LMHeadModel", "generate", "model"))
            self.assertAlmostEqual(float(row["energy_j"]), 40 / 80, delta=0.01)
            self.assertAlmostEqual(float(row["time_s"]), 2 / 80, delta=0.001)
            self.assertEqual((float(row["batch"]), float(row["seq"]), float(row["repeats"])), (4, 7 + 10 / 2, 80))
            self.assertEqual(float(row["gpu_layers"]), 2 / 4)
        self.assertIn("GPT2LMHeadModel", self.refused("dataset", path, "--config", "Other=" + config))
        self.assertIn("keeps no graph", self.refused("dataset", path))

    def test_idle_share_has_an_interval(self):
        """5 W of 20 W."""
        llm = self.json("attribute", self.recording("idle.nrg", 2, 20), "--idle-power", "5")["llm"]
        self.assertAlmostEqual(llm["idle_share"]["value"], 0.25, delta=0.02)
        self.assertTrue(llm["idle_share"]["low"] <= 0.25 <= llm["idle_share"]["high"], llm["idle_share"])

    def test_trained_from_recordings(self):
        """Prediction of the load that was measured gives the measured energy back."""
        config = self.write("config.json", self.CONFIG)
        paths = [self.recording(f"{batch}.nrg", batch, 10 * batch, 10 + batch) for batch in (1, 2, 4, 8)]
        profile = self.path("here.json")
        done = self.nrg("train", "-q", *paths, "--config", config, "--idle", "none", "-o", profile)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = self.json("predict", "--llm", config, "--profile", profile, "--batch", "4", "--prompt", "7", "--output", "10")
        request = found["llm"]["j_per_request"]
        self.assertAlmostEqual(request["value"] / (14 / 4), 1, delta=0.1)
        self.assertLessEqual(request["low"], request["value"] / 1.99)  # one model says little of others
        with open(profile, encoding="utf-8") as text_in:
            self.assertNotIn("expected_error_percent", json.load(text_in)["llm"])


if __name__ == "__main__":
    unittest.main()
