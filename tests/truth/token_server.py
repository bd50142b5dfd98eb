"""A language model's server of known prices, and the machine that it runs on: no code of src/.

Clients send a request, wait for the answer, think, and send the next; or requests come when they like (Load.per_s). The server works in steps: a
step takes the next piece of the prompts that are not read yet and makes a token for every sequence that is. Its power is a law of these counts:

    power = idle + busy + sequence * (number of sequences) + prompt * (tokens read per second) + output * (tokens made per second)

shared between a processor, which a counter of RAPL shows, and a GPU, whose gauge shows the mean of each update, with noise and a slow drift.
LOADS has other laws and servers than the first one: what holds should not hold for that one alone.
"""
import dataclasses
import heapq

import numpy as np

BEGIN_NS = 1_000_000_000_000
LAW = {"idle": 90.0, "busy": 0.0, "sequence": 0.0, "prompt": 0.08, "output": 0.6}
ON_GPU = 0.8   # of everything but a third of the idle power
PIECE = 512    # tokens of prompts that a step reads at most
GUESSED = 0.6  # chance of a drafted token to be taken


@dataclasses.dataclass(frozen=True)
class Load:
    think_s: float = 2.0
    per_s: float = 0.0     # requests of clients that don't wait for each other, per second and sequence that may run; others queue
    whole: bool = False    # a prompt is read in one step of its own, in which nobody gets a token
    drafts: int = 0        # tokens that a step may make beyond the first, for each sequence
    prompt: int = 500
    output: int = 200


# Changes of the law and of the load: what serving.write and request_truth.write take.
LOADS = {"tokens": {}, "and sequences": {"law": {"sequence": 1.5}}, "and a shared part": {"law": {"busy": 60.0}},
         "prompts in one step": {"load": {"whole": True}}, "at random times": {"load": {"per_s": 0.1}}, "no thinking": {"load": {"think_s": 0.0}},
         "drafted tokens": {"load": {"drafts": 3}}, "a counter": {"gpu_counter": True}, "a late GPU": {"gpu_lag_s": 0.6}, "60 s": {"seconds": 60}}


def changed(name, **more):
    """Options of write() for one of LOADS."""
    options = {**LOADS[name], **more}
    options["law"] = {**LAW, **options.get("law", {})}
    options["load"] = Load(**options.get("load", {}))
    return options


class Requests:
    """Those that come, in order of their time."""

    def __init__(self, rng, load, clients, seconds):
        self.rng, self.load, self.most = rng, load, clients
        if load.per_s:
            every_s = 1 / (load.per_s * clients)
            times = np.cumsum(rng.exponential(every_s, 20 + int(2 * seconds / every_s)))
            self.due = [(t, 0) for t in times if t < seconds]
        else:
            self.due = [(t, c) for c, t in enumerate(rng.exponential(load.think_s, clients))]
        heapq.heapify(self.due)

    def next_s(self):
        return self.due[0][0] if self.due else np.inf

    def take(self, t, running):
        """Those that begin to run at t."""
        while running < self.most and self.next_s() <= t:
            begin, client = heapq.heappop(self.due)
            prompt, output = (1 + int(self.rng.lognormal(np.log(n), sd)) for n, sd in ((self.load.prompt, 0.7), (self.load.output, 0.6)))
            running += 1
            yield {"client": client, "begin": begin, "prompt": prompt, "left": prompt, "output": output, "made": 0, "texts": [], "joules": 0.0}

    def done(self, q, t):
        if not self.load.per_s:
            heapq.heappush(self.due, (t + self.rng.exponential(self.load.think_s), q["client"]))


def one_step(rng, load, active):
    """Tokens read and made of each sequence."""
    read, made, room = [0] * len(active), [0] * len(active), PIECE
    unread = [q for q in active if q["left"] > 0]
    for i, q in enumerate(active):
        if load.whole:
            read[i] = q["left"] if unread and q is unread[0] else 0
        else:
            read[i] = min(room, q["left"])
        room -= read[i]
        q["left"] -= read[i]
        if q["left"] == 0 and (read[i] or not (load.whole and unread)):
            taken = 1
            while taken <= load.drafts and rng.random() < GUESSED:
                taken += 1
            made[i] = min(taken, q["output"] - q["made"])
    return read, made


