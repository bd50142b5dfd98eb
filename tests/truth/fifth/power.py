"""The law of power, in closed form: idle power that may drift, what each thread and load draws, what the package draws once as soon as anything
runs (shared by busy CPUs), and turbo, by which all draw less when more CPUs are busy.

Power is constant between two edges of `edges`, so energy up to any time is exact by interpolation."""

import math

import numpy as np

from tracks import Thread

DRAM_IDLE_W = 2.5
LEAST_TURBO = 0.4  # of its watts, that a CPU keeps however many are busy
DRIFT_GRID_S = 0.25


def summed(edges, rate):
    """The integral of a rate that is constant between edges, at these."""
    return np.concatenate([[0.0], np.cumsum(np.diff(edges) * rate)])


class Power:
    """Of the host. `parts` are threads and loads; `states` and `part_w` what each does and draws between edges."""

    def __init__(self, words, times, parts):
        self.words, self.times, self.parts = words, times, parts
        self.edges = self.all_edges()
        self.middle, self.length_s = (self.edges[1:] + self.edges[:-1]) / 2, np.diff(self.edges)
        self.in_run = (self.middle > times.begin_s) & (self.middle < times.end_s)
        self.states = [part.at(self.middle) for part in parts]
        self.busy = sum(state.cpus for state in self.states)
        self.part_w = [self.drawn(state) for state in self.states]
        self.idle_w = self.idle()
        self.watts = self.idle_w + sum(self.part_w)
        self.dram_w = DRAM_IDLE_W + sum(state.dram_w for state in self.states)

    def all_edges(self):
        words, times = self.words, self.times
        fixed = np.array([0.0, times.begin_s, times.end_s, times.close_s])
        edges = np.unique(np.concatenate([fixed] + [part.edges() for part in self.parts]))
        edges = edges[(edges >= 0) & (edges <= times.close_s)]
        if words["drift"]:
            edges = np.union1d(edges, np.arange(0, times.close_s, DRIFT_GRID_S))
        if len(words["migrate"]):
            edges = np.union1d(edges, np.asarray(words["migrate"]))
        return edges

    def drawn(self, state):
        turbo = np.maximum(LEAST_TURBO, 1 - self.words["turbo"] * np.maximum(self.busy - 1, 0))
        share = self.words["uncore"] * state.cpus / np.maximum(self.busy, 1e-9)
        return state.watts * turbo + np.where(self.busy > 0, share, 0)

    def idle(self):
        """Rises in the run as the machine warms up, and falls after it."""
        words, times, t = self.words, self.times, self.middle
        if not words["drift"]:
            return np.full(len(t), words["idle"])
        tau_s = words["drift_tau"]
        warm = words["idle"] * (1 + words["drift"] * (1 - np.exp(-np.maximum(t - times.begin_s, 0) / tau_s)))
        at_end = words["drift"] * (1 - math.exp(-(times.end_s - times.begin_s) / tau_s))
        return np.where(t > times.end_s, words["idle"] * (1 + at_end * np.exp(-(t - times.end_s) / tau_s)), warm)

    def joules(self, watts=None):
        """Energy up to each edge."""
        return summed(self.edges, self.watts if watts is None else watts)

    def second_package(self):
        """Watts of the package to which the program's threads move and from which they come back."""
        there = np.searchsorted(np.asarray(self.words["migrate"]), self.middle) % 2 == 1
        moved = (np.where(there, watts, 0) for part, watts in zip(self.parts, self.part_w) if isinstance(part, Thread))
        return self.words["idle"] / 2 + sum(moved)

    def part_joules(self):
        """Of each part in the run, between edges; with memory where that is measured."""
        for part, state, watts in zip(self.parts, self.states, self.part_w):
            yield part, state, (watts + (state.dram_w if self.words["dram"] else 0)) * self.length_s * self.in_run

    def run_joules(self):
        """(all, idle) of the run."""
        total = (self.watts * self.length_s * self.in_run).sum()
        idle = (self.idle_w * self.length_s * self.in_run).sum()
        if self.words["dram"]:
            total += (self.dram_w * self.length_s * self.in_run).sum()
            idle += DRAM_IDLE_W * (self.times.end_s - self.times.begin_s)
        return total, idle


class GpuPower:
    """Of a GPU: idle, more while the program has it open, and its kernels."""

    OPENED_S = 0.4  # after the run's begin

    def __init__(self, words, times, thread):
        self.words, self.times, self.thread, self.static_w = words, times, thread, words["gpu_static"]
        self.edges = np.concatenate([[0.0], [times.begin_s + self.OPENED_S], thread.times, [times.end_s, times.close_s]])
        open_w = np.concatenate([[0.0, self.static_w], thread.watts + self.static_w, [self.static_w, 0.0]])
        self.joules = summed(self.edges, open_w + words["gpu_idle"])

    def up_to(self, t):
        return np.interp(np.clip(t, 0, self.times.close_s), self.edges, self.joules)

    def segment_joules(self):
        """What a kernel costs: all above idle while it runs."""
        return (self.thread.watts + self.static_w * (self.thread.watts > 0)) * self.thread.length_s

    def run_joules(self):
        """(all, idle) of the run."""
        begin_s, end_s = self.times.begin_s, self.times.end_s
        total = np.interp(end_s, self.edges, self.joules) - np.interp(begin_s, self.edges, self.joules)
        return total, self.words["gpu_idle"] * (end_s - begin_s)
