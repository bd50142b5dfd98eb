#!/usr/bin/env python3
"""Requests to a language model's server of known prices, as nrg llm proxy records them: a machine of its own, no code of src/.

The server and its machine are token_server.py's, so the joules of each request are known; what all sequences of a step share is divided equally. Requests are
spans, written from docs/recording-format.md.

    tests/truth/request_truth.py --clients 1,8,32 --seeds 200      # how far off, and how often the intervals hold
    tests/truth/request_truth.py --load "60 s" --unsaid 0.2        # another of token_server.LOADS; a fifth of the requests without counts
    tests/truth/request_truth.py --mixed "kinds apart"             # and other APIs, and requests that nobody understands: MIXED
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import tempfile

from support import NRG, np

from recording import NO_VALUE, Recording
from token_server import BEGIN_NS, LAW, LOADS, Energy, Load, changed, serve, stamp, write_sensors

TEXTS_S = 0.02
APIS = ["chat", "completions", "responses", "messages", "generate", "embeddings", "other"]
PATHS = ["POST /v1/audio/transcriptions", "POST /v1/images/generations", "GET /v1/models"]
NAMES = [("request", "request"), ("phase", "prefill"), ("phase", "decode"), ("counter", "input tokens"),
         ("counter", "output tokens"), ("counter", "texts"), ("outcome", "answered"), ("model", "m"),
         *[("api", api) for api in APIS], *[("path", path) for path in PATHS]]
NAME = {text: i + 1 for i, (_, text) in enumerate(NAMES)}

# Beside the server's own: embeddings, whose tokens cost as those of prompts do, and requests that nobody understands, by kinds: (per second,
# mean seconds, mean watts, standard deviation of the watts over their mean). Of answers some come whole.
MIXED = {"one kind": {"others": [(0.15, 1.5, 150.0, 0.0)]},
         "any power": {"others": [(0.15, 1.5, 150.0, 0.5)]},
         "kinds apart": {"others": [(0.1, 1.5, 250.0, 0.2), (0.3, 0.4, 20.0, 0.3), (0.5, 0.01, 0.0, 0.0)]},
         "often": {"others": [(0.6, 2.0, 60.0, 0.5)]},
         "seldom": {"others": [(0.02, 4.0, 200.0, 0.5)]},
         "no joules": {"others": [(0.2, 1.0, 0.0, 0.0)]}}


def more_requests(rng, seconds, others, embeddings_per_s):
    """Embeddings and requests that nobody understands: their time, and joules that they use evenly."""
    more = []
    for kind, (per_s, mean_s, watts, sd) in enumerate(others):
        for begin in np.sort(rng.uniform(0, seconds, rng.poisson(per_s * seconds))):
            length = 0.002 + rng.exponential(mean_s)
            joules = length * watts * max(0.0, 1 + sd * rng.normal())
            more.append({"begin": begin, "end": begin + length, "joules": joules, "path": PATHS[kind % len(PATHS)]})
    for begin in np.sort(rng.uniform(0, seconds, rng.poisson(embeddings_per_s * seconds))):
        prompt = 1 + int(rng.lognormal(np.log(800), 0.7))
        more.append({"begin": begin, "end": begin + 0.01 + 0.00012 * prompt, "joules": LAW["prompt"] * prompt, "prompt": prompt})
    return more


class MixedEnergy(Energy):
    def __init__(self, steps, law, other, more, baseline_s):
        super().__init__(steps, law, other)
        self.begin = np.array([m["begin"] + baseline_s for m in more])
        self.end = np.array([m["end"] + baseline_s for m in more])
        self.watts = np.array([m["joules"] / (m["end"] - m["begin"]) for m in more])

    def at(self, t):
        used = super().at(t)
        for begin, end, watts in zip(self.begin, self.end, self.watts):
            used = used + watts * np.clip(t - begin, 0, end - begin)
        return used


def set_tracks(requests):
    """A track for each request, such that no two overlap on one; how many there are."""
    free_from = []
    for q in sorted(requests, key=lambda q: q["begin"]):
        q["track"] = next((i for i, t in enumerate(free_from) if t <= q["begin"]), len(free_from))
        free_from[q["track"]:q["track"] + 1] = [q["end"]]
    return len(free_from)


def texts_of(q):
    waiting, last = 0, q["begin"]
    for t in q["texts"]:
        waiting += 1
        if t - last >= TEXTS_S or t == q["end"]:
            yield t, waiting
            waiting, last = 0, t


def events(requests, unsaid=0.0):
    """Rows of spans: time in s, track, event, name, value. unsaid: part of the requests whose tokens the server does not say."""
    silent = np.random.default_rng(5).random(len(requests)) < unsaid
    for number, q in enumerate(requests, 1):
        track, texts = q["track"] + 1, q.get("texts")
        yield q["begin"], track, 0, NAME["request"], number
        yield q["begin"], track, 2, NAME["other" if "path" in q else q.get("api", "embeddings")], NO_VALUE
        if texts and not q.get("whole"):
            yield q["begin"], track, 0, NAME["prefill"], NO_VALUE
            yield texts[0], track, 1, NO_VALUE, NO_VALUE
            yield texts[0], track, 0, NAME["decode"], NO_VALUE
            for t, n in texts_of(q):
                yield t, track, 3, NAME["texts"], n
            yield q["end"], track, 1, NO_VALUE, NO_VALUE
        if not silent[number - 1] and "path" not in q:
            yield q["end"], track, 3, NAME["input tokens"], q["prompt"]
            if texts:
                yield q["end"], track, 3, NAME["output tokens"], q["output"]
        yield q["end"], track, 2, NAME[q.get("path", "m")], NO_VALUE
        yield q["end"], track, 2, NAME["answered"], NO_VALUE
        yield q["end"], track, 1, NO_VALUE, NO_VALUE


def write(path, seed, clients, seconds=300, law=LAW, load=Load(), baseline_s=10.0, unsaid=0.0, gpu_lag_s=0.0, gpu_counter=False, other=(0.0, 0.0, 0.0),
          mixed=None):
    """A recording, with idle time before the requests; returns the requests."""
    rng = np.random.default_rng([seed, clients])
    steps, requests = serve(rng, clients, seconds, load, law, drain=True)
    more = []
    if mixed:
        chosen = np.random.default_rng([seed, clients, 1])
        more = more_requests(chosen, seconds, mixed["others"], mixed.get("embeddings_per_s", 0.3))
        for q in requests:
            q["api"], q["whole"] = APIS[chosen.integers(5)], chosen.random() < mixed.get("whole", 0.2)
        requests = requests + more
    for q in requests:
        q.setdefault("api", "embeddings" if "prompt" in q and "output" not in q else "chat")
    seconds = max([seconds, steps[-1, 1], *[m["end"] for m in more]]) + 0.5
    at = lambda t: stamp(np.asarray(t) + baseline_s)
    r = Recording(path)
    steps[:, :2] += baseline_s
    write_sensors(r, rng, MixedEnergy(steps, law, other, more, baseline_s) if more else Energy(steps, law, other), law["idle"], 0.0, baseline_s + seconds, gpu_lag_s, gpu_counter)
    tracks = set_tracks(requests)
    rows = sorted(events(requests, unsaid), key=lambda row: row[0])
    columns = [np.array([row[c] for row in rows], dtype=np.int64) for c in range(1, 5)]
    columns.append(np.full(len(rows), NO_VALUE))
    order = np.lexsort((np.arange(len(rows)), columns[0]))
    r.series("spans", 0, ("track", "event", "name", "value", "parent"), at([row[0] for row in rows])[order],
             [c[order] for c in columns])
    r.insert("span_name", *[(i + 1, kind, text, "") for i, (kind, text) in enumerate(NAMES)])
    r.insert("span_track", *[(c + 1, "log", 0, 0, 0, "", f"requests {c + 1}") for c in range(tracks)])
    r.meta(nrg_version="truth", command_line="(requests to a language model)", begin_ns=BEGIN_NS)
    r.insert("run", (1, "baseline", int(at(-baseline_s + 0.2)), int(at(-0.2)), None),
             (2, "system", int(at(0.0)), int(at(seconds - 0.2)), None))
    r.close()
    return requests


def judge(nrg, seed, clients, options):
    """What nrg llm report says of a recording that write() made with these options, beside the truth."""
    law = options.get("law", LAW)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "requests.nrg")
        truth = write(path, seed, clients, **options)
        said = json.loads(subprocess.run([nrg, "llm", "report", "--json", path], check=True, capture_output=True).stdout)
    out = {"seed": seed, "clients": clients, "requests": len(truth), "method": said["method"], "unattributed_j": said["unattributed_j"],
           "off": abs(sum(q["energy_j"] for q in said["requests"]) + said.get("idle_j", 0) + said["unattributed_j"] - said["total_j"])
                  / said["total_j"]}
    for key, name in (("j_per_input_token", "prompt"), ("j_per_output_token", "output")):
        price = said.get("law", {}).get(key)
        out[name] = price and {"error": price["value"] / law[name] - 1, "holds": price["low"] <= law[name] <= price["high"],
                               "half_width": (price["high"] - price["low"]) / 2 / law[name]}
    if said["method"] == "regression":
        price = said["law"]["j_per_output_token_with_time"]
        out["with_time_half"] = (price["high"] - price["low"]) / 2 / price["value"]
    by_id = {q["id"]: q for q in said["requests"]}  # in order of their begin, the truth in that of their first step
    pairs = [(by_id[number], t["joules"]) for number, t in enumerate(truth, 1) if number in by_id]
    if not options.get("mixed"):
        assert len(pairs) == len(truth)
    holds = lambda pairs: [q["low_j"] <= j <= q["high_j"] for q, j in pairs]
    for name, some in (("", [p for p in pairs if p[0].get("understood", True)]), ("other_", [p for p in pairs if not p[0].get("understood", True)])):
        if not some:
            continue
        out[name + "held"] = float(np.mean(holds(some)))
        out[name + "sum_error"] = sum(q["energy_j"] for q, _ in some) / max(sum(j for _, j in some), 1e-9) - 1
        some = [(q, j) for q, j in some if j > 0] or [(some[0][0], np.inf)]
        out[name + "request_error"] = float(np.median([abs(q["energy_j"] / j - 1) for q, j in some]))
        out[name + "request_half"] = float(np.median([(q["high_j"] - q["low_j"]) / 2 / j for q, j in some]))
    out["all_held"] = float(np.mean(holds(pairs)))
    return out


def summed_up(rows):
    """A line of text."""
    line = f"{np.mean([r['requests'] for r in rows]):.0f} requests:"
    for name in ("prompt", "output"):
        good = [r[name] for r in rows if r[name]]
        if not good:
            continue
        errors = np.abs([g["error"] for g in good])
        line += (f"  {name} {100 * np.median(errors):.2f} % off (95 of 100 below {100 * np.quantile(errors, 0.95):.2f} %, mean"
                 f" {100 * np.mean([g['error'] for g in good]):+.2f} %), half width {100 * np.median([g['half_width'] for g in good]):.2f} %,"
                 f" held {100 * np.mean([g['holds'] for g in good]):.1f} %;")
    median = lambda key: 100 * np.median([r[key] for r in rows])
    others = [r for r in rows if "other_held" in r]
    if others:
        line += (f" not understood {100 * np.median([r['other_request_error'] for r in others]):.0f} % off, half width"
                 f" {100 * np.median([r['other_request_half'] for r in others]):.0f} %, held {100 * np.mean([r['other_held'] for r in others]):.1f} %,"
                 f" together {100 * np.mean([r['other_sum_error'] for r in others]):+.1f} %; all held {100 * np.mean([r['all_held'] for r in rows]):.1f} %;"
                 f" requests together {100 * np.mean([r['sum_error'] for r in rows]):+.2f} %;")
    return (f"{line} requests {median('request_error'):.1f} % off, half width {median('request_half'):.1f} %, held"
            f" {100 * np.mean([r['held'] for r in rows]):.1f} %; sums off {max(r['off'] for r in rows):.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nrg", default=NRG)
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--load", default="tokens", choices=[*LOADS, "all"])
    parser.add_argument("--unsaid", type=float, default=0.0)
    parser.add_argument("--mixed", choices=[*MIXED, "all"])
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        loads = [(load, None) for load in (LOADS if args.load == "all" else [args.load])]
        if args.mixed:
            loads = [(load, mixed) for load, _ in loads for mixed in (MIXED if args.mixed == "all" else [args.mixed])]
        for load, mixed in loads:
            options = changed(load, unsaid=args.unsaid, mixed=MIXED.get(mixed))
            for clients in map(int, args.clients.split(",")):
                seeds = range(args.first, args.first + args.seeds)
                rows = list(pool.map(judge, *zip(*[(args.nrg, s, clients, options) for s in seeds])))
                print(f"{mixed or load:18} {clients:2d} clients, {summed_up(rows)}", flush=True)


if __name__ == "__main__":
    main()
