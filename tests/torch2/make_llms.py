"""Language models of transformers from configs, with what they are made of: truth.json in the folder given.

For each class its default config (the size of a published model, on the meta device) and a few small ones: config.json,
the number of parameters, and for small ones multiply-accumulates of a decoding step and of a prompt, counted by
PyTorch's FlopCounterMode while the model runs. Of an encoder with a decoder, those of a whole request.
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
FALCON = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 101}
STATES = {"hidden_size": 64, "num_hidden_layers": 3, "state_size": 6, "vocab_size": 101, "use_mambapy": False}
DELTA = {"linear_key_head_dim": 8, "linear_value_head_dim": 12, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
T5 = {"d_model": 64, "num_layers": 3, "num_heads": 4, "d_kv": 12, "d_ff": 96, "vocab_size": 101,
      "decoder_start_token_id": 0}
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
    "Olmo2Config": ("Olmo2ForCausalLM", [SMALL, {**SMALL, "attention_bias": True, "num_key_value_heads": None}]),
    "Olmo3Config": ("Olmo3ForCausalLM", [{**SMALL, "sliding_window": 5}]),
    "Glm4Config": ("Glm4ForCausalLM", [{**HEADS, "attention_bias": True, "pad_token_id": 0}]),
    "Glm4MoeConfig": ("Glm4MoeForCausalLM", [
        {**EXPERTS, "n_routed_experts": 6, "n_shared_experts": 2, "first_k_dense_replace": 2, "use_qk_norm": True,
         "attention_bias": True},
        {**SMALL, "hidden_size": 72, "num_attention_heads": 10, "n_routed_experts": 6, "moe_intermediate_size": 24,
         "num_experts_per_tok": 3}]),
    "MiniMaxM2Config": ("MiniMaxM2ForCausalLM", [{**HEADS, "num_local_experts": 6, "num_experts_per_tok": 2}]),
    "FalconConfig": ("FalconForCausalLM", [
        FALCON, {**FALCON, "multi_query": False, "alibi": True, "parallel_attn": False, "bias": True},
        {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2},
        {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1,
         "ffn_hidden_size": 90, "tie_word_embeddings": False},
        {**FALCON, "multi_query": False, "new_decoder_architecture": False}]),
    "MambaConfig": ("MambaForCausalLM", [
        STATES, {**STATES, "expand": 3, "use_bias": True, "use_conv_bias": False, "time_step_rank": 5,
                 "tie_word_embeddings": False}]),
    "FalconMambaConfig": ("FalconMambaForCausalLM", [{**STATES, "conv_kernel": 3}]),
    "Mamba2Config": ("Mamba2ForCausalLM", [
        {**STATES, "num_heads": 8, "head_dim": 16, "n_groups": 2, "state_size": 12},
        {**STATES, "num_heads": 4, "head_dim": 48, "expand": 3, "n_groups": 1, "state_size": 10, "use_bias": True}]),
    "JambaConfig": ("JambaForCausalLM", [
        {**SMALL, "num_experts": 4, "num_experts_per_tok": 2, "attn_layer_period": 3, "attn_layer_offset": 1,
         "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 6, "mamba_d_conv": 3,
         "use_mamba_kernels": False},
        {**SMALL, "num_hidden_layers": 5, "num_experts": 1, "num_experts_per_tok": 1, "mamba_proj_bias": True,
         "mamba_conv_bias": False, "mamba_dt_rank": 7, "mamba_expand": 3, "use_mamba_kernels": False}]),
    "Qwen3NextConfig": ("Qwen3NextForCausalLM", [
        {**EXPERTS, **DELTA, "num_experts": 6, "shared_expert_intermediate_size": 48},
        {**EXPERTS, **DELTA, "num_experts": 6, "shared_expert_intermediate_size": 48, "attention_bias": True,
         "num_hidden_layers": 3, "mlp_only_layers": [1],
         "layer_types": ["linear_attention", "full_attention", "full_attention"]}]),
    "T5Config": ("T5ForConditionalGeneration", [
        T5, {**T5, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 2, "d_kv": 10}]),
    "MT5Config": ("MT5ForConditionalGeneration", [T5]),
    "UMT5Config": ("UMT5ForConditionalGeneration", [{**T5, "num_decoder_layers": 4}]),
    "WhisperConfig": ("WhisperForConditionalGeneration", [
        {"d_model": 64, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 8, "encoder_ffn_dim": 96, "decoder_ffn_dim": 80, "vocab_size": 101,
         "num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 30, "pad_token_id": 0,
         "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None,
         "begin_suppress_tokens": None}]),
}


# Models with pictures: all their parameters are counted.
TEXT = {**SMALL, "vocab_size": 151660}
SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
          "num_attention_heads": 4, "image_size": 56, "patch_size": 14}
VISION = {
    "Qwen2VLConfig": ("Qwen2VLForConditionalGeneration", [
        {"text_config": TEXT, "vision_config": {"depth": 3, "embed_dim": 48, "hidden_size": 64, "num_heads": 4}}]),
    "Qwen2_5_VLConfig": ("Qwen2_5_VLForConditionalGeneration", [
        {"text_config": TEXT, "vision_config": {"depth": 3, "hidden_size": 48, "intermediate_size": 70,
                                                "out_hidden_size": 64, "num_heads": 4}}]),
    "Qwen3VLConfig": ("Qwen3VLForConditionalGeneration", [
        {"text_config": TEXT, "vision_config": {"depth": 3, "hidden_size": 48, "intermediate_size": 70, "num_heads": 4,
                                                "out_hidden_size": 64, "deepstack_visual_indexes": [0, 2]}}]),
    "LlavaConfig": ("LlavaForConditionalGeneration", [
        {"text_config": {"model_type": "llama", **SMALL}, "vision_config": SIGLIP},
        {"text_config": {"model_type": "mistral", **HEADS}, "vision_config": {**SIGLIP, "model_type": "pixtral"},
         "multimodal_projector_bias": False}]),
    "Gemma3Config": ("Gemma3ForConditionalGeneration", [
        {"text_config": HEADS, "vision_config": {**SIGLIP, "vision_use_head": False}}]),
    "Mistral3Config": ("Mistral3ForConditionalGeneration", [
        {"text_config": {"model_type": "mistral", **HEADS}, "vision_config": {**SIGLIP, "model_type": "pixtral"}}]),
}
# What a class's defaults leave open.
DEFAULTS = {"DeepseekV2Config": {"num_experts_per_tok": 6}}


def count_params(config, model_class):
    with torch.device("meta"):
        model = model_class(config)
    return sum(p.numel() for p in model.parameters())


def scan_macs(model, counts, tokens):
    """What PyTorch counts of recurrent layers beside their projections: how a scan is written differs from kernel to
    kernel (chunks, padding), so that only the projections are compared."""
    extra = 0
    for name, module in model.named_modules():
        if not hasattr(module, "conv1d"):
            continue
        counted = sum(counts[f"{type(model).__name__}.{name}"].values()) // 2
        linear = sum(m.in_features * m.out_features for m in module.children() if isinstance(m, torch.nn.Linear))
        extra += counted - tokens * linear
    return extra


def macs_of(call, model=None, tokens=0):
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        call()
    total = counter.get_total_flops()
    assert total % 2 == 0
    return total // 2 - (scan_macs(model, counter.get_flop_counts(), tokens) if model else 0)


OUTPUT = 3


def run_seq2seq(config, model):
    """All of a request: the encoder once, OUTPUT steps of the decoder."""
    if config.model_type == "whisper":
        given = {"input_features": torch.rand(1, config.num_mel_bins, 2 * config.max_source_positions)}
        first = torch.randint(3, 100, (1, PROMPT))
    else:
        given, first = {"input_ids": torch.randint(3, 100, (1, PROMPT))}, None

    def request():
        out = None
        tokens = first
        if first is not None:  # the decoder's own prompt, whose output is needed at its last position only
            out = model.model(**given, decoder_input_ids=first, use_cache=True)
            model.proj_out(out.last_hidden_state[:, -1:])
        for _ in range(OUTPUT):
            tokens = torch.randint(3, 100, (1, 1))
            known = {"encoder_outputs": (out.encoder_last_hidden_state,)} if out else given
            out = model(**known, decoder_input_ids=tokens, use_cache=True,
                        past_key_values=out.past_key_values if out else None)

    return {"request_macs": macs_of(request)}


def run(config, model_class):
    """MACs of the prompt, its output over the vocabulary at the last position alone, and of the next token."""
    torch.manual_seed(1)
    model = model_class(config).eval()
    tokens = torch.randint(3, 100, (1, PROMPT + 1))
    if config.is_encoder_decoder:
        return run_seq2seq(config, model)
    if not hasattr(model, "generate"):
        return {"prompt_macs": macs_of(lambda: model(tokens[:, :PROMPT]))}
    kept = {}

    def prompt():
        kept["out"] = model(tokens[:, :PROMPT], use_cache=True, logits_to_keep=1)

    found = {"prompt_macs": macs_of(prompt, model, PROMPT)}
    cache = "past_key_values" if hasattr(kept["out"], "past_key_values") else "cache_params"
    past = {cache: getattr(kept["out"], cache)}
    found["token_macs"] = macs_of(lambda: model(tokens[:, PROMPT:], use_cache=True, **past), model, 1)
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
    for key in ("hidden_size", "intermediate_size", "moe_intermediate_size", "vocab_size", "d_model", "d_ff"):
        if key in made:
            made[key] += 32 * rng.randrange(1, 9)
    if "n_groups" in made:  # Mamba 2: heads make up the inner width
        made["head_dim"] = made.get("expand", 2) * made["hidden_size"] // made["num_heads"]
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
    for config_name, (model_name, sizes) in VISION.items():
        for i, size in enumerate([{}] + sizes):
            add(folder, truth, f"{config_name}-v{i}", getattr(tf, config_name)(**size), getattr(tf, model_name), False)
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as out:
        json.dump(truth, out, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
