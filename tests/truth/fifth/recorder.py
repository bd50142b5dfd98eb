"""When things happen: the run and its baselines, and the recorder's readings, which are late and cost CPU time themselves."""

import numpy as np

from tracks import Load

APART_S = 30e-6  # of two readings, at least
RECORDER_W = 9.0


class Times:
    """Seconds since the recording began; the machine has been up for about an hour by then."""

    def __init__(self, rng, words, threads):
        self.words = words
        self.first_ns = int(3e12 + rng.integers(0, 10**12))
        self.begin_s = run_begin_s(words)
        self.end_s = max(thread.end_s for thread in threads) + words["tail"]
        self.close_s = self.end_s + words["baseline"] + 0.05

    def ns(self, t):
        return (self.first_ns + np.round(np.asarray(t) * 1e9)).astype(np.int64)

    def edges(self):
        """Times at which counters are read in any case."""
        return np.array([self.begin_s, self.end_s] + ([0.01, self.close_s - 0.02] if self.words["baseline"] else []))

    def unstalled(self, t):
        """Without those at which the recorder got no CPU."""
        for begin_s, end_s in self.words["stall"]:
            t = t[(t < begin_s) | (t > end_s)]
        return t


def run_begin_s(words):
    """The run begins after its baseline, where it has one."""
    return words["baseline"] + 0.02 if words["baseline"] else 0.05


def readings(rng, words, times, rate):
    """A grid with a phase of its own, a little late, now and then by ms; and the edges of runs."""
    period_s = 1.0 / rate
    t = np.arange(0, times.close_s, period_s) + rng.uniform(0, period_s)
    if words["late"]:
        t = t + rng.uniform(0, 60e-6, len(t)) + np.where(rng.random(len(t)) < 0.004, rng.exponential(2e-3, len(t)), 0)
    t = np.sort(np.concatenate([t, times.edges()]))
    return t[np.concatenate([[True], np.diff(t) > APART_S])]


def recorder_load(rng, read_s):
    n = len(read_s)
    return Load("recorder", np.stack([read_s, rng.uniform(25e-6, 70e-6, n), np.ones(n), np.full(n, RECORDER_W)], 1))
