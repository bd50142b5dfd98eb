"""The simulated machine: what ran when, and the energy that it used up to any moment, in closed form.

A thread may work before it marks anything. Then it makes steps; a step is a sequence of calls of layers, then a gap in which the thread sleeps, or works
outside of spans. A call is busy, and may stall
somewhere in between (it waits and uses no CPU). While busy it draws the watts of its layer; it may also use an amount of joules per call, whatever its duration.
Idle power may drift. Other processes use CPU time at watts of their own. All are piecewise linear in energy, so nothing is integrated
numerically.
"""
import numpy as np

STARTUP_W = 25.0  # of a thread that has not marked anything yet
PREEMPTED_S = 2e-3  # how long another process has the CPU, in the mean


class Piecewise:
    """A sum that grows linearly between breakpoints: energy, or CPU time."""

    def __init__(self, t, rate):
        """rate[i] holds from t[i] to t[i+1]; outside of them it is 0."""
        self.t = np.asarray(t, dtype=float)
        self.rate = np.asarray(rate, dtype=float)
        self.sum = np.concatenate([[0], np.cumsum(self.rate * np.diff(self.t))])

    def __call__(self, t):
        return np.interp(t, self.t, self.sum)

    def at(self, t):
        """The rate at an instant."""
        i = np.searchsorted(self.t, t, side="right") - 1
        inside = (i >= 0) & (i < len(self.rate))
        return np.where(inside, self.rate[np.clip(i, 0, len(self.rate) - 1)], 0.0)


class Sum:
    """Several of them together."""

    def __init__(self, parts):
        self.parts = parts

    def __call__(self, t):
        return sum((p(t) for p in self.parts), np.zeros(np.shape(t)))

    def at(self, t):
        return sum((p.at(t) for p in self.parts), np.zeros(np.shape(t)))

    def breaks(self):
        return np.unique(np.concatenate([p.t for p in self.parts]))


class Idle:
    """Idle power that drifts linearly from the begin of the run on, by the part `drift` of itself over `length_s`; or with `tau_s` by as much
    in the end, fast at first. `swing`: it also goes up and down by that part, SWINGS times in the run."""

    SWINGS = 6

    def __init__(self, power_w, begin_s, length_s, drift, tau_s=None, swing=0.0):
        self.power_w, self.begin_s, self.slope = power_w, begin_s, power_w * drift / length_s
        self.more_w, self.tau_s = power_w * drift, tau_s
        self.swing_w, self.turn = power_w * swing, 2 * np.pi * self.SWINGS / length_s
        self.t = np.array([0.0, begin_s, begin_s + length_s])

    def __call__(self, t):
        late = np.maximum(np.asarray(t, dtype=float) - self.begin_s, 0)
        more_j = self.slope * late * late / 2
        if self.tau_s:
            more_j = self.more_w * (late + self.tau_s * np.expm1(-late / self.tau_s))
        return self.power_w * np.asarray(t, dtype=float) + more_j + self.swing_w * (1 - np.cos(self.turn * late)) / self.turn

    def at(self, t):
        late = np.maximum(np.asarray(t, dtype=float) - self.begin_s, 0)
        more_w = -self.more_w * np.expm1(-late / self.tau_s) if self.tau_s else self.slope * late
        return self.power_w + more_w + self.swing_w * np.sin(self.turn * late)


def whole_ns(s):
    return np.round(np.asarray(s) * 1e9) / 1e9


