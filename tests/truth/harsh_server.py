"""A language model's server that is hard to measure, and a GPU whose gauge is like NVML's: no code of src/.

Clients that never wait keep the number of sequences nearly constant, so that tokens, sequences and time go together. Prompts are read in pieces among the
others' tokens. The GPU's gauge is updated every 100 ms, at a time of its own, shows the mean of the last 100 ms or of the last second, in whole watts or
milliwatts, and is late; idle power creeps up while the machine warms; the host's processor does other things, too.

The law: idle + joules per token of a prompt and of the output (linear), or a power that saturates with the number of sequences that make a token. The price of
a token of the output is then what one more sequence in a step costs, on average over the tokens made.
"""
import dataclasses

import numpy as np

from recording import Recording
from token_server import BEGIN_NS, drift, stamp

WARM_UP_S = 10.0  # as docs/llm.md says: what is before is not used


@dataclasses.dataclass(frozen=True)
class Harsh:
    clients: int = 8
    seconds: float = 150.0
    law: str = "linear"        # or "saturating"
    mean_s: float = 0.1        # of how long the gauge shows the mean
    step_w: float = 1e-3       # of the gauge
    think_s: float = 0.05      # from an answer to the next question
    quiet_s: float = 0.0       # at the begin, with the model loaded
    levels: tuple = ()         # numbers of clients, 30 s of each in turn; else `clients` all the time
    counts_steps: bool = True  # the page has vllm:iteration_tokens_total_count


# What serving_bars --harsh tries: 8 clients that never wait, 150 s, unless it says otherwise.
SERVERS = {"as it is": {}, "45 s": {"seconds": 45}, "1 client": {"clients": 1}, "32 clients": {"clients": 32}, "power that saturates": {"law": "saturating"},
           "saturating, 32": {"law": "saturating", "clients": 32}, "a gauge of 1 s, in W": {"mean_s": 1.0, "step_w": 1.0}, "no count of steps": {"counts_steps": False},
           "20 s of silence first": {"quiet_s": 20.0}, "2 to 8 clients": {"levels": (2, 8, 4, 8)}, "pauses of 3 s": {"think_s": 3.0}}

PROMPT, OUTPUT, IDLE_W, HOST_W, PIECE = 0.03, 0.25, 70.0, 40.0, 512
READ_S = 0.00008  # seconds that a token of a prompt adds to a step
STEP_J, OTHERS_W = 0.02, 1.5  # of the host: for every step, and of other programs
SATURATING_J, AT = 9.0, 14.0  # of a step with very many sequences, and how many are many


def step_joules(law, made):
    return OUTPUT * made if law == "linear" else SATURATING_J * (1 - np.exp(-made / AT))


def marginal(law, made):
    return np.full(len(made), OUTPUT) if law == "linear" else SATURATING_J / AT * np.exp(-made / AT)


def allowed(h, t):
    return h.levels[int(t / 30) % len(h.levels)] if h.levels else h.clients


def serve(rng, h):
    """Steps (begin, end, tokens read, tokens made, sequences) and times at which requests end."""
    due = list(h.quiet_s + rng.exponential(h.think_s, max(h.levels or (h.clients,))))
    active, steps, ends, t = [], [], [], h.quiet_s
    while t < h.seconds:
        for at in sorted(d for d in due if d <= t)[:max(0, allowed(h, t) - len(active))]:
            due.remove(at)
            active.append([1 + int(rng.lognormal(np.log(400), 0.8)), 1 + int(rng.lognormal(np.log(180), 0.6))])
        if not active:
            t = max(t + 1e-3, min(due))
            continue
        room, read, made = PIECE, 0, 0
        for q in active:
            piece = min(room, q[0])
            q[0] -= piece
            room -= piece
            read += piece
            if not q[0]:
                q[1] -= 1
                made += 1
        step_s = (0.018 + 0.0002 * len(active) + READ_S * read) * rng.lognormal(0, 0.04)
        steps.append((t, t + step_s, read, made, len(active)))
        t += step_s
        over = [q for q in active if not q[1]]
        active = [q for q in active if q[1]]
        ends += [t] * len(over)
        due += list(t + rng.exponential(h.think_s, len(over)))
    return np.array(steps), np.array(ends)


def idle_joules(rng, h):
    """Of the GPU, as a function of time: it creeps up while the machine warms, and drifts."""
    t = np.arange(-2, h.seconds + 1, 0.1)
    watts = IDLE_W - 6.0 * np.exp(-t / 60) + drift(rng, len(t), 0.1, 2.0, 20.0)
    sums = np.concatenate([[0], np.cumsum(watts[1:] + watts[:-1]) * 0.05])
    return lambda when: np.interp(when, t, sums)


