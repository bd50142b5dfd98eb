"""nrg predict --llm against transformers: parameters and multiply-accumulates of models built from the same config.

Run by `make test-torch2`, which sets the Python. make_llms.py says what is made.
"""
import json
import os
import subprocess
import tempfile
import unittest

from test_graph_truth import NRG, Made, can_import

PROMPT = 9
PROFILE = {"schema": "nrg.profile/1", "device": "x", "model": "llm", "features": "static", "counts": "nrg",
           "provenance": "measured", "confidence": 0.95, "trained_on": {"sources": [], "models": [], "rows": 1},
           "llm": {"rows": 1, "joules": {"macs": 1e-12, "dense_bytes": 1e-10}, "interval_ln": {"any": 0.1}}}


def expanded_again(config):
    """transformers keeps DeepSeek's latent vectors and makes keys and values of all of them again at every step; nrg
    counts each token's once."""
    if "kv_lora_rank" not in config:
        return 0
    heads = config["num_attention_heads"] * (config["qk_nope_head_dim"] + config["v_head_dim"])
    return PROMPT * config["num_hidden_layers"] * config["kv_lora_rank"] * heads


def needless_experts(config):
    """transformers sends each token of Llama 4 through all experts, with zeros; nrg counts those it is sent to."""
    if config["model_type"] != "llama4_text":
        return 0
    layers = config["num_hidden_layers"] // config["interleave_moe_layer_step"]
    idle = config["num_local_experts"] - config["num_experts_per_tok"]
    return layers * idle * 3 * config["hidden_size"] * config["intermediate_size"]


@unittest.skipUnless(can_import("transformers"), "needs PyPI's transformers")
class Transformers(Made):
    MAKER = "make_llms.py"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.profile = cls.enterClassContext(tempfile.NamedTemporaryFile("w", suffix=".json"))
        json.dump(PROFILE, cls.profile)
        cls.profile.flush()

    def predict(self, name, *options):
        done = subprocess.run([NRG, "predict", "--llm", self.path(name), "--profile", self.profile.name, "--json",
                               "--prompt", str(PROMPT), *options], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_parameters(self):
        wrong = {}
        for name, truth in self.truth.items():
            params = self.predict(name)["model"]["params"]
            if params != truth["params"]:
                wrong[name] = (params, truth["params"])
        self.assertEqual(wrong, {})
        self.assertGreater(len(self.truth), 120)

    def test_macs_of_a_token(self):
        """A step with a cache of nine tokens."""
        wrong = {}
        for name, truth in self.truth.items():
            if "token_macs" in truth:
                counts = self.predict(name, "--output", "1")["counts"]
                macs = counts["token_macs"] - counts.get("state_macs", 0)
                macs += expanded_again(self.config(name)) + needless_experts(self.config(name))
                if macs != truth["token_macs"]:
                    wrong[name] = (macs, truth["token_macs"])
        self.assertEqual(wrong, {})

    def test_macs_of_a_prompt(self):
        """transformers multiplies all pairs of tokens and masks half of them; nrg counts those that are needed."""
        wrong = {}
        for name, truth in self.truth.items():
            if "prompt_macs" not in truth:
                continue
            if "token_macs" not in truth:  # an encoder sees all pairs
                macs = self.predict(name)["counts"]["prompt_macs"]
            else:
                macs = self.causal_macs(name)
            if macs is not None and macs != truth["prompt_macs"]:
                wrong[name] = (macs, truth["prompt_macs"])
        self.assertEqual(wrong, {})

    def causal_macs(self, name):
        """MACs of the prompt with all pairs; None where a window makes the pairs of one token no measure of them."""
        counts = self.predict(name, "--output", "1")["counts"]
        config = self.config(name)
        if config.get("sliding_window"):
            return None
        of_pair = counts["attention_macs"] / (PROMPT + 1)
        masked = of_pair * (PROMPT * PROMPT - PROMPT * (PROMPT + 1) / 2)
        scans = PROMPT * counts.get("state_macs", 0)
        return counts["prompt_macs"] - scans + masked + PROMPT * needless_experts(config)

    def test_macs_of_an_encoder_and_a_decoder(self):
        """T5 reads the prompt with its encoder; Whisper's is the decoder's, whose masked pairs PyTorch counts, too."""
        wrong, n = {}, 0
        for name, truth in self.truth.items():
            if "request_macs" not in truth:
                continue
            counts = self.predict(name, "--output", "3")["counts"]
            macs = counts["prompt_macs"] + 3 * counts["token_macs"]
            config, n = self.config(name), n + 1
            if config["model_type"] == "whisper":
                masked = PROMPT * PROMPT - PROMPT * (PROMPT + 1) / 2
                macs += masked * 2 * config["d_model"] * config["decoder_layers"]
            if macs != truth["request_macs"]:
                wrong[name] = (macs, truth["request_macs"])
        self.assertEqual(wrong, {})
        self.assertGreater(n, 8)

    def test_a_state_has_one_size(self):
        """Recurrent layers keep the same bytes whatever the length of the text; attention adds some per token."""
        for name in ("MambaConfig-0", "Mamba2Config-0", "FalconMambaConfig-0"):
            short, long = (self.predict(name, "--output", n)["counts"] for n in ("1", "4000"))
            self.assertEqual(short["cache_bytes"], long["cache_bytes"])
            self.assertEqual(short["cache_bytes"], short["state_bytes"])
            self.assertEqual(short["cache_token_bytes"], 0)

    def config(self, name):
        with open(os.path.join(self.path(name), "config.json"), encoding="utf-8") as text:
            return json.load(text)


if __name__ == "__main__":
    unittest.main()
