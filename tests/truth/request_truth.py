#!/usr/bin/env python3
"""Requests to a language model's server of known prices, as nrg llm proxy records them: a machine of its own, no code of src/.

Clients send a request, wait for the answer, think, and send the next. The server works in steps that read pieces of prompts and make a
token for every sequence; its power is a law of these counts, so the joules of each request are known. A processor's counter and a
GPU's noisy gauge show it; requests are spans, written from docs/recording-format.md.

    tests/truth/request_truth.py --nrg build/nrg --clients 1,8,32 --seeds 200      # how far off, and how often the intervals hold
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from recording import NO_VALUE, Recording

BEGIN_NS = 1_000_000_000_000
LAW = {"idle": 90.0, "prompt": 0.08, "output": 0.6, "sequence": 0.0}
ON_GPU = 0.8
PIECE = 512
TEXTS_S = 0.02
NAMES = [("request", "request"), ("phase", "prefill"), ("phase", "decode"), ("counter", "input tokens"),
         ("counter", "output tokens"), ("counter", "texts"), ("outcome", "answered"), ("api", "chat"), ("model", "m")]
NAME = {text: i + 1 for i, (_, text) in enumerate(NAMES)}


def serve(rng, clients, seconds, think_s):
    """(steps: begin, end, tokens read, tokens made, sequences; requests). No new ones after `seconds`, and those that run end, as the proxy waits for them."""
    ready = list(rng.exponential(think_s, clients))
    active, steps, requests, t = [], [], [], 0.0
    while active or t < seconds:
        for c in range(clients):
            if ready[c] is not None and ready[c] <= min(t, seconds):
                q = {"client": c, "begin": ready[c], "prompt": 1 + int(rng.lognormal(np.log(500), 0.7)), "times": [],
                     "output": 1 + int(rng.lognormal(np.log(200), 0.6)), "joules": 0.0}
                q["left"], ready[c] = q["prompt"], None
                active.append(q)
                requests.append(q)
        if not active:
            t = min(r for r in ready if r is not None)
            continue
        room, read, made = PIECE, [0] * len(active), [0] * len(active)
        for i, q in enumerate(active):
            if q["left"] > 0:
                read[i] = min(room, q["left"])
                q["left"] -= read[i]
                room -= read[i]
            made[i] = int(q["left"] == 0)
        step_s = (0.012 + 0.0003 * len(active) + 0.00012 * sum(read)) * rng.lognormal(0, 0.05) * (1 + 0.15 * np.sin(t / 7))
        steps.append((t, t + step_s, sum(read), sum(made), len(active)))
        t += step_s
        for i, q in enumerate(active):
            q["joules"] += LAW["prompt"] * read[i] + LAW["output"] * made[i] + LAW["sequence"] * step_s
            q["times"] += [t] * made[i]
        for q in [q for q in active if len(q["times"]) == q["output"]]:
            active.remove(q)
            q["end"] = t
            ready[q["client"]] = t + rng.exponential(think_s)
    return np.array(steps), requests


def drift(rng, n, dt_s, sd_w, memory_s=8.0):
    keep, w = np.exp(-dt_s / memory_s), np.zeros(n)
    for i, z in enumerate(rng.normal(size=n - 1)):
        w[i + 1] = keep * w[i] + np.sqrt(1 - keep * keep) * sd_w * z
    return w


def events(requests, unsaid=0.0):
    """Rows of spans: time in s, track, event, name, value. unsaid: part of the requests whose tokens the server does not say."""
    silent = np.random.default_rng(5).random(len(requests)) < unsaid
    for number, q in enumerate(requests, 1):
        track, first = q["client"] + 1, q["times"][0]
        yield q["begin"], track, 0, NAME["request"], number
        yield q["begin"], track, 2, NAME["chat"], NO_VALUE
        yield q["begin"], track, 0, NAME["prefill"], NO_VALUE
        yield first, track, 1, NO_VALUE, NO_VALUE
        yield first, track, 0, NAME["decode"], NO_VALUE
        waiting, last = 0, q["begin"]
        for t in q["times"]:
            waiting += 1
            if t - last >= TEXTS_S or t == q["end"]:
                yield t, track, 3, NAME["texts"], waiting
                waiting, last = 0, t
        yield q["end"], track, 1, NO_VALUE, NO_VALUE
        if not silent[number - 1]:
            yield q["end"], track, 3, NAME["input tokens"], q["prompt"]
            yield q["end"], track, 3, NAME["output tokens"], q["output"]
        yield q["end"], track, 2, NAME["m"], NO_VALUE
        yield q["end"], track, 2, NAME["answered"], NO_VALUE
        yield q["end"], track, 1, NO_VALUE, NO_VALUE


def write(path, seed, clients, seconds, think_s=2.0, baseline_s=10.0, unsaid=0.0):
    """A recording, with idle time before the requests; returns the requests."""
    rng = np.random.default_rng([seed, clients])
    steps, requests = serve(rng, clients, seconds, think_s)
    seconds = max(seconds, steps[-1, 1]) + 0.5
    used = LAW["prompt"] * steps[:, 2] + LAW["output"] * steps[:, 3] + LAW["sequence"] * steps[:, 4] * (steps[:, 1] - steps[:, 0])
    at = np.column_stack([steps[:, 0], steps[:, 1]]).ravel()
    sums = np.column_stack([np.cumsum(used) - used, np.cumsum(used)]).ravel()
    joules = lambda t: np.interp(t, at, sums, left=0.0)
    stamp = lambda t: np.round((np.asarray(t) + baseline_s) * 1e9).astype(np.int64) + BEGIN_NS
    r = Recording(path)
    t = np.arange(-baseline_s + 0.05, seconds, 0.1)
    t += rng.uniform(0, 0.002, len(t))
    cpu = (1 - ON_GPU) * joules(t) + LAW["idle"] / 3 * (t + baseline_s)
    cpu += np.concatenate([[0], np.cumsum(drift(rng, len(t) - 1, 0.1, 1.0) * np.diff(t))])
    r.samples("rapl-powercap", "intel-rapl:0", 0.1, stamp(t),
              [({"name": "package-0", "scale": 61e-6, "update_ns": 1_000_000, "covers_cpu": 1}, np.floor(cpu / 61e-6))])
    grid = np.arange(-baseline_s, seconds, 0.1)
    watts = np.diff(ON_GPU * joules(grid)) / 0.1 + LAW["idle"] * 2 / 3
    watts = watts * (1 + 0.01 * rng.normal(size=len(watts))) + drift(rng, len(watts), 0.1, 3.0)
    r.samples("nvml", "GPU 0", 0.1, stamp(grid[1:] + 0.001),
              [({"name": "gpu-0", "quantity": "power", "kind": "gauge", "unit": "W", "scale": 1e-3, "update_ns": 100_000_000,
                 "window_ns": 100_000_000}, np.round(watts * 10) * 100)])
    rows = sorted(events(requests, unsaid), key=lambda row: row[0])
    columns = [np.array([row[c] for row in rows], dtype=np.int64) for c in range(1, 5)]
    columns.append(np.full(len(rows), NO_VALUE))
    order = np.lexsort((np.arange(len(rows)), columns[0]))
    r.series("spans", 0, ("track", "event", "name", "value", "parent"), stamp([row[0] for row in rows])[order],
             [c[order] for c in columns])
    r.insert("span_name", *[(i + 1, kind, text, "") for i, (kind, text) in enumerate(NAMES)])
    r.insert("span_track", *[(c + 1, "log", 0, 0, 0, "", f"requests {c + 1}") for c in range(clients)])
    r.meta(nrg_version="truth", command_line="(requests to a language model)", begin_ns=BEGIN_NS)
    r.insert("run", (1, "baseline", int(stamp(-baseline_s + 0.2)), int(stamp(-0.2)), None),
             (2, "system", int(stamp(0.0)), int(stamp(seconds - 0.2)), None))
    r.close()
    return requests


def judge(nrg, seed, clients, seconds, unsaid=0.0):
    """What nrg llm report says of a recording, beside the truth."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "requests.nrg")
        truth = write(path, seed, clients, seconds, unsaid=unsaid)
        said = json.loads(subprocess.run([nrg, "llm", "report", "--json", path], check=True, capture_output=True).stdout)
    out = {"seed": seed, "clients": clients, "requests": len(truth), "method": said["method"],
           "off": abs(sum(q["energy_j"] for q in said["requests"]) + said["idle_j"] + said["unattributed_j"] - said["total_j"])
                  / said["total_j"]}
    for key, name in (("j_per_input_token", "prompt"), ("j_per_output_token", "output")):
        price = said["law"].get(key)
        out[name] = price and {"error": price["value"] / LAW[name] - 1, "holds": price["low"] <= LAW[name] <= price["high"]}
    by_id = {q["id"]: q for q in said["requests"]}  # in order of their begin, the truth in that of their first step
    pairs = [(by_id[number], t["joules"]) for number, t in enumerate(truth, 1)]
    out["held"] = float(np.mean([q["low_j"] <= j <= q["high_j"] for q, j in pairs]))
    out["request_error"] = float(np.median([abs(q["energy_j"] / j - 1) for q, j in pairs]))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nrg", default="build/nrg")
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    for clients in map(int, args.clients.split(",")):
        with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
            rows = list(pool.map(judge, *zip(*[(args.nrg, s, clients, args.seconds) for s in range(args.seeds)])))
        line = f"{clients:3d} clients, {np.mean([r['requests'] for r in rows]):.0f} requests:"
        for name in ("prompt", "output"):
            good = [r[name] for r in rows if r[name]]
            errors = np.abs([g["error"] for g in good])
            line += (f"  {name} median {100 * np.median(errors):.2f} % (95 of 100 below {100 * np.quantile(errors, 0.95):.2f} %),"
                     f" held {100 * np.mean([g['holds'] for g in good]):.1f} %;")
        print(line, f"requests off {100 * np.median([r['request_error'] for r in rows]):.1f} %, held"
              f" {100 * np.mean([r['held'] for r in rows]):.1f} %; sums off {max(r['off'] for r in rows):.1e}", flush=True)


if __name__ == "__main__":
    main()
