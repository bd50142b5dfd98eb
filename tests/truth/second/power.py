"""What a machine draws while its program and others run, and the joules of each path."""

import math

import numpy as np

from program import OUTSIDE

OTHERS = {"steady": (0.004, 0.006), "bursty": (0.2, 0.8), "rare": (2.0, 8.0), "full": (5.0, 1e-4)}  # seconds at work, and not


class Pieces:
    """Functions that are constant between the same times t, and their integrals."""

    def __init__(self, t):
        self.t = t
        self.seconds = np.diff(t)
        self.mid = (t[1:] + t[:-1]) / 2

    def __len__(self):
        return len(self.mid)

    def integral(self, y):
        return np.concatenate([[0], np.cumsum(y * self.seconds)])

    def at(self, integral, t):
        return np.interp(t, self.t, integral)

    def index(self, t):
        return np.clip(np.searchsorted(self.t, t, "right") - 1, 0, len(self) - 1)


def decayed(y, keep, gain, state=0.0):
    """First-order filter: each value is gain times y and keep times the one before. scipy only where a scenario needs it."""
    from scipy.signal import lfilter

    return lfilter([gain], [1, -keep], y, zi=[state])[0]


def flicker(rng, n, dt, deviation):
    """Noise of about 1/f: a sum of processes whose times are four times as long each."""
    parts, tau = [], 4 * dt
    while tau < n * dt / 2:
        keep = math.exp(-dt / tau)
        steps = rng.normal(0, math.sqrt(1 - keep * keep), n)
        steps[0] = rng.normal()
        parts.append(decayed(steps, keep, 1))
        tau *= 4
    return deviation * np.sum(parts, 0) / math.sqrt(max(1, len(parts)))


class Cpu:
    """One that is scheduled: how much of it runs in each piece, and its CPU time."""

    def __init__(self, pieces, running):
        self.pieces, self.running = pieces, running
        self.cpu_s = pieces.integral(running)

    def exact(self, t):
        return self.pieces.at(self.cpu_s, t)

    def as_of_tick(self, t, tick):
        """As the kernel has it: of the last tick, or of when it began to run if that is later; exact while it sleeps."""
        i = self.pieces.index(t)
        slept = np.maximum.accumulate(np.where(self.running == 0, np.arange(len(self.running)), -1))[i]
        began = np.where(slept >= 0, self.pieces.t[np.minimum(slept + 1, len(self.pieces.t) - 1)], 0)
        ticked = np.maximum(np.floor(t / tick) * tick, np.minimum(began, t))
        return self.exact(np.where(self.running[i] > 0, ticked, t))


class Watts:
    """Of each path: package and DRAM; and of work in no span."""

    def __init__(self, rng, words, n):
        low, high = words.watts
        self.package = np.exp(rng.uniform(math.log(low), math.log(high), n))
        self.dram = rng.uniform(0, 3, n) if words.dram else np.zeros(n)
        self.outside = rng.uniform(low, high)


