"""A language model's server of known prices: a machine of its own, with no code of src/.

Clients send a request, wait for the answer, think, and send the next. The server works in steps: a step takes the next piece of the prompts
that are not read yet and makes a token for every sequence that is, and counts both when it ends. Its power is a law of these counts:

    power = idle + busy + sequence * (number of sequences) + prompt * (tokens read per second) + output * (tokens made per second)

shared between a processor, which a counter of RAPL shows, and a GPU, whose gauge shows the mean of each update, late by a tenth of a second, with noise
and a slow drift. Recordings of it are written from docs/recording-format.md.
"""
import numpy as np

from recording import Recording

BEGIN_NS = 1_000_000_000_000
LAW = {"idle": 90.0, "busy": 0.0, "sequence": 0.0, "prompt": 0.08, "output": 0.6}
ON_GPU = 0.8  # of everything but a third of the idle power
PIECE = 512   # tokens of prompts that a step reads at most


def serve(rng, clients, seconds, think_s=2.0, prompt=500, output=200):
    """Steps as rows: begin, end, tokens read, tokens made, sequences; and the ends of requests."""
    ready = list(rng.exponential(think_s, clients))
    active, steps, ends, t = [], [], [], 0.0
    while t < seconds:
        for c in range(clients):
            if ready[c] is not None and ready[c] <= t:
                active.append([1 + int(rng.lognormal(np.log(prompt), 0.7)), 1 + int(rng.lognormal(np.log(output), 0.6)), c])
                ready[c] = None
        if not active:
            t = min(r for r in ready if r is not None)
            continue
        room, read, made = PIECE, 0, 0
        for a in active:
            piece = min(room, a[0])
            if a[0] > 0:
                a[0] -= piece
                room -= piece
                read += piece
            if a[0] == 0:
                a[1] -= 1
                made += 1
        pace = rng.lognormal(0, 0.05) * (1 + 0.15 * np.sin(t / 7))
        step_s = (0.012 + 0.0003 * len(active) + 0.00012 * read) * pace
        steps.append((t, t + step_s, read, made, len(active)))
        t += step_s
        for a in [a for a in active if a[0] == 0 and a[1] <= 0]:
            active.remove(a)
            ends.append(t)
            ready[a[2]] = t + rng.exponential(think_s)
    return np.array(steps), np.array(ends)


class Energy:
    """Joules since 0 as a function of time, idle power apart."""

    def __init__(self, steps, law):
        used = (law["prompt"] * steps[:, 2] + law["output"] * steps[:, 3]
                + (law["busy"] + law["sequence"] * steps[:, 4]) * (steps[:, 1] - steps[:, 0]))
        sums = np.cumsum(used)
        self.t = np.column_stack([steps[:, 0], steps[:, 1]]).ravel()
        self.j = np.column_stack([sums - used, sums]).ravel()

    def at(self, t):
        return np.interp(t, self.t, self.j, left=0.0)


def drift(rng, n, dt_s, sd_w, memory_s=8.0):
    keep = np.exp(-dt_s / memory_s)
    w = np.zeros(n)
    for i, z in enumerate(rng.normal(size=n - 1)):
        w[i + 1] = keep * w[i] + np.sqrt(1 - keep * keep) * sd_w * z
    return w


def counts(rng, steps, ends, t):
    """What the page says at the times t, each answered a little later than asked."""
    at = t + rng.uniform(0, 0.006, len(t))
    done = np.searchsorted(steps[:, 1], at, side="right")
    begun = np.searchsorted(steps[:, 0], at, side="right") - 1
    running = np.where((begun >= 0) & (at < steps[np.maximum(begun, 0), 1]), steps[np.maximum(begun, 0), 4], 0)
    total = lambda column: np.concatenate([[0], np.cumsum(steps[:, column])])[done]
    return {"llm.prompt_tokens": total(2), "llm.output_tokens": total(3), "llm.finished": np.searchsorted(ends, at, side="right"),
            "llm.running": running}


def write(path, seed, clients, seconds=300, law=LAW, lumps=False, gpu_lag_s=0.1, think_s=2.0):
    """A recording. lumps: tokens of the output are counted when a request ends, as some servers do."""
    rng = np.random.default_rng([seed, clients])
    steps, ends = serve(rng, clients, seconds, think_s)
    energy = Energy(steps, law)
    stamp = lambda t: np.round(np.asarray(t) * 1e9).astype(np.int64) + BEGIN_NS
    r = Recording(path)
    t = np.arange(0.05, seconds, 0.1) + rng.uniform(0, 0.002, int(np.ceil((seconds - 0.05) / 0.1)))
    cpu = (1 - ON_GPU) * energy.at(t) + law["idle"] / 3 * t + np.concatenate([[0], np.cumsum(drift(rng, len(t) - 1, 0.1, 1.0) * np.diff(t))])
    r.samples("rapl-powercap", "intel-rapl:0", 0.1, stamp(t),
              [({"name": "package-0", "scale": 61e-6, "update_ns": 1_000_000, "covers_cpu": 1}, np.floor(cpu / 61e-6))])
    grid = np.arange(0, seconds, 0.1)
    mean_w = np.diff(ON_GPU * energy.at(grid - gpu_lag_s)) / 0.1 + law["idle"] * 2 / 3
    mean_w = mean_w * (1 + 0.01 * rng.normal(size=len(mean_w))) + drift(rng, len(mean_w), 0.1, 3.0)
    r.samples("nvml", "GPU 0", 0.1, stamp(grid[1:] + 0.001),
              [({"name": "gpu-0", "quantity": "power", "kind": "gauge", "unit": "W", "scale": 1e-3, "update_ns": 100_000_000,
                 "window_ns": 100_000_000}, np.round(mean_w * 10) * 100)])
    asked = np.arange(0.5, seconds - 0.5, 0.2) + rng.uniform(0, 0.01, int(np.ceil((seconds - 1) / 0.2)))
    page = counts(rng, steps, ends, asked)
    if lumps:
        last = np.concatenate([[0], ends])[np.searchsorted(ends, asked, side="right")]
        done = np.searchsorted(steps[:, 1], last, side="right")
        page["llm.output_tokens"] = np.concatenate([[0], np.cumsum(steps[:, 3])])[done]
    r.samples("llm", "llm", 0.2, stamp(asked),
              [({"name": name, "quantity": "count", "kind": "gauge" if name == "llm.running" else "counter", "unit": "",
                 "update_ns": 200_000_000, "source": "http://127.0.0.1:8000"}, values) for name, values in page.items()])
    r.insert("event", (1, BEGIN_NS, "server", "llm", "vLLM"))
    r.meta(nrg_version="truth", command_line="vllm serve", begin_ns=BEGIN_NS)
    r.insert("run", (1, "run", int(stamp(0.2)), int(stamp(seconds - 0.2)), 0))
    r.close()
    return steps, ends