class Thread:
    """Steps of calls. Attributes: begin, end [step, layer] of calls, energy and cpu as functions of time."""

    def __init__(self, rng, model, begin_s, end_s, o):
        length_s = model.nominal_s.sum() + o.gap_s
        n = max(int((end_s - begin_s - o.startup_s) / length_s * (1.1 if o.fills_run else 0.97)), 1)
        scale = np.maximum(1 + o.jitter * rng.standard_normal((n, model.n)), 0.2)
        busy = whole_ns(model.nominal_s * scale)
        stall = whole_ns(busy * o.stalls * rng.uniform(0, 2, busy.shape) * model.waits)
        if o.preempted:
            hit = rng.random(busy.shape) < busy * o.preempted / PREEMPTED_S
            stall += whole_ns(np.where(hit, rng.exponential(PREEMPTED_S, busy.shape), 0))
        gap = whole_ns(o.gap_s * np.maximum(1 + max(o.jitter, o.gap_jitter) * rng.standard_normal(n), 0.1))
        if o.pause_s:
            every = max(int(o.pause_s / length_s), 1)
            gap[every - 1::every] += whole_ns(o.pause_s)
        order = np.tile(np.arange(model.n), (n, 1))
        if o.skips:  # branches: a layer is not called in each step
            missing = rng.random((n, model.n)) < o.skips
            busy[missing] = stall[missing] = 0
        starts = np.cumsum((busy + stall).sum(1) + gap)
        starts = begin_s + o.startup_s + gap[0] + np.concatenate([[0], starts[:-1]])
        ends = starts[:, None] + np.cumsum(busy + stall, axis=1)
        keep = ends[:, -1] < end_s - 0.01
        self.order, self.end = order[keep], ends[keep]
        self.begin = self.end - (busy + stall)[keep]
        called = busy[keep] > 0
        self.called = called
        self.call_j = np.where(called, model.power_w * busy[keep] + model.call_j, 0)
        if o.inputs:
            self.call_j *= rng.choice(o.inputs, len(self.call_j))[:, None]
        watts = np.where(called, self.call_j / np.maximum(busy[keep], 1e-12), 0)
        # Busy, waiting, busy again, and after the last call of a step the gap.
        place = rng.random(busy[keep].shape)
        first = self.begin + busy[keep] * (place if o.stall_at is None else o.stall_at)
        none = np.zeros_like(watts)
        waiting = none + o.wait_w
        t = np.stack([self.begin, first, first + stall[keep], self.end], axis=2).reshape(-1)
        rest = np.zeros_like(watts)
        rest[:, -1] = o.gap_w
        rate = np.stack([watts, waiting, watts, rest], axis=2).reshape(-1)
        cpu = np.stack([called * 1.0, none, called * 1.0, (rest > 0) * 1.0], axis=2).reshape(-1)
        self.first_s = t[0] if o.startup_s else begin_s
        if o.startup_s:
            t, rate, cpu = np.append(begin_s, t), np.append(STARTUP_W, rate), np.append(1.0, cpu)
        self.energy, self.cpu = Piecewise(np.append(t, end_s), rate), Piecewise(np.append(t, end_s), cpu)
        if o.preempted:  # others have the CPU, and what it draws
            taken = np.stack([first, first + stall[keep]], axis=2).reshape(-1)
            self.taken = Piecewise(np.append(taken, end_s), np.tile([1.0, 0.0], first.size))
        else:
            self.call_j = self.call_j + o.wait_w * stall[keep]
        self.layer_j = self.call_j.sum(0)
        self.calls = called.sum(0)


class Others:
    """Another process: bursts of random length, at watts of its own per CPU second."""

    def __init__(self, rng, begin_s, end_s, share, power_w, mean_s):
        n = int((end_s - begin_s) / mean_s * 2) + 10
        on = rng.exponential(2 * mean_s * share, n)
        off = rng.exponential(2 * mean_s * (1 - share), n)
        t = begin_s + np.cumsum(np.stack([off, on], axis=1).reshape(-1))
        t = np.minimum(np.concatenate([[begin_s], t]), end_s)
        on_off = np.tile([0.0, 1.0], n)
        self.cpu, self.energy = Piecewise(t, on_off), Piecewise(t, on_off * power_w)


class Recorder:
    """The recorder, which reads faster while a program marks spans: each reading keeps a CPU busy."""

    POWER_W, PERIOD_S = 11.0, 0.01

    def __init__(self, begin_s, end_s, reading_s):
        t = np.arange(begin_s, end_s - self.PERIOD_S, self.PERIOD_S)
        edges, on_off = np.stack([t, t + reading_s], axis=1).reshape(-1), np.tile([1.0, 0.0], len(t))
        self.cpu, self.energy = Piecewise(edges, on_off[:-1]), Piecewise(edges, self.POWER_W * on_off[:-1])


class Model:
    """Layers with durations and powers drawn at random."""

    def __init__(self, rng, o):
        self.n = int(rng.integers(8, 13)) if o.layers is None else o.layers
        self.nominal_s = whole_ns(np.exp(rng.uniform(np.log(o.shortest_s), np.log(o.longest_s), self.n)))
        self.power_w = rng.uniform(o.low_w, o.high_w, self.n)
        self.call_j = np.zeros(self.n)
        self.waits = rng.uniform(0, 2, self.n) if o.uneven_stalls else np.ones(self.n)
        if o.per_call:  # a part of a call's energy comes with the call, not with its time
            self.call_j = o.per_call * self.power_w * self.nominal_s
            self.power_w = (1 - o.per_call) * self.power_w


