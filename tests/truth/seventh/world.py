"""Power over time in closed form: what a domain draws, and its energy up to any moment."""
import numpy as np


class Domain:
    """Idle power with drift, plus rectangles of power; energy(t) is exact."""

    def __init__(self, idle_w, drift_w=0.0, drift_from=0.0, drift_tau=20.0):
        self.idle_w, self.drift_w, self.drift_from, self.drift_tau = idle_w, drift_w, drift_from, drift_tau
        self.parts, self.edges = [], None

    def add(self, t0, t1, watts):
        self.parts.append((np.atleast_1d(t0), np.atleast_1d(t1), np.broadcast_to(watts, np.shape(np.atleast_1d(t0)))))

    def idle_energy(self, t):
        t = np.asarray(t, float)
        x = np.maximum(t - self.drift_from, 0)
        return self.idle_w * t + self.drift_w * (x - self.drift_tau * (1 - np.exp(-x / self.drift_tau)))

    def build(self):
        if not self.parts:
            self.parts = [(np.zeros(1), np.zeros(1), np.zeros(1))]
        t = np.concatenate([p[0] for p in self.parts] + [p[1] for p in self.parts])
        w = np.concatenate([p[2] for p in self.parts])
        order = np.argsort(t, kind="stable")
        self.edges = t[order]
        self.watts = np.cumsum(np.concatenate([w, -w])[order])
        self.sums = np.concatenate([[0], np.cumsum(self.watts[:-1] * np.diff(self.edges))])

    def energy(self, t):
        t = np.asarray(t, float)
        return self.idle_energy(t) + np.interp(t, self.edges, self.sums)

    def active(self, t0, t1):
        return float(np.diff(np.interp([t0, t1], self.edges, self.sums))[0])

    def power(self, t):
        t = np.asarray(t, float)
        at = np.searchsorted(self.edges, t, "right") - 1
        x = np.maximum(t - self.drift_from, 0)
        return np.where(at >= 0, self.watts[np.maximum(at, 0)], 0) + self.idle_w + self.drift_w * (1 - np.exp(-x / self.drift_tau))

    def filtered(self, t, tau):
        """What a first-order filter of the power shows at the times t (its start is the power at t[0])."""
        t = np.asarray(t, float)
        grid = np.unique(np.concatenate([self.edges[(self.edges > t[0]) & (self.edges < t[-1])], t, np.arange(t[0], t[-1], 0.25)]))
        mean = np.diff(self.energy(grid)) / np.diff(grid)
        keep = np.exp(-np.diff(grid) / tau)
        y = np.empty(len(grid))
        y[0] = value = self.power(t[0])
        for i, (k, m) in enumerate(zip(keep.tolist(), mean.tolist())):
            value = value * k + m * (1 - k)
            y[i + 1] = value
        return y[np.searchsorted(grid, t)]