def gauge(rng, h, joules):
    """Times and values that readings every 100 ms see of a gauge that is updated every 100 ms at a time of its own."""
    updated, late_s = np.arange(rng.uniform(0, 0.1), h.seconds, 0.1), 0.04
    watts = (joules(updated - late_s) - joules(updated - late_s - h.mean_s)) / h.mean_s
    watts = np.round(watts * (1 + 0.004 * rng.normal(size=len(updated))) / h.step_w) * h.step_w
    read = np.arange(0.1, h.seconds, 0.1) + rng.uniform(0, 0.004)
    read += rng.uniform(0, 0.002, len(read))
    seen = np.searchsorted(updated, read, side="right") - 1
    return read[seen >= 0], np.round(watts[seen[seen >= 0]] * 1000)


def processor(rng, h, steps):
    """A counter of RAPL: a part for every step of the server, and other programs."""
    t = np.arange(0.05, h.seconds, 0.1) + rng.uniform(0, 0.002, len(np.arange(0.05, h.seconds, 0.1)))
    own = STEP_J * np.searchsorted(steps[:, 1], t, side="right")
    others = np.cumsum(np.abs(drift(rng, len(t), 0.1, OTHERS_W, 3.0))) * 0.1
    return t, np.floor((own + others + HOST_W * t) / 61e-6)


def page(rng, h, steps, ends, t):
    at = t + rng.uniform(0, 0.004, len(t))
    done = np.searchsorted(steps[:, 1], at, side="right")
    begun = np.maximum(np.searchsorted(steps[:, 0], at, side="right") - 1, 0)
    total = lambda column: np.concatenate([[0], np.cumsum(steps[:, column])])[done]
    found = {"llm.prompt_tokens": total(2), "llm.output_tokens": total(3), "llm.finished": np.searchsorted(ends, at, side="right"),
             "llm.running": np.where(at < steps[begun, 1], steps[begun, 4], 0) * (at > steps[0, 0])}
    return found | ({"llm.steps": done} if h.counts_steps else {})


def truth(h, steps, idle, asked, output):
    """Prices, and all joules as prices of tokens: prompts have that part of all seconds that they take, the output the rest."""
    first, end = asked[np.argmax(np.diff(output) > 0)], asked[-1]
    begin = asked[np.argmax(asked >= first + min(WARM_UP_S, 0.1 * (end - first)))]
    s = steps[(steps[:, 1] > begin) & (steps[:, 1] <= end)]
    made, read, tokens = s[:, 3], s[:, 2], s[:, 3].sum()
    part = 1 - READ_S * read.sum() / (s[:, 1] - s[:, 0]).sum()
    time_j = idle(end) - idle(begin) + (HOST_W + OTHERS_W * np.sqrt(2 / np.pi)) * (end - begin)
    own_j = step_joules(h.law, made).sum() + STEP_J * len(s)
    return {"prompt": PROMPT, "output": float((marginal(h.law, made) * made).sum() / tokens), "all_in_output": float((own_j + part * time_j) / tokens),
            "all_in_prompt": float(PROMPT + (1 - part) * time_j / read.sum()),
            "all": float((own_j + time_j + PROMPT * read.sum()) / tokens)}


def write(path, seed, h=Harsh()):
    rng = np.random.default_rng([seed, h.clients])
    steps, ends = serve(rng, h)
    used = np.cumsum(PROMPT * steps[:, 2] + step_joules(h.law, steps[:, 3]))
    at, sums = np.column_stack([steps[:, 0], steps[:, 1]]).ravel(), np.column_stack([np.concatenate([[0], used[:-1]]), used]).ravel()
    idle = idle_joules(rng, h)
    r = Recording(path)
    t, counter = processor(rng, h, steps)
    r.samples("rapl-powercap", "intel-rapl:0", 0.1, stamp(t), [({"name": "package-0", "scale": 61e-6, "update_ns": 1_000_000, "covers_cpu": 1}, counter)])
    t, watts = gauge(rng, h, lambda when: np.interp(when, at, sums, left=0.0) + idle(when))
    r.samples("nvml", "GPU 0", 0.1, stamp(t), [({"name": "gpu-0", "scale": 1e-3, "update_ns": 100_000_000, "quantity": "power", "kind": "gauge", "unit": "W",
                                                 "window_ns": round(h.mean_s * 1e9), "resolution": h.step_w}, watts)])
    asked = np.arange(0.5, h.seconds - 0.3, 0.2)
    asked += rng.uniform(0, 0.01, len(asked))
    counts = page(rng, h, steps, ends, asked)
    r.samples("llm", "llm", 0.2, stamp(asked),
              [({"name": name, "quantity": "count", "kind": "gauge" if name == "llm.running" else "counter", "unit": "",
                 "update_ns": 200_000_000, "source": "http://127.0.0.1:8000"}, values) for name, values in counts.items()])
    r.insert("event", (1, BEGIN_NS, "server", "llm", "vLLM"))
    r.meta(nrg_version="truth", command_line="vllm serve", begin_ns=BEGIN_NS)
    r.insert("run", (1, "run", int(stamp(0.2)), int(stamp(h.seconds - 0.2)), 0))
    r.close()
    return truth(h, steps, idle, asked, counts["llm.output_tokens"])