class LayerCpu:
    """CPU time of one layer up to any moment: that of the thread while a call of it is open, times `threads` that work at it, which may differ from
    call to call."""

    def __init__(self, thread, layer, threads=1.0):
        called = thread.called[:, layer]
        self.thread_cpu, self.begin, self.end = thread.cpu, thread.begin[called, layer], thread.end[called, layer]
        self.threads = np.broadcast_to(threads, self.begin.shape)
        self.before = np.concatenate([[0], np.cumsum(self.threads * (thread.cpu(self.end) - thread.cpu(self.begin)))])

    def __call__(self, t):
        i = np.maximum(np.searchsorted(self.begin, t, side="right") - 1, 0)
        here = self.thread_cpu(np.minimum(t, self.end[i])) - self.thread_cpu(self.begin[i])
        return self.before[i] + self.threads[i] * np.maximum(here, 0)


class Machine:
    """All of it: `energy(t)` of the sensor's domain, what the kernel accounts, and the truth per layer."""

    def __init__(self, rng, o, late_s=0.0):
        """late_s: a program takes some time to start, so the run begins anywhere between two readings."""
        self.o = o
        self.tick_phases = None  # of each CPU, where the kernel samples (sensors.py)
        self.baseline = (0.1, 0.1 + o.baseline_s) if o.baseline_s else None
        self.begin_s = (self.baseline[1] if self.baseline else 0) + 0.1 + late_s
        self.end_s = self.begin_s + o.length_s
        self.second = (self.end_s + 0.01, self.end_s + 0.01 + o.second_baseline_s) if o.second_baseline_s else None
        self.after_s = self.end_s + 0.1 + o.second_baseline_s
        self.models = [Model(rng, o) for _ in range(o.processes)]
        if o.processes > 1:  # each program has its own layers and its own watts
            for model, factor in zip(self.models, o.process_factors):
                model.power_w *= factor
        self.threads = [[Thread(rng, model, self.begin_s + 0.01, self.end_s, o) for _ in range(o.threads)]
                        for model in self.models]
        self.others = [Others(rng, 0, self.after_s, o.others, o.others_w, o.others_s)] if o.others else []
        self.others += [Recorder(self.begin_s, self.end_s, o.recorder)] if o.recorder else []
        flat = [t for process in self.threads for t in process]
        self.idle = Idle(o.idle_w, self.begin_s, o.length_s, o.drift, o.drift_tau_s, o.swing)
        self.energy = Sum([t.energy for t in flat] + [x.energy for x in self.others] + [self.idle])
        self.cpu = Sum([t.cpu for t in flat] + [x.cpu for x in self.others] + ([t.taken for t in flat] if o.preempted else []))
        self.process_cpu = [Sum([t.cpu for t in process]) for process in self.threads]
        self.pools = [self.pool(rng, model, threads) for model, threads in zip(self.models, self.threads)]
        self.cpu = Sum(self.cpu.parts + [w for pool in self.pools for layer in pool for w in layer])
        self.process_cpu = [Sum(cpu.parts + [w for layer in pool for w in layer]) for cpu, pool in zip(self.process_cpu, self.pools)]

    def total_j(self):
        return float(self.energy(self.end_s) - self.energy(self.begin_s))

    def idle_j(self):
        return float(self.idle(self.end_s) - self.idle(self.begin_s))

    def layer_j(self, process=0):
        return sum(t.layer_j for t in self.threads[process])

    def process_j(self, process):
        return float(self.layer_j(process).sum())

    def pool(self, rng, model, threads):
        """Of each layer: CPU time of threads without spans that work beside its calls. What they draw is in the layer's watts."""
        if not self.o.workers:
            return [[] for _ in range(model.n)]
        return [[LayerCpu(thread, i, self.helped(rng, thread, x)) for thread in threads]
                for i, x in enumerate(rng.uniform(0, self.o.workers, model.n))]

    def helped(self, rng, thread, mean):
        """How many threads help each call of a layer."""
        if not self.o.uneven_workers:
            return mean
        spread = min(mean, self.o.workers - mean)
        return mean + spread * rng.uniform(-1, 1, len(thread.begin))