def serve(rng, clients, seconds, load=Load(), law=LAW, drain=False):
    """Steps as rows (begin, end, tokens read, tokens made, sequences), and the requests in order of their first step.

    drain: no new ones after `seconds`, and those that run end."""
    coming = Requests(rng, load, clients, seconds)
    active, steps, requests, t = [], [], [], 0.0
    while t < seconds or (drain and active):
        new = list(coming.take(min(t, seconds), len(active)))
        active += new
        requests += new
        if not active:
            t = coming.next_s()
            continue
        read, made = one_step(rng, load, active)
        pace = rng.lognormal(0, 0.05) * (1 + 0.15 * np.sin(t / 7))
        step_s = (0.012 + 0.0003 * len(active) + 0.00012 * sum(read)) * pace
        steps.append((t, t + step_s, sum(read), sum(made), len(active)))
        t += step_s
        for i, q in enumerate(active):
            q["joules"] += law["prompt"] * read[i] + law["output"] * made[i] + (law["sequence"] + law["busy"] / len(active)) * step_s
            q["made"] += made[i]
            q["texts"] += [t] * (made[i] > 0)
        for q in [q for q in active if q["made"] == q["output"]]:
            active.remove(q)
            q["end"] = t
            coming.done(q, t)
    return np.array(steps), requests


class Energy:
    """Joules since 0 as a function of time, idle power apart. other: begin, end and watts of a program that is none of the server's."""

    def __init__(self, steps, law, other=(0.0, 0.0, 0.0)):
        self.other = other
        used = (law["prompt"] * steps[:, 2] + law["output"] * steps[:, 3]
                + (law["busy"] + law["sequence"] * steps[:, 4]) * (steps[:, 1] - steps[:, 0]))
        sums = np.cumsum(used)
        self.t = np.column_stack([steps[:, 0], steps[:, 1]]).ravel()
        self.j = np.column_stack([sums - used, sums]).ravel()

    def at(self, t):
        begin_s, end_s, watts = self.other
        return np.interp(t, self.t, self.j, left=0.0) + watts * np.clip(t - begin_s, 0, end_s - begin_s)


def drift(rng, n, dt_s, sd_w, memory_s=8.0):
    keep = np.exp(-dt_s / memory_s)
    w = np.zeros(n)
    for i, z in enumerate(rng.normal(size=n - 1)):
        w[i + 1] = keep * w[i] + np.sqrt(1 - keep * keep) * sd_w * z
    return w


def stamp(t):
    return np.round(np.asarray(t) * 1e9).astype(np.int64) + BEGIN_NS


def write_sensors(recording, rng, energy, idle_w, begin_s, end_s, gpu_lag_s=0.0, gpu_counter=False):
    """Readings ten times a second. gpu_counter: the GPU counts its joules, at each update, instead of saying its power."""
    t = np.arange(begin_s + 0.05, end_s, 0.1)
    t += rng.uniform(0, 0.002, len(t))
    cpu = (1 - ON_GPU) * energy.at(t) + idle_w / 3 * (t - begin_s)
    cpu += np.concatenate([[0], np.cumsum(drift(rng, len(t) - 1, 0.1, 1.0) * np.diff(t))])
    recording.samples("rapl-powercap", "intel-rapl:0", 0.1, stamp(t),
                      [({"name": "package-0", "scale": 61e-6, "update_ns": 1_000_000, "covers_cpu": 1}, np.floor(cpu / 61e-6))])
    grid = np.arange(begin_s, end_s, 0.1)
    mean_w = np.diff(ON_GPU * energy.at(grid - gpu_lag_s)) / 0.1 + idle_w * 2 / 3
    mean_w = mean_w * (1 + 0.01 * rng.normal(size=len(mean_w))) + drift(rng, len(mean_w), 0.1, 3.0)
    if gpu_counter:
        described, values = {"quantity": "energy", "kind": "counter", "unit": "J"}, np.floor(np.cumsum(mean_w * 0.1) * 1000)
    else:
        described = {"quantity": "power", "kind": "gauge", "unit": "W", "window_ns": 100_000_000}
        values = np.round(mean_w * 10) * 100
    recording.samples("nvml", "GPU 0", 0.1, stamp(grid[1:] + 0.001),
                      [({"name": "gpu-0", "scale": 1e-3, "update_ns": 100_000_000, **described}, values)])
