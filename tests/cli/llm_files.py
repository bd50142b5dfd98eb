"""Headers of GGUF and safetensors files of a small model, for tests: shapes from a config, weights that are all zero."""
import json
import math
import struct


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def tensors(config, feed_forward=None):
    """Names and shapes, innermost last, of a llama's matrices. feed_forward: of GGUF, those of block i instead of the usual three."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    kv = width // heads * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", "token_embd.weight", [config["vocab_size"], width]
    for i in range(config["num_hidden_layers"]):
        for hugging_face, ggml, shape in (("self_attn.q_proj", "attn_q", [width, width]),
                                          ("self_attn.k_proj", "attn_k", [kv, width]),
                                          ("self_attn.v_proj", "attn_v", [kv, width]),
                                          ("self_attn.o_proj", "attn_output", [width, width]),
                                          ("mlp.gate_proj", "ffn_gate", [config["intermediate_size"], width]),
                                          ("mlp.up_proj", "ffn_up", [config["intermediate_size"], width]),
                                          ("mlp.down_proj", "ffn_down", [width, config["intermediate_size"]])):
            if not (feed_forward and ggml.startswith("ffn")):
                yield f"model.layers.{i}.{hugging_face}.weight", f"blk.{i}.{ggml}.weight", shape
        for ggml, shape in feed_forward(i) if feed_forward else ():
            yield None, f"blk.{i}.{ggml}.weight", shape


def gguf(config, blocks=None, twice=False, feed_forward=None, more=None):
    pairs = {"llama.block_count": blocks or config["num_hidden_layers"], "llama.embedding_length": config["hidden_size"],
             "llama.feed_forward_length": config["intermediate_size"],
             "llama.attention.head_count": config["num_attention_heads"],
             "llama.attention.head_count_kv": config["num_key_value_heads"], "llama.vocab_size": config["vocab_size"]}
    pairs.update(more or {})
    return header("llama", pairs, list(tensors(config, feed_forward)), twice)


def mamba(config):
    """Keys and tensors as llama.cpp's converter writes them."""
    width, states, taps, rank = (config[k] for k in ("hidden_size", "state_size", "conv_kernel", "time_step_rank"))
    inner, names = 2 * width, [(None, "token_embd.weight", [config["vocab_size"], width]), (None, "output_norm.weight", [width])]
    for i in range(config["num_hidden_layers"]):
        names += [(None, f"blk.{i}.{name}", shape) for name, shape in (
            ("attn_norm.weight", [width]), ("ssm_in.weight", [2 * inner, width]), ("ssm_conv1d.weight", [inner, taps]),
            ("ssm_conv1d.bias", [inner]), ("ssm_x.weight", [rank + 2 * states, inner]), ("ssm_dt.weight", [inner, rank]),
            ("ssm_dt.bias", [inner]), ("ssm_a", [inner, states]), ("ssm_d", [inner]), ("ssm_out.weight", [width, inner]))]
    pairs = {"block_count": config["num_hidden_layers"], "embedding_length": width, "feed_forward_length": 0,
             "attention.head_count": 0, "ssm.conv_kernel": taps, "ssm.inner_size": inner, "ssm.state_size": states,
             "ssm.time_step_rank": rank, "vocab_size": config["vocab_size"]}
    return header("mamba", {"mamba." + key: value for key, value in pairs.items()}, names)


def header(architecture, pairs, names, twice=False):
    out = b"GGUF" + struct.pack("<IQQ", 3, len(names), len(pairs) + 1 + twice)
    out += text("general.architecture") + struct.pack("<I", 8) + text(architecture)
    for key, value in [*pairs.items(), *list(pairs.items())[:twice]]:
        out += text(key) + struct.pack("<II", 4, value)
    for _, name, shape in names:
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        out += struct.pack("<IQ", 1, 0)
    return out


def safetensors(config):
    header, at = {}, 0
    for name, _, shape in tensors(config):
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    body = json.dumps(header).encode()
    return struct.pack("<Q", len(body)) + body + bytes(at)