class Power:
    """The whole machine. Energies and CPU times (package_j, dram_j, uncore_j, busy_s) are integrals on the same pieces."""

    def __init__(self, rng, words, tracks, n_paths):
        self.rng, self.words, self.tracks = rng, words, tracks
        self.watts = Watts(rng, words, n_paths)
        others = [self.draw_other(kind) for kind in words.others]
        self.cut([times for times, _ in others])
        self.factor = self.draw_factor()
        idle = self.draw_idle()
        self.truth_j = np.zeros(n_paths)
        self.package = idle.copy()
        self.dram = np.full(len(self.pieces), self.idle_w * 0.1)
        self.busy = np.zeros(len(self.pieces))
        self.threads = [self.add_track(track) for track in tracks]
        self.pool = Cpu(self.pieces, self.add_pool() if words.pool else np.zeros(len(self.pieces)))
        self.others = [self.add_other(*other) for other in others]
        self.package_j, self.dram_j = self.pieces.integral(self.package), self.pieces.integral(self.dram)
        self.uncore_j = self.pieces.integral(idle * 0.3)
        self.busy_s = self.pieces.integral(self.busy)

    def draw_other(self, kind):
        """Another process: the times at which it begins and stops in turn, and its watts."""
        watts = self.rng.uniform(5, 30)
        on_s, off_s = OTHERS[kind]
        n = int(self.words.after_s / (on_s + off_s) * 1.5 + 50)
        on, off = self.rng.exponential(on_s, n), self.rng.exponential(off_s, n)
        times = np.cumsum(np.column_stack([off, on]).ravel())
        return times[times < self.words.after_s], watts

    def cut(self, times):
        """Into pieces: at all these times, at those of the tracks, and on a grid for what changes by itself."""
        words = self.words
        self.grid_s = 2e-3 if words.noise or words.inoise else 0.05 if words.drift else 0.25
        grid = np.arange(0, words.after_s + self.grid_s, self.grid_s)
        t = np.unique(np.concatenate([grid, [words.begin_s, words.end_s], *[np.array(x.t) for x in self.tracks], *times]))
        self.pieces = Pieces(t[(t >= 0) & (t <= words.after_s + self.grid_s)])
        self.n_grid = len(grid)
        self.on_grid = np.minimum((self.pieces.mid / self.grid_s).astype(int), len(grid) - 1)

    def draw_factor(self):
        """By what active power is multiplied: noise and frequency."""
        rng, words, mid = self.rng, self.words, self.pieces.mid
        noise = np.ones(self.n_grid)
        white, slow = words.noise or (0, 0)
        if white:
            noise += rng.normal(0, white, self.n_grid)
        if slow:
            noise += flicker(rng, self.n_grid, self.grid_s, slow)
        factor = noise[self.on_grid]
        if words.turbo:
            seconds, more = words.turbo
            factor = factor * np.where(mid < words.begin_s + seconds, more, 1.0)
        if words.fsteps:
            levels = rng.choice([0.8, 0.9, 1.0, 1.1], int(words.after_s / 0.5) + 2)
            levels = np.repeat(levels, rng.integers(1, 5, len(levels)))
            factor = factor * levels[(mid / 0.5).astype(int)]
        return factor

    def draw_idle(self):
        self.idle_w = self.rng.uniform(*self.words.idle)
        idle = np.full(len(self.pieces), self.idle_w)
        if self.words.drift:
            kind, part = self.words.drift
            idle = idle * (1 + part * self.drift(kind))
        if self.words.inoise:
            idle = idle * (1 + self.rng.normal(0, self.words.inoise, self.n_grid)[self.on_grid])
        return idle

    def drift(self, kind):
        mid, seconds = self.pieces.mid, self.words.T
        since = mid - self.words.begin_s
        if kind == "lin":
            return np.clip(since / seconds, 0, 1.2)
        if kind == "exp":
            return 1 - np.exp(-np.clip(since, 0, None) / (seconds / 5))
        return np.sin(2 * math.pi * mid / (seconds / 2.3))

    def add_true(self, path, watts):
        inside = path != OUTSIDE
        joules = (watts * self.pieces.seconds)[inside]
        self.truth_j += np.bincount(path[inside], weights=joules, minlength=len(self.truth_j))

    def add_track(self, track):
        path, busy = track.at(self.pieces.mid)
        at_work = busy > 0
        package = np.where(at_work, np.where(path != OUTSIDE, self.watts.package[path], self.watts.outside), 0) * self.factor
        dram = np.where(at_work & (path != OUTSIDE), self.watts.dram[path], 0) * self.factor
        self.add_true(path, package + dram)
        self.package = self.package + package
        self.dram = self.dram + dram
        if not self.words.gpu:
            self.busy = self.busy + busy
        return Cpu(self.pieces, busy)

    def add_pool(self):
        """Workers that have no spans: each path of the first thread keeps another part of them at work."""
        path, busy = self.tracks[0].at(self.pieces.mid)
        part = self.rng.uniform(0.2, 1, len(self.truth_j))
        at_work = (busy > 0) & (path != OUTSIDE)
        pool = np.where(at_work, part[path] * self.words.pool, 0)
        package = pool * np.where(at_work, self.watts.package[path], 0) * self.factor
        self.add_true(path, package)
        self.package = self.package + package
        self.busy = self.busy + pool
        return pool

    def add_other(self, times, watts):
        on = np.searchsorted(times, self.pieces.mid, "right") % 2
        self.busy = self.busy + on
        self.package = self.package + on * watts * self.factor
        return Cpu(self.pieces, on)

    def run_j(self, energy):
        begin, end = self.pieces.at(energy, [self.words.begin_s, self.words.end_s])
        return end - begin

    def total_j(self):
        """Of the run, of all that sensors show."""
        return self.run_j(self.package_j) + (self.run_j(self.dram_j) if self.words.dram else 0)
