"""Runs nrg on simulated servers (serving.py, harsh_server.py) and compares what it says with their law."""
import json
import os
import subprocess
import tempfile

import numpy as np

import harsh_server
import serving
from support import NRG

TERMS = {"j_per_input_token": "prompt", "j_per_output_token": "output", "j_per_output_token_with_time": "output_with_time",
         "all_in_j_per_input_token": "all_in_prompt", "all_in_j_per_output_token": "all_in_output", "all_j_per_output_token": "all",
         "sequence_w": "sequence", "busy_w": "busy", "idle_w": "idle"}


def result(seed, clients, options):
    """The object llm of nrg report --json, and the truth of each of TERMS that has one. options: of serving.write, or {"harsh": a server's}."""
    with tempfile.TemporaryDirectory(prefix="nrg-serving-") as folder:
        path = os.path.join(folder, "run.nrg")
        harsh = options.get("harsh")
        truth = harsh_server.write(path, seed, harsh) if harsh else serving.write(path, seed, clients, **options)
        done = subprocess.run([NRG, "report", "--json", path], capture_output=True, text=True, check=True)
        return {**json.loads(done.stdout)["llm"], "truth": truth}


def results(seeds, clients, pool=None, **options):
    return list((pool.map if pool else map)(result, seeds, [clients] * len(seeds), [options] * len(seeds)))


def judge(llms, key):
    """Median error, its 95 % quantile, its mean with its sign, median half width (all of the truth), share of intervals that hold it."""
    found = [(llm[key], llm["truth"][TERMS[key]])
             for llm in llms if "value" in llm.get(key, {}) and TERMS[key] in llm["truth"]]
    if not found:
        return {"n": 0}
    off = [p["value"] / true - 1 if true else p["value"] for p, true in found]
    return {"n": len(found), "error": float(np.median(np.abs(off))), "error95": float(np.quantile(np.abs(off), 0.95)), "bias": float(np.mean(off)),
            "half_width": float(np.median([(p["high"] - p["low"]) / 2 / (true or 1) for p, true in found])),
            "covered": float(np.mean([p["low"] <= true <= p["high"] for p, true in found]))}
