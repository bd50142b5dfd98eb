"""What the machine draws: joules of each domain over time, and the true joules of each path. Power is constant between any two events,
so that energies are straight lines between points, and nothing is approximated."""

import numpy as np

from program import OUTSIDE

RECORDER_W = 11.0
IDLE_OF = {"package-0": 1.0, "package-1": 0.7, "dram-0": 0.15}  # as a part of words.idle


class Line:
    """A function that goes along straight lines between its points."""

    def __init__(self, t, y):
        self.t, self.y = t, y

    def __call__(self, t):
        return np.interp(t, self.t, self.y) if len(self.t) else np.zeros_like(np.asarray(t, float))


def integral(begins, ends, values):
    """Of a function that has these values from begin to end each, and is 0 elsewhere."""
    t, y = np.empty(2 * len(begins)), np.empty(2 * len(begins))
    parts = values * (ends - begins)
    total = np.cumsum(parts)
    t[0::2], t[1::2] = begins, ends
    y[0::2], y[1::2] = total - parts, total
    return Line(t, y)


def filtered(lines, tau_s, t, begin_s, begin_w):
    """Power (the slope of the sum of the lines) behind a first-order filter, at times t."""
    points = np.unique(np.concatenate([line.t for line in lines] + [np.array([begin_s])]))
    points = points[points >= begin_s]
    seconds = np.diff(points)
    watts = np.diff(sum(line(points) for line in lines)) / np.maximum(seconds, 1e-15)
    keep = np.exp(-seconds / tau_s)
    shown = [begin_w]
    for w, k in zip(watts.tolist(), keep.tolist()):
        shown.append(w + (shown[-1] - w) * k)
    i = np.clip(np.searchsorted(points, t, side="right") - 1, 0, len(watts) - 1)
    return watts[i] + (np.array(shown)[i] - watts[i]) * np.exp(-(t - points[i]) / tau_s)


class Frequency:
    """Changes at random times, and the power of every other stretch with it."""

    def __init__(self, rng, words, times):
        self.cuts, self.factors = np.zeros(0), np.ones(1)
        if words.freq:
            n, factor = words.freq
            self.cuts = np.sort(rng.uniform(times.first_s, times.stop_s, n))
            self.factors = np.where(np.arange(n + 1) % 2, factor, 1.0)

    def at(self, t):
        return self.factors[np.searchsorted(self.cuts, t, side="right")]

    def apply(self, thread):
        thread.cut(self.cuts)
        thread.watts = thread.watts * self.at(thread.begin)


def bend(words, threads):
    """Power that does not add up over threads: what each draws depends on how many CPUs are busy at that instant, and the uncore's watts
    are shared by these. Threads 0 and 1 share a core, 2 and 3 the next one."""
    if not (words.turbo or words.uncore or words.smt < 1):
        return
    edges = np.unique(np.concatenate([t for thread in threads for t in (thread.begin, thread.end)]))
    middles = (edges[1:] + edges[:-1]) / 2
    busy = []
    for thread in threads:
        i = np.clip(np.searchsorted(thread.begin, middles, side="right") - 1, 0, None)
        busy.append(np.where(middles < thread.end[i], (thread.on_cpu + thread.workers)[i], 0))
    n = sum(busy)
    for k, thread in enumerate(threads):
        thread.cut(edges)
        at = np.searchsorted(edges, thread.begin)
        own, beside = busy[k][at], busy[k ^ 1][at] if k ^ 1 < len(threads) else 0
        less = 1 / (1 + words.turbo * np.maximum(n[at] - 1, 0)) * np.where(beside > 0, words.smt, 1.0)
        thread.watts = thread.watts * less + words.uncore * own / np.maximum(n[at], 1)


def draw_others(rng, words, times):
    """When another process works: (begins, ends)."""
    if not words.others:
        return np.zeros(0), np.zeros(0)
    on_s, off_s, _ = words.others
    begin_s = times.record_s if words.others_base else times.begin_s
    n = int((times.close_s - begin_s) / (on_s + off_s) * 2) + 50
    on, off = rng.exponential(on_s, n), rng.exponential(off_s, n)
    begins = begin_s + np.cumsum(on + off) - on
    kept = begins + on < times.close_s
    return begins[kept], (begins + on)[kept]


def idle_line(words, times):
    grid = np.arange(times.record_s - 1, times.close_s + 1, 0.01)
    idle_w = words.idle * np.ones(len(grid))
    if words.drift:
        how, part = words.drift
        x = np.clip((grid - times.begin_s) / (times.end_s - times.begin_s), 0, 1)
        shapes = {"line": x, "warm": 1 - np.exp(-x * 4), "jump": (x > 0.4).astype(float), "hump": np.sin(np.pi * x)}
        idle_w = words.idle * (1 + part * shapes[how])
    return integral(grid[:-1], grid[1:], idle_w[:-1])


class Power:
    """Of each domain: `lines` are its joules as functions to be added, `own_j` the true joules of each path's own time."""

    def __init__(self, rng, words, times, threads, n_paths, recorder, others):
        self.words, self.times, self.n_paths = words, times, n_paths
        self.lines, self.own_j = {}, {}
        self.n_packages = sum(domain.startswith("package") for domain in words.domains)
        home = [rng.integers(self.n_packages) if self.n_packages > 1 else 0 for _ in threads]
        idle = idle_line(words, times)
        for domain in words.domains:
            self.lines[domain], self.own_j[domain] = [], np.zeros(n_paths)
            for thread, package in zip(threads, home):
                self.add(domain, thread.begin, thread.end, thread.path, self.watts(domain, thread, package))
            self.lines[domain].append(Line(idle.t, idle.y * IDLE_OF[domain]))
        self.lines["package-0"].append(integral(*recorder.work, RECORDER_W))
        if words.others:
            self.lines["package-0"].append(integral(*others, words.others[2]))

    def watts(self, domain, thread, package):
        """What a thread's segments draw in this domain; with two packages only while it is there."""
        watts = thread.watts if domain.startswith("package") else thread.dram_w
        if self.n_packages < 2:
            return watts
        if self.words.migrate:
            moved = np.floor(thread.begin / self.words.migrate + 0.37).astype(int) * 7919 // 7 % 3 // 2
            package = (package + moved) % self.n_packages
        return np.where(package == int(domain[-1]), watts, 0.0)

    def add(self, domain, begins, ends, path, watts):
        self.lines[domain].append(integral(begins, ends, watts))
        inside = path != OUTSIDE
        self.own_j[domain] += np.bincount(path[inside], (watts * (ends - begins))[inside], self.n_paths)

    def add_domain(self, domain, idle_w, *work):
        """Another one: what draws in it (begins, ends, paths, watts), and its idle power."""
        self.lines[domain], self.own_j[domain] = [], np.zeros(self.n_paths)
        self.add(domain, *work)
        ends = np.array([self.times.record_s - 2, self.times.close_s + 2])
        self.lines[domain].append(Line(ends, idle_w * (ends - ends[0])))

    def energy_j(self, domain, t):
        return sum(line(t) for line in self.lines[domain])

    def total_j(self):
        """Of the run."""
        return sum(float(self.energy_j(d, self.times.end_s) - self.energy_j(d, self.times.begin_s)) for d in self.lines)
