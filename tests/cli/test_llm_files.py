"""nrg predict --llm of files of weights: what their headers say is what a config says. Truth: arithmetic on shapes."""
import json
import math
import os
import struct
import unittest

from llm_files import gguf, mamba, safetensors, tensors
from test_llm import SMALL, OnADevice


class Files(OnADevice):
    def test_gguf_and_safetensors(self):
        """The same model from a header; a folder is read by its config.json."""
        truth = self.predict(self.write("config.json", SMALL))["counts"]
        self.assertEqual(self.predict(os.path.dirname(self.path("config.json")))["counts"], truth)
        for name, content in (("model.gguf", gguf(SMALL)), ("sole.safetensors", safetensors(SMALL))):
            folder = self.path(name + ".d")
            os.mkdir(folder)
            path = os.path.join(folder, name)
            with open(path, "wb") as out:
                out.write(content)
            counts = self.predict(path)["counts"]
            for key in ("prompt_macs", "token_macs", "cache_token_bytes"):
                self.assertEqual(counts[key], truth[key], (name, key))
            self.assertAlmostEqual(counts["weight_bytes"] / truth["weight_bytes"], 1, delta=0.01, msg=name)  # no norms

    def test_a_state_of_gguf(self):
        """Mamba's layers have neither heads nor blocks: the same from its header as from its config."""
        config = {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 3, "state_size": 6, "conv_kernel": 4,
                  "time_step_rank": 4, "vocab_size": 101}
        truth = self.predict(self.write("mamba.json", config))
        with open(self.path("mamba.gguf"), "wb") as out:
            out.write(mamba(config))
        found = self.predict(self.path("mamba.gguf"))
        self.assertEqual(found["model"]["params"], truth["model"]["params"])
        for key in ("prompt_macs", "token_macs", "state_macs", "cache_bytes", "weight_bytes"):
            self.assertEqual(found["counts"][key], truth["counts"][key], key)

    def test_a_family_that_is_not_known(self):
        """Weights of usual names tell enough where the config beside them does not; sizes by hand do without both."""
        line = self.refused("predict", "--llm", self.write("config.json", {**SMALL, "model_type": "qwen9"}), "--profile",
                            self.device)
        for part in ("'qwen9' is not known", "did you mean", "minimax_m2", "--llm params="):
            self.assertIn(part, line)
        truth = self.predict(self.write("known.json", SMALL))["counts"]
        with open(self.path("model.safetensors"), "wb") as out:
            out.write(safetensors(SMALL))
        self.assertEqual(self.predict(self.path("model.safetensors"))["counts"]["token_macs"], truth["token_macs"])
        found = self.predict("params=7.6e9,layers=28,hidden=3584")
        self.assertAlmostEqual(found["model"]["params"] / 7.6e9, 1, delta=0.01)
        self.assertIn("made up", " ".join(found["reasons"]))

    def test_what_is_left_out_is_said(self):
        config = {"model_type": "llava", "text_config": SMALL, "audio_config": {},
                  "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64,
                                    "num_hidden_layers": 1, "image_size": 28, "patch_size": 14}}
        text = self.predict(self.write("text.json", SMALL))
        found = self.predict(self.write("both.json", config))
        width = SMALL["hidden_size"]
        vision = 32 * (1 + 3 * 14 * 14 + 5) + 4 * 32 + 4 * 33 * 32 + 33 * 64 + 65 * 32 + 4 * 32
        vision += 33 * width + (width + 1) * width
        self.assertEqual(found["model"]["params"], text["model"]["params"] + vision)
        self.assertEqual([part.get("params") for part in found["model"]["left_out"]], [vision, None])
        self.assertIn("audio", found["model"]["left_out"][1]["text"])
        self.assertEqual(found["counts"]["token_macs"], text["counts"]["token_macs"])
        self.assertNotIn("left_out", text["model"])

    def test_quantised_weights_of_a_folder(self):
        """Several weights are in an element of these tensors: the config says the bits, the header's bytes are the truth."""
        config = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 32, "tie_word_embeddings": True}
        header, at = {}, 0
        for name, _, shape in tensors(config):
            packed = [("", "BF16", shape)]
            if "layers" in name:
                packed = [(".qweight", "I32", [shape[1] // 8, shape[0]]), (".scales", "F16", [shape[1] // 128, shape[0]]),
                          (".qzeros", "I32", [shape[1] // 128, shape[0] // 8])]
            for ending, dtype, dims in packed:
                size = (4 if dtype == "I32" else 2) * math.prod(dims)
                header[name.replace(".weight", ending) if ending else name] = {"dtype": dtype, "shape": dims, "data_offsets": [at, at + size]}
                at += size
        body = json.dumps(header).encode()
        folder = os.path.dirname(self.write("config.json", {**config, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}))
        self.write("model.safetensors", struct.pack("<Q", len(body)) + body + bytes(at))
        counts = self.predict(folder)["counts"]
        self.assertAlmostEqual(counts["weight_bytes"] / at, 1, delta=0.01)
        self.write("config.json", config)
        line = self.refused("predict", "--llm", folder, "--profile", self.device)
        self.assertIn("its config.json makes", line)

    def test_feed_forward_blocks_of_gguf(self):
        """A gate that is one matrix with `up` (Phi 3), experts one by one (older files), in every other layer beside a shared one
        (Llama 4): parameters are those of the tensors, and a token goes through what it uses."""
        width, wide, narrow = SMALL["hidden_size"], SMALL["intermediate_size"], 32
        three = ("gate", "up", "down")

        def fused(i):
            return [("ffn_up", [2 * wide, width]), ("ffn_down", [width, wide])]

        def single(i):
            return [(f"ffn_{part}.{e}", [wide, width]) for part in three for e in range(4)] + [("ffn_gate_inp", [4, width])]

        def mixed(i):
            if i % 2 == 0:
                return [(f"ffn_{part}", [wide, width]) for part in three]
            return [(f"ffn_{part}_exps", [4, narrow, width]) for part in three] + [(f"ffn_{part}_shexp", [narrow, width]) for part in three] \
                + [("ffn_gate_inp", [4, width])]

        experts = {"llama.expert_count": 4, "llama.expert_used_count": 2}
        used = {fused: 2 * 3 * wide * width, single: 2 * (2 * 3 * wide + 4) * width,
                mixed: (3 * wide + 3 * 3 * narrow + 4) * width}  # two experts and the shared one
        for blocks, more in ((fused, {}), (single, experts), (mixed, {**experts, "llama.expert_feed_forward_length": narrow})):
            with self.subTest(blocks.__name__):
                found = self.predict(self.write("model.gguf", gguf(SMALL, feed_forward=blocks, more=more)), "--output", "1")
                self.assertAlmostEqual(found["model"]["params"] / found["model"]["stored_params"], 1, delta=0.01)  # no norms
                counts = found["counts"]
                rest = counts["token_macs"] - counts["attention_macs"] - SMALL["vocab_size"] * width
                self.assertEqual(rest - 2 * 3 * width * width, used[blocks])


if __name__ == "__main__":
    unittest.main()
