"""Rows as the ML.ENERGY leaderboard has them, of known prices."""

LAW = {"dense": 2e-10, "kv": 1.5e-10, "mac": 3e-12, "step": 5e-3}


def made_rows(gpu="Z9"):
    """Rows of dense public models whose energies follow from bytes and MACs by prices."""
    sizes = {"a/Qwen3-8B": (8.19, 36, 4096), "b/Qwen3-14B": (14.77, 40, 5120), "c/Qwen3-32B": (32.76, 64, 5120),
             "d/Llama-3.1-8B-Instruct": (8.03, 32, 4096), "e/Llama-3.1-70B": (70.55, 80, 8192)}
    rows = []
    for model, (params, layers, _) in sizes.items():
        for batch in (8, 16, 32, 64, 128):
            for task, prompt, output in (("lm-arena-chat", 100, 500), ("gpqa", 300, 5000)):
                cache = layers * 4096 * (prompt + output / 2)
                energy = (LAW["dense"] * 2e9 * params + LAW["step"] * layers) / batch + LAW["kv"] * cache
                energy += LAW["mac"] * 1e9 * params * (1 + prompt / output)
                rows.append({"model": model, "task": task, "act": params, "tot": params, "prec": "bfloat16",
                             "num_gpus": 1, "tp": 1, "avg_batch_size": batch, "avg_output_len": output,
                             "energy_per_token_joules": energy, "gpu_model": gpu, "arch": "Dense Transformer",
                             "nickname": None})
    return rows
