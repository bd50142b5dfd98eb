"""Recordings of nrg run --llm of a server whose prices are known (token_server.py), written from docs/recording-format.md: no code of src/.

The server counts tokens when a step ends, or when a request does (lumps), and says how many sequences run. Its GPU's sensor is late by a tenth of a second.
"""
import numpy as np

from recording import Recording
from token_server import BEGIN_NS, LAW, Energy, Load, serve, stamp, write_sensors

WARM_UP_S = 10.0  # as docs/llm.md says: what is before is not used


def counts(rng, steps, ends, t):
    """What the page says at the times t, each answered a little later than asked."""
    at = t + rng.uniform(0, 0.006, len(t))
    done = np.searchsorted(steps[:, 1], at, side="right")
    begun = np.searchsorted(steps[:, 0], at, side="right") - 1
    running = np.where((begun >= 0) & (at < steps[np.maximum(begun, 0), 1]), steps[np.maximum(begun, 0), 4], 0)
    total = lambda column: np.concatenate([[0], np.cumsum(steps[:, column])])[done]
    return {"llm.prompt_tokens": total(2), "llm.output_tokens": total(3), "llm.finished": np.searchsorted(ends, at, side="right"),
            "llm.running": running}


def counted_late(requests, t):
    done = sorted((q["end"], q["prompt"], q["output"]) for q in requests if "end" in q)
    sums = np.vstack([np.zeros(3), np.cumsum(done, axis=0)])[np.searchsorted([q[0] for q in done], t, side="right")]
    return {"llm.prompt_tokens": sums[:, 1], "llm.output_tokens": sums[:, 2]}


def with_time(steps, law):
    """Joules of the output and of sequences, per token of the output. Where there is never more than one, being busy is a sequence's, too."""
    steps = steps[steps[:, 0] > WARM_UP_S]
    watts = law["sequence"] + law["busy"] * (steps[:, 4].max() == 1)
    return law["output"] + watts * (steps[:, 4] * (steps[:, 1] - steps[:, 0])).sum() / steps[:, 3].sum()


def write(path, seed, clients, seconds=300, law=LAW, load=Load(), lumps=False, gpu_lag_s=0.1, gpu_counter=False):
    """A recording; the truth, as prices."""
    rng = np.random.default_rng([seed, clients])
    steps, requests = serve(rng, clients, seconds, load, law)
    ends = np.sort([q["end"] for q in requests if "end" in q])
    r = Recording(path)
    write_sensors(r, rng, Energy(steps, law), law["idle"], 0.0, seconds, gpu_lag_s, gpu_counter)
    asked = np.arange(0.5, seconds - 0.5, 0.2)
    asked += rng.uniform(0, 0.01, len(asked))
    page = counts(rng, steps, ends, asked)
    if lumps:
        page |= counted_late(requests, asked)
    r.samples("llm", "llm", 0.2, stamp(asked),
              [({"name": name, "quantity": "count", "kind": "gauge" if name == "llm.running" else "counter", "unit": "",
                 "update_ns": 200_000_000, "source": "http://127.0.0.1:8000"}, values) for name, values in page.items()])
    r.insert("event", (1, BEGIN_NS, "server", "llm", "vLLM"))
    r.meta(nrg_version="truth", command_line="vllm serve", begin_ns=BEGIN_NS)
    r.insert("run", (1, "run", int(stamp(0.2)), int(stamp(seconds - 0.2)), 0))
    r.close()
    return {**law, "output_with_time": with_time(steps, law)}
