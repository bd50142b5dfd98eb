"""When things happen: the run and its baselines, and the recorder's readings, which are late, sometimes by more than a period."""

import numpy as np

DELAYS = {"normal": (0.01, 1.5e-3), "loaded": (0.06, 6e-3), "quiet": (0.001, 0.5e-3)}  # how often very late, and by how much (s)


class Times:
    """Seconds on the machine's clock, in their order."""

    def __init__(self, rng, words):
        self.words = words
        self.record_s = 1000.0 + rng.uniform(0, 1)
        self.base = (self.record_s + 0.05, self.record_s + 0.05 + words.base_s)
        self.begin_s = self.base[1] + rng.uniform(0.01, 0.05)
        self.work_s = self.begin_s + rng.uniform(0.002, 0.02)  # the program begins to work,
        self.first_s = self.work_s + words.startup  # has its first span,
        self.stop_s = self.first_s + words.run_s  # and begins no step after this

    def end(self, rng, last_s):
        """The run ends after the last thread."""
        self.end_s = last_s + rng.uniform(0.01, 0.08)
        self.after = (self.end_s + 0.03, self.end_s + 0.03 + self.words.base_s)
        self.close_s = (self.after[1] if self.words.base_after else self.end_s) + 0.05

    def runs(self):
        """(kind, begin, end) as the recording has them."""
        runs = [("baseline", *self.base)] if self.words.base_s else []
        runs += [("run", self.begin_s, self.end_s)]
        return runs + ([("baseline", *self.after)] if self.words.base_after else [])

    def edges(self, margin_s):
        """Just before the begin and just after the end of each run."""
        return [t for _, begin, end in self.runs() for t in (begin - margin_s, end + margin_s)]


def apart(t, least_s):
    """Sorted, without those that follow another too soon."""
    t = np.sort(t)
    return t[np.r_[True, np.diff(t) > least_s]]


def read_times(rng, begin_s, end_s, period_s, late):
    """Deadlines on a grid; a reading that comes after the next deadlines leaves these out. Returns also how many it left out."""
    deadlines = begin_s + np.arange(int((end_s - begin_s) / period_s) + 1) * period_s
    n = len(deadlines)
    often, much_s = DELAYS[late]
    delays = 60e-6 * np.exp(rng.normal(0, 0.45, n))
    t = deadlines + (delays + (rng.random(n) < often) * rng.exponential(much_s, n))
    kept = np.r_[True, t[:-1] < deadlines[1:]]
    t = np.maximum.accumulate(t)
    return t[kept & (t < end_s)], int((~kept).sum())


class Recorder:
    """The readings of the energy counters, and the CPU time that each takes: `reads`, and `work` as (begins, ends)."""

    def __init__(self, rng, words, times):
        slow_s, fast_s = (0.1, 0.01) if words.rate == "auto" else (1.0 / words.rate, 1.0 / words.rate)
        before, left_out = read_times(rng, times.record_s + 0.001, times.first_s, slow_s, words.late)
        inside, left_out_inside = read_times(rng, times.first_s + 0.002, times.close_s, fast_s, words.late)
        self.n_late = left_out + left_out_inside
        self.reads = apart(np.concatenate([before, inside, times.edges(30e-6)]), 5e-6)
        self.work = (self.reads, np.minimum(self.reads + words.recorder_cpu, np.r_[self.reads[1:], np.inf]))
