"""Power in closed form: pieces of constant power of threads, others and the recorder; idle power by its exact integral every millisecond."""

import math

import numpy as np

from recorder import BEGIN_S

RECORDER_W = 12.0  # of a CPU that it keeps busy
DRIFT_S = 8.0  # time constant of idle power that grows, towards the end or to and fro
SWING_S = 10.0  # period of idle power that swings
WANDER_S = 0.5  # time constant of idle power that fluctuates
GRID_S = 1e-3


def integral(watts, seconds):
    return np.concatenate([[0], np.cumsum(watts * seconds)])


def others(words, rng, timeline):
    """Begins and ends of what others run, on one CPU."""
    t, begins, ends = BEGIN_S - 2.0, [], []
    while t < timeline.end + 2:
        rests = 1e4
        if words.others == "steady":
            runs, rests = rng.uniform(20e-3, 60e-3), rng.uniform(20e-3, 60e-3)
        elif words.others == "burst":
            runs, rests = rng.exponential(0.15) + 3e-3, rng.exponential(0.4) + 3e-3
        elif words.others == "always":
            runs = 1e4
        elif words.others == "run":
            t, runs = timeline.run_begin - 0.1, words.run_s + 0.15
        elif words.others == "base":
            runs = timeline.run_begin - 0.1 - t
        elif words.others == "cron":
            runs = rng.uniform(15e-3, 25e-3)
            rests = 1.0 - runs
        else:
            runs, rests = rng.uniform(1.5, 4), rng.uniform(1.5, 4)
        begins.append(t)
        ends.append(t + runs)
        t += runs + rests
    return np.array(begins), np.array(ends)


class Power:
    def __init__(self, words, rng, timeline, threads, n_paths):
        self.words, self.timeline = words, timeline
        self.others = others(words, rng, timeline) if words.others else None
        self.edges = self.all_edges(threads)
        self.lengths, self.middles = np.diff(self.edges), (self.edges[1:] + self.edges[:-1]) / 2
        watts = self.of_threads(threads, n_paths)
        other_cpus = self.others_run(self.middles).astype(float)
        beside_w = other_cpus * words.others_w + (0 if words.gpu else RECORDER_W * words.recorder)
        self.active_w = sum(watts) + beside_w
        self.other_j = float(np.sum((beside_w * self.lengths)[self.in_run()]))
        self.active_j = integral(self.active_w, self.lengths)
        self.second_j = self.of_second_package(rng, watts) if words.sockets == 2 else None
        self.others_cpu_s = integral(other_cpus, self.lengths)
        self.grid = np.arange(BEGIN_S - 3, timeline.end + 3.001, GRID_S)
        self.idle_j = self.idle(rng)

    def all_edges(self, threads):
        edges = [np.array([BEGIN_S - 3, self.timeline.end + 3]), *(self.others or ())]
        for thread in threads:
            edges += [thread.begins, thread.ends]
        return np.unique(np.concatenate(edges))

    def others_run(self, t):
        if self.others is None:
            return np.zeros(len(t), bool)
        begins, ends = self.others
        i = np.searchsorted(begins, t, "right") - 1
        return (i >= 0) & (t < ends[np.maximum(i, 0)])

    def in_run(self):
        return (self.middles > self.timeline.run_begin) & (self.middles < self.timeline.run_end)

    def of_threads(self, threads, n_paths):
        """Watts of each thread, between edges; and joules and seconds of each path."""
        words, middles, run = self.words, self.middles, self.in_run()
        pieces, running = [], np.zeros(len(middles))
        for thread in threads:
            i = thread.piece_at(middles)
            there = thread.alive(middles)
            pieces.append([np.where(there, column[i], 0) for column in (thread.watts, thread.cpus, thread.paths)])
            running += pieces[-1][1] > 0
        self.self_j, self.self_s, found = np.zeros(n_paths), np.zeros(n_paths), []
        for watts, cpus, paths in pieces:
            if words.turbo:
                watts = watts * (1 - words.turbo * np.maximum(running - 1, 0))
            if words.uncore:
                watts = watts + np.where(cpus > 0, words.uncore / np.maximum(running, 1), 0)
            found.append(watts)
            self.self_j += np.bincount(paths[run], (watts * self.lengths)[run], n_paths)
            self.self_s += np.bincount(paths[run], self.lengths[run], n_paths)
        return found

    def of_second_package(self, rng, watts):
        """Threads move between packages every few seconds; others stay on the first."""
        there_w = np.zeros(len(self.middles))
        for index, of_thread in enumerate(watts):
            moves = np.cumsum(rng.exponential(4.0, 200) + 0.3) + BEGIN_S
            there_w += np.where((np.searchsorted(moves, self.middles) + index) % 2, of_thread, 0)
        return integral(there_w, self.lengths)

    def idle(self, rng):
        words = self.words
        joules = words.idle * (self.grid - self.grid[0])
        if words.drift:
            joules = joules + words.idle * words.drift_part * self.drifted()
        if words.wander:
            joules = joules + np.cumsum(self.wandering(rng)) * GRID_S * words.idle * words.wander
        return joules

    def drifted(self):
        """Integral of what idle power grows by, as a part."""
        run_s = self.timeline.run_end - self.timeline.run_begin
        since = self.grid - self.timeline.run_begin
        inside, after = np.clip(since, 0, run_s), np.maximum(since - run_s, 0)
        drift = self.words.drift
        if drift == "lin":
            return inside**2 / (2 * run_s) + after
        if drift == "step":
            return np.maximum(since - 0.4 * run_s, 0)
        if drift == "sin":
            return (1 - np.cos(2 * np.pi * since / SWING_S)) * SWING_S / (2 * np.pi)
        top = 1 - math.exp(-run_s / DRIFT_S)
        later = after if drift == "exp" else DRIFT_S * (1 - np.exp(-after / DRIFT_S))
        return inside - DRIFT_S * (1 - np.exp(-inside / DRIFT_S)) + top * later

    def wandering(self, rng):
        """An Ornstein-Uhlenbeck process, of variance 1."""
        keeps = math.exp(-GRID_S / WANDER_S)
        pushes = rng.normal(0, math.sqrt(1 - keeps * keeps), len(self.grid))
        at, found = rng.normal(), np.empty(len(self.grid))
        for i, push in enumerate(pushes):
            at = keeps * at + push
            found[i] = at
        return found

    def idle_until(self, t):
        return np.interp(t, self.grid, self.idle_j)

    def until(self, t):
        """Joules of everything."""
        return np.interp(t, self.edges, self.active_j) + self.idle_until(t)

    def second_until(self, t):
        """Joules of the second package, with half of idle power."""
        return np.interp(t, self.edges, self.second_j) + self.idle_until(t) / 2
