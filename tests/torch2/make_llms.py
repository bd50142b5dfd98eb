"""Language models of transformers from configs, with what they are made of: truth.json in the folder given.

For each class its default config (the size of a published model, on the meta device) and a few small ones: config.json,
the number of parameters, and for small ones multiply-accumulates of a decoding step and of a prompt, counted by
PyTorch's FlopCounterMode while the model runs.
"""
import json
import os
import random
import sys

import torch
import transformers as tf
from torch.utils.flop_counter import FlopCounterMode

PROMPT = 9

# class of the config: (class of the model, sizes of small ones)
SMALL = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 96, "vocab_size": 101}
HEADS = {**SMALL, "head_dim": 24}
EXPERTS = {**HEADS, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
FAMILIES = {
    "LlamaConfig": ("LlamaForCausalLM", [SMALL, {**SMALL, "attention_bias": True, "mlp_bias": True,
                                                 "tie_word_embeddings": True}]),
    "MistralConfig": ("MistralForCausalLM", [{**HEADS, "sliding_window": None}, {**HEADS, "sliding_window": 5}]),
    "MixtralConfig": ("MixtralForCausalLM", [{**SMALL, "num_local_experts": 6, "num_experts_per_tok": 2}]),
    "Qwen2Config": ("Qwen2ForCausalLM", [SMALL]),
    "Qwen2MoeConfig": ("Qwen2MoeForCausalLM", [{**SMALL, "num_experts": 6, "num_experts_per_tok": 2,
                                               "moe_intermediate_size": 40, "shared_expert_intermediate_size": 48,
                                               "decoder_sparse_step": 2}]),
    "Qwen3Config": ("Qwen3ForCausalLM", [HEADS, {**HEADS, "attention_bias": True}]),
    "Qwen3MoeConfig": ("Qwen3MoeForCausalLM", [{**EXPERTS, "num_experts": 6},
                                              {**EXPERTS, "num_experts": 6, "mlp_only_layers": [1]}]),
    "GemmaConfig": ("GemmaForCausalLM", [HEADS]),
    "Gemma2Config": ("Gemma2ForCausalLM", [{**HEADS, "sliding_window": 5}]),
    "Gemma3TextConfig": ("Gemma3ForCausalLM", [{**HEADS, "sliding_window": 5, "num_hidden_layers": 7}]),
    "DeepseekV3Config": ("DeepseekV3ForCausalLM", [
        {**SMALL, "num_key_value_heads": 4, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
         "moe_intermediate_size": 40, "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16,
         "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 20, "n_group": 2, "topk_group": 1}]),
    "GptOssConfig": ("GptOssForCausalLM", [{**HEADS, "num_local_experts": 6, "num_experts_per_tok": 2,
                                           "sliding_window": 5}]),
    "PhiConfig": ("PhiForCausalLM", [{**SMALL, "num_key_value_heads": 4}]),
    "Phi3Config": ("Phi3ForCausalLM", [{**SMALL, "sliding_window": None, "pad_token_id": 0}]),
    "GPT2Config": ("GPT2LMHeadModel", [{"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 50,
                                       "vocab_size": 101}]),
    "GPTNeoXConfig": ("GPTNeoXForCausalLM", [{**SMALL, "num_key_value_heads": 4}]),
    "BertConfig": ("BertModel", [{**SMALL, "num_key_value_heads": 4}]),
    "RobertaConfig": ("RobertaModel", [{**SMALL, "num_key_value_heads": 4}]),
    "DistilBertConfig": ("DistilBertModel", [{"dim": 64, "n_layers": 3, "n_heads": 4, "hidden_dim": 96,
                                             "vocab_size": 101}]),
    "DeepseekV2Config": ("DeepseekV2ForCausalLM", [
        {**SMALL, "num_key_value_heads": 4, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 2,
         "moe_intermediate_size": 40, "first_k_dense_replace": 1, "q_lora_rank": None, "kv_lora_rank": 16,
         "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 20}]),
    "NemotronHConfig": ("NemotronHForCausalLM", []),
    "Llama4TextConfig": ("Llama4ForCausalLM", [
        {**HEADS, "num_local_experts": 6, "num_experts_per_tok": 1, "intermediate_size_mlp": 80,
         "interleave_moe_layer_step": 2, "attention_chunk_size": 64}]),
}


# What a class's defaults leave open.
DEFAULTS = {"DeepseekV2Config": {"num_experts_per_tok": 6}}


def count_params(config, model_class):
    with torch.device("meta"):
        model = model_class(config)
    return sum(p.numel() for p in model.parameters())


def macs_of(call):
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        call()
    total = counter.get_total_flops()
    assert total % 2 == 0
    return total // 2


def run(config, model_class):
    """MACs of the prompt, its output over the vocabulary at the last position alone, and of the next token."""
    torch.manual_seed(1)
    model = model_class(config).eval()
    tokens = torch.randint(3, 100, (1, PROMPT + 1))
    if not hasattr(model, "generate"):
        return {"prompt_macs": macs_of(lambda: model(tokens[:, :PROMPT]))}
    kept = {}

    def prompt():
        kept["out"] = model(tokens[:, :PROMPT], use_cache=True, logits_to_keep=1)

    found = {"prompt_macs": macs_of(prompt)}
    found["token_macs"] = macs_of(lambda: model(tokens[:, PROMPT:], past_key_values=kept["out"].past_key_values,
                                                use_cache=True))
    return found


def add(folder, truth, name, config, model_class, small):
    os.makedirs(os.path.join(folder, name))
    config.save_pretrained(os.path.join(folder, name))
    truth[name] = {"params": count_params(config, model_class)}
    if small:
        truth[name].update(run(config, model_class))


def random_sizes(rng, sizes):
    """The same sizes with other numbers that go together."""
    made = dict(sizes)
    for key in ("hidden_size", "intermediate_size", "moe_intermediate_size", "vocab_size"):
        if key in made:
            made[key] += 32 * rng.randrange(1, 9)
    return made


def main(folder):
    truth, rng = {}, random.Random(16)
    for config_name, (model_name, sizes) in FAMILIES.items():
        if not hasattr(tf, config_name) or not hasattr(tf, model_name):
            continue
        config_class, model_class = getattr(tf, config_name), getattr(tf, model_name)
        add(folder, truth, config_name + "-default", config_class(**DEFAULTS.get(config_name, {})),
            model_class, False)
        for i, size in enumerate(sizes + [random_sizes(rng, s) for s in sizes]):
            config = config_class(**size)
            config._attn_implementation = "eager"
            config._experts_implementation = "eager"
            add(folder, truth, f"{config_name}-{i}", config, model_class, True)
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as out:
        json.dump(truth, out, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
