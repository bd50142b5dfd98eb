"""A machine without a sensor: its power is a known law of its CPU time, times a factor that nobody knows, and what is recorded is nrg's estimate.

The law, over windows of 100 ms with u the part of the CPUs that is busy: idle + (full − idle) · (1.6 u − 0.6 u²). The energy above idle belongs to whom
the CPU time belongs. The truth has exact CPU times and a factor anywhere in the band; the estimate has the ticks of /proc/stat and no factor.
"""
import numpy as np

import sensors
from machine import LayerCpu, Machine, Piecewise, Sum

WINDOW_S = 0.1
BAND = (0.85, 1.25)  # the family's, relative


def curve(u):
    return 1.6 * u - 0.6 * u * u


class EstimatedMachine(Machine):
    """Its power follows CPU time alone."""

    def __init__(self, rng, o, late_s=0.0):
        super().__init__(rng, o, late_s)
        self.layer_cpu = []  # [process]: layers, each with its threads
        for model, threads, pool in zip(self.models, self.threads, self.pools):
            layers = [[LayerCpu(thread, i) for thread in threads] for i in range(model.n)]
            self.layer_cpu.append([Sum(a + b) for a, b in zip(layers, pool)])
        self.factor = rng.uniform(*BAND)
        self.windows = np.arange(0, self.after_s + 2 * WINDOW_S, WINDOW_S)
        busy_s = np.diff(self.cpu(self.windows))
        active_w = (o.high_w - o.idle_w) * curve(busy_s / (o.cpus * WINDOW_S))
        self.energy = Sum([Piecewise(self.windows, self.factor * (o.idle_w + active_w))])
        self.price = self.factor * active_w * WINDOW_S / np.maximum(busy_s, 1e-12)  # joules per CPU second

    def idle_j(self):
        return self.factor * self.o.idle_w * (self.end_s - self.begin_s)

    def layer_j(self, process=0):
        return np.array([float((np.diff(cpu(self.windows)) * self.price).sum()) for cpu in self.layer_cpu[process]])


def shown(machine, t, busy, idle):
    """The estimate's counters at each reading, in µJ: machine, its band, its idle part. busy, idle: ticks of /proc/stat at those times."""
    o = machine.o
    n, since = len(t), 0
    joules, out = 0.0, np.zeros((4, n))
    for k in range(1, n):
        used, unused = busy[k] - busy[since], idle[k] - idle[since]
        u = used / max(used + unused, 1)
        joules_now = joules + (o.idle_w + (o.high_w - o.idle_w) * curve(u)) * (t[k] - t[since])
        out[:, k] = joules_now, BAND[0] * joules_now, BAND[1] * joules_now, o.idle_w * (t[k] - t[0])
        if used + unused >= 10 * o.cpus:
            joules, since = joules_now, k
    return np.floor(np.maximum.accumulate(out, axis=1) * 1e6).astype(np.int64)


def write_samples(rng, machine, o, recording, looked):
    """looked: when /proc/stat was read for cpu.busy; the estimate reads it once more, right after."""
    t = looked + 30e-6 + rng.exponential(20e-6, len(looked))
    busy = sensors.busy_ticks(rng, machine, t, o.busy)
    idle = np.floor((o.cpus * t - machine.cpu(t)) / sensors.TICK_S).astype(np.int64)
    described = {"scale": 1e-6, "update_ns": round(WINDOW_S * 1e9), "provenance": "estimated"}
    names = ("machine", "machine.low", "machine.high", "machine.idle")
    watts = (o.high_w, o.high_w * BAND[0], o.high_w * BAND[1], o.idle_w)
    channels = [{**described, "name": name, "parent": "machine" if i else "", "limit_w": float(watts[i])} for i, name in enumerate(names)]
    channels[0].update(covers_cpu=1, error_low=1 - BAND[0], error_high=BAND[1] - 1)
    recording.samples("estimate", "a family of processors", 1 / o.rate_hz, sensors.stamp(t),
                      list(zip(channels, shown(machine, t, busy, idle))))
